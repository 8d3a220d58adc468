"""The log itself, read from the broker by a user who may do nothing else."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from contracts.errors import Outage
from contracts.events import Event
from contracts.log import JetStreamLog
from contracts.settings import BrokerSettings
from contracts.strict import parse_json
from contracts.subjects import BadToken, RunKey
from pydantic import SecretStr

from turngate.embedded import state
from turngate.embedded.nats import READER, SETUP
from turngate.embedded.passwords import Passwords
from turngate.embedded.trouble import Trouble

T = TypeVar("T")


@dataclass(frozen=True)
class Broker:
    """A NATS server, and as whom it is entered."""

    settings: BrokerSettings

    @property
    def url(self) -> str:
        return self.settings.nats_url

    def environment(self) -> dict[str, str]:
        """By which another process of ours enters it likewise."""
        told = {name: getattr(self.settings, name) for name in BrokerSettings.model_fields}
        plain = {name: one.get_secret_value() if isinstance(one, SecretStr) else one for name, one in told.items()}
        return {f"TURNGATE_{name.upper()}": str(one) for name, one in plain.items() if one is not None}

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        import nats.errors
        from contracts.connection import connect

        user = self.settings.nats_user or "setup"
        try:
            client = await connect(
                self.settings, inbox_prefix=f"_INBOX_{user}", allow_reconnect=False, name=f"turngate as {user}"
            )
        except (OSError, nats.errors.Error) as error:
            raise Trouble(f"The broker at {self.url} does not let us in ({error}). Nothing was read.") from None
        try:
            yield client
        finally:
            await client.close()


def broker(data: Path, user: str = READER) -> Broker:
    """That of the system which runs on the directory."""
    found = state.read(data)
    parts = urlsplit(found.nats_url)
    password = Passwords(data / "passwords.json")[f"nats/{user}"]
    url = f"nats://{parts.hostname}:{parts.port}"
    return Broker(settings(nats_url=url, nats_user=user, nats_password=SecretStr(password)))


def settings(**told: Any) -> BrokerSettings:
    """These and no others, whatever the environment says."""
    return BrokerSettings(**{name: None for name in BrokerSettings.model_fields} | told)


def set_up_broker(data: Path) -> Broker:
    """For what the reader may not see: the dead letters."""
    return broker(data, SETUP)


def everything(broker: Broker, tenant: str | None = None, run: str | None = None) -> list[Event]:
    """All accepted events in the order of the log, of one tenant or run where that is named."""

    async def read() -> list[Event]:
        async with broker.connection() as client:
            log = JetStreamLog(client)
            return [
                event async for event in log.follow(tenant=tenant, live=False) if run is None or event.key.run == run
            ]

    return answer(read())


def of_run(broker: Broker, tenants: Iterable[str], run: str) -> list[Event]:
    """The run's events. Raises Trouble where no tenant has it, or several do."""

    async def read() -> list[list[Event]]:
        async with broker.connection() as client:
            log = JetStreamLog(client)
            return [list((await log.read(RunKey(tenant, run))).events) for tenant in tenants]

    try:
        found = [events for events in answer(read()) if events]
    except BadToken as error:
        raise Trouble(str(error)) from None
    if not found:
        raise Trouble(f"The log holds no run {run}.")
    if len(found) > 1:
        names = " and ".join(events[0].key.tenant for events in found)
        raise Trouble(f"{names} each have a run {run}: say which with --tenant.")
    return found[0]


def lines(events: Iterable[Event]) -> Iterator[str]:
    """CloudEvents, one a line, byte for byte as the log holds them."""
    return (event.payload.decode() for event in events)


def answer(work: Coroutine[Any, Any, T]) -> T:
    """Runs it, and says what an outage means."""
    try:
        return asyncio.run(work)
    except Outage as error:
        raise Trouble(f"{error} Nothing was changed; try again.") from None


def letter(data: bytes) -> dict[str, Any]:
    """A dead letter, with all that is shown of one even where its writer left it out."""
    try:
        told = parse_json(data)
    except ValueError:
        told = None
    unknown = {"service": "?", "subject": "?", "event": "", "error": "not written as the services write dead letters"}
    return unknown | told if isinstance(told, dict) else unknown | {"event": data.decode(errors="replace")}


def dead_letters(broker: Broker) -> list[dict[str, Any]]:
    """What no retry could handle, the oldest first, each with its number in the stream."""
    from nats.js.errors import NotFoundError

    async def read() -> list[dict[str, Any]]:
        async with broker.connection() as client:
            jetstream = client.jetstream()
            kept = (await jetstream.stream_info("DEAD")).state
            found = []
            for number in range(max(kept.first_seq, 1), kept.last_seq + 1):
                try:
                    message = await jetstream.get_msg("DEAD", number)
                except NotFoundError:
                    continue
                found.append({"number": number, "time": str(message.time or ""), **letter(message.data or b"")})
            return found

    return answer(read())
