"""A service ends when it is told to, however far it has come, and what stands beside it counts for its readiness."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from contracts import service
from contracts.settings import ServiceSettings
from pydantic import SecretStr

from .servers import SOON, House


@asynccontextmanager
async def starting(url: str, user: str = "", password: str = "") -> AsyncIterator[Process]:
    told = {"TURNGATE_NATS_URL": url, "TURNGATE_NATS_USER": user, "TURNGATE_NATS_PASSWORD": password}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("starting.py")),
        env=os.environ | {name: value for name, value in told.items() if value},
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_who_is_told_to_end_while_they_start_puts_away_what_they_have_and_ends(
    house: House, number: signal.Signals
) -> None:
    async with starting(house.url, *house.access.user("policy")) as process, asyncio.timeout(SOON):
        assert process.stdout is not None
        assert await process.stdout.readline() == b"starting\n"

        process.send_signal(number)

        assert await process.wait() == 0
        assert await process.stdout.read() == b"put away\n"


async def test_who_is_told_to_end_while_the_broker_is_away_ends() -> None:
    reached = asyncio.Event()

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()

    async with await asyncio.start_server(says_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with starting(f"nats://127.0.0.1:{port}") as process, asyncio.timeout(SOON):
            await reached.wait()

            process.terminate()

            assert await process.wait() == 0


async def test_a_service_is_connected_if_what_stands_beside_it_is(house: House) -> None:
    def settings(name: str) -> ServiceSettings:
        user, password = house.access.user(name)
        return ServiceSettings(nats_url=house.url, nats_user=user, nats_password=SecretStr(password))

    async def nothing(*_: object) -> None:
        pass

    async with (
        service.running("approvals", settings("approvals"), nothing) as bus,
        service.running("policy", settings("policy"), nothing) as beside,
    ):
        bus.beside.append(beside)
        assert bus.connected

        await beside.close()

        assert not bus.connected
