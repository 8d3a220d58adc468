"""What the embedded broker says of itself, and whether one that could not write has room again."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import nats.errors
from contracts.connection import connect
from nats.aio.client import Client
from pydantic import SecretStr

from turngate import broker, records
from turngate.embedded.nats import Nats

LOOKED_AT_EVERY = 3.0  # seconds
ANSWERS_WITHIN = 2.0  # seconds
# What has to be free before a broker that could not write is started again.
ROOM_BYTES = 8 * 1024 * 1024
_HEALTH = "$SYS.REQ.SERVER.PING.HEALTHZ"


async def trouble(server: Nats) -> str | None:
    """Why the broker is not well, in its own words; None where it is, or where it does not answer at all.

    A failed write is among it: a stream of nats-server that could not write takes nothing more until the server is
    started again.
    """
    password = SecretStr(server.password(broker.SUPERVISOR))
    settings = records.settings(nats_url=server.url, nats_user=broker.SUPERVISOR, nats_password=password)
    client = Client()
    try:
        await connect(settings, client, allow_reconnect=False, connect_timeout=ANSWERS_WITHIN, error_cb=_silent)
        answer = json.loads((await client.request(_HEALTH, timeout=ANSWERS_WITHIN)).data)
    except (OSError, nats.errors.Error, ValueError):
        return None
    finally:
        await client.close()
    health = answer.get("data") or {}
    return None if health.get("status") == "ok" else str(health.get("error") or health.get("status"))


def has_room(folder: Path) -> bool:
    """Whether so much can be written there. It is tried: what is free does not tell of a quota."""
    probe = folder / "room"
    try:
        with probe.open("wb", buffering=0) as file:
            file.write(b"\0" * ROOM_BYTES)
            os.fsync(file.fileno())
            return file.tell() == ROOM_BYTES
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


async def keep_writable(server: Nats, restart: Callable[[], object], say: Callable[[str], object]) -> None:
    """Restarts the broker once there is room for what it could not write, for ever. Nothing is lost by that: what it
    could not write it has confirmed to nobody."""
    said = None
    while True:
        await asyncio.sleep(LOOKED_AT_EVERY)
        why = await trouble(server)
        if why is None or "write error" not in why:
            said = None
            continue
        if why != said:
            say(f"nats cannot write: {why}. It is started again once there is room")
            said = why
        if await asyncio.to_thread(has_room, server.home):
            say("there is room again; nats is started again")
            restart()


async def _silent(error: Exception) -> None:
    """What goes wrong on the connection shows in its answers."""
