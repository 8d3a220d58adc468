"""The system on one machine: Postgres, NATS and the services started in order, kept alive, and stopped in order."""

import asyncio
import contextlib
import hashlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from turngate import databases, setup
from turngate.databases import DATABASE
from turngate.embedded import hold
from turngate.embedded.child import Child
from turngate.embedded.keeper import LONGEST_WAIT, Keeper
from turngate.embedded.leftovers import end_leftovers
from turngate.embedded.nats import SETUP
from turngate.embedded.nats_health import keep_writable
from turngate.embedded.ports import why_not_free
from turngate.embedded.services import Place, beside, place_of, services
from turngate.embedded.state import State
from turngate.embedded.trouble import Trouble
from turngate.migrations import directory_of

WRITTEN_AGAIN_AFTER = 2.0  # seconds
Say = Callable[[str], None]


class System:
    """One system on one data directory, which it holds from `up` on."""

    def __init__(
        self,
        data: Path,
        port: int,
        host: str = "127.0.0.1",
        say: Say = print,
        services: Callable[[Place], list[Child]] = services,
        seeded: Mapping[str, str] = setup.SEEDED,
    ) -> None:
        self.data, self.port, self.host, self._tell = data.absolute(), port, host, say
        self._services, self._seeded = services, seeded
        # Tests that kill the same service again and again do not want to wait for it ever longer.
        self._longest_wait = float(os.environ.get("TURNGATE_LONGEST_RESTART_WAIT", LONGEST_WAIT))
        self._keepers: list[Keeper] = []
        self._keeping: list[asyncio.Task[None]] = []
        self._state: State | None = None

    async def run(self, ready: Callable[[State], None]) -> None:
        """Starts everything, calls `ready`, keeps everything alive until SIGINT, SIGTERM or SIGHUP, then stops it."""
        with hold.take(self.data):
            end_leftovers(self.data)
            (self.data / "system.json").unlink(missing_ok=True)
            told = asyncio.Event()
            self._hear_signals(told)
            try:
                starting = asyncio.ensure_future(self._start())
                telling = asyncio.ensure_future(told.wait())
                await asyncio.wait({starting, telling}, return_when=asyncio.FIRST_COMPLETED)
                if starting.done():
                    starting.result()
                    assert self._state is not None  # noqa: S101 - set by _start
                    ready(self._state)
                    await telling
                else:
                    starting.cancel()
                    await asyncio.wait({starting})
                self._say("stopping")
            finally:
                await self._stop()

    async def _start(self) -> None:
        place = self._place()
        self._state = State(
            pid=os.getpid(),
            data=str(self.data),
            url=place.url,
            nats_url=place.nats.url.replace("://", f"://{SETUP}:{place.nats.password(SETUP)}@"),
            postgres_url=place.postgres.dsn(DATABASE),
            issuer_url=place.issuer_url,
            model="stand-in" if place.stand_in_url else "real",
        )
        self._state.write_password_file()
        if place.issuer:
            place.issuer.prepare()
        aside = asyncio.gather(*(self._begin(child) for child in beside(place)))
        try:
            _, nats = await asyncio.gather(self._begin(place.postgres.child()), self._begin(place.nats.child()))
            self._keeping.append(asyncio.create_task(keep_writable(place.nats, nats.restart, self._say)))
            await self._set_up(place)
            await asyncio.gather(*(self._begin(child) for child in self._services(place)), aside)
        finally:
            aside.cancel()
        self._state.ready = True
        self._changed()

    async def _begin(self, child: Child) -> Keeper:
        keeper = Keeper(child, self._changed, self._say, self._longest_wait)
        self._keepers.append(keeper)
        await keeper.start()
        self._keeping.append(asyncio.create_task(keeper.keep()))
        return keeper

    async def _set_up(self, place: Place) -> None:
        """The streams always; the database and the demo's rows where anything that makes them has changed."""
        await asyncio.to_thread(setup.prepare_nats, place.nats.url, SETUP, place.nats.password(SETUP))
        stamp, done = place.postgres.home / "set-up", _fingerprint(place.tenants)
        if stamp.exists() and stamp.read_text() == done:
            return
        self._say("making the database")
        await asyncio.to_thread(setup.prepare_postgres, place.postgres.dsn(), place.passwords.__getitem__)
        self._say("writing the demo's rows")
        await asyncio.to_thread(
            setup.seed, {name: place.environment(name, role) for name, role in self._seeded.items()}
        )
        stamp.write_text(done)

    def _place(self) -> Place:
        self.data.chmod(0o711)
        if self.port and (why := why_not_free(self.port, self.host)):
            raise Trouble(
                f"Port {self.port} on {self.host} {why}. Nothing was started. "
                f"Stop what is there, or choose another port: `turngate up --port {self.port % 65_535 + 1}` "
                "(--port 0 takes a free one)."
            )
        return place_of(self.data, self.host, self.port)

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more; the system goes on
            self._tell(text)

    def _changed(self) -> None:
        if self._state is None:
            return
        self._state.processes = {
            keeper.child.name: {
                "pid": keeper.process.pid if keeper.process else None,
                "restarts": keeper.restarts,
                "health": keeper.child.health_url,
                "log": str(keeper.child.log),
            }
            for keeper in self._keepers
        }
        try:
            self._state.write()
        except OSError:  # a full disk
            asyncio.get_running_loop().call_later(WRITTEN_AGAIN_AFTER, self._changed)

    async def _stop(self) -> None:
        """Services first, so that they still reach what they depend on."""
        first = [keeper for keeper in self._keepers if keeper.child.name not in ("postgres", "nats")]
        last = [keeper for keeper in self._keepers if keeper not in first]
        for group in (first, last):
            await asyncio.gather(*(keeper.stop() for keeper in group))
        for task in self._keeping:
            task.cancel()
        with contextlib.suppress(OSError):
            (self.data / "system.json").unlink()

    def _hear_signals(self, told: asyncio.Event) -> None:
        def hear() -> None:
            if told.is_set():  # asked twice: no more patience
                for keeper in self._keepers:
                    keeper.kill()
            told.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, hear)


def _fingerprint(tenants: Path) -> str:
    """Of everything that set-up writes from: scripts, seeds, tenants. By name, size and time: quick, and enough."""
    places = [tenants]
    for keep in databases.KEEPS:
        directory = directory_of(keep.migrations)
        places += [directory.parent.parent] if directory else []
    return hashlib.sha256("\n".join(_files(places)).encode()).hexdigest()


def _files(places: Iterable[Path]) -> list[str]:
    return sorted(
        f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}"
        for place in places
        for path in place.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )
