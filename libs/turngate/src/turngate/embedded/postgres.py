"""PostgreSQL from a wheel's binaries, over TCP on this machine only, with a data directory of its own."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from turngate.embedded import environment
from turngate.embedded.account import Account, home_for, reachable_copy, unprivileged
from turngate.embedded.binaries import postgres_directory
from turngate.embedded.child import Child
from turngate.embedded.passwords import write_private
from turngate.embedded.processes import command_line
from turngate.embedded.trouble import Trouble

SUPERUSER = "postgres"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    "cluster_name": "turngate",
    "wal_recycle": "off",  # a segment that nothing needs any more is removed, with what it says of people
}
# Throw-away clusters of tests outlive a killed process, not a power cut.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Postgres:
    """One cluster under `data/postgres` (or outside, where an unprivileged account cannot reach it)."""

    def __init__(self, data: Path, port: int, password: str, *, durable: bool = True) -> None:
        self.data, self.port, self.password, self.durable = data, port, password, durable
        self.account: Account | None = unprivileged(data / "postgres")
        self.home = home_for(self.account, data / "postgres", data / "postgres.path")
        self.programs = reachable_copy(self.account, postgres_directory(), self.home) / "bin"
        self.cluster = self.home / "cluster"

    def dsn(self, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        return f"postgresql://{user}:{quote(password or self.password, safe='')}@127.0.0.1:{self.port}/{database}"

    def prepare(self) -> None:
        """Makes the cluster where there is none, and clears what a killed server left behind."""
        if not (self.cluster / "PG_VERSION").exists():
            self._make_cluster()
        self._end_predecessor()

    def child(self) -> Child:
        settings = SETTINGS | {"port": str(self.port)} | ({} if self.durable else NOT_DURABLE)
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Child(
            name="postgres",
            argv=(str(self.programs / "postgres"), "-D", str(self.cluster), *options),
            log=self.data / "logs" / "postgres.log",
            ready=self.answers,
            env=environment.base(),
            cwd=self.home,
            account=self.account,
            prepare=self.prepare,
            stop_signal=signal.SIGINT,  # ends open sessions and closes the cluster properly
        )

    def answers(self) -> bool:
        """Raises Trouble where the cluster answers and does not know our password: waiting would not help."""
        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError as error:
            if "authentication failed" in str(error):
                raise Trouble(
                    f"The PostgreSQL cluster in {self.cluster} has another password than {self.data} says. Nothing was "
                    f"changed. Put back the passwords.json that belongs to it, or start anew with another --data."
                ) from None
            return False
        return True

    def _make_cluster(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished, password_file = self.home / "cluster.unfinished", self.home / "password"
        shutil.rmtree(unfinished, ignore_errors=True)
        write_private(password_file, self.password)
        if self.account:
            self.account.owns(self.home)
            self.account.owns(password_file)
        account = self.account
        done = subprocess.run(  # noqa: S603 - the wheel's own initdb
            [
                *(str(self.programs / "initdb"), "-D", str(unfinished), "--username", SUPERUSER),
                *("--pwfile", str(password_file), "--auth", "scram-sha-256", "--encoding", "UTF8"),
                *self._locale(),
                *([] if self.durable else ["--no-sync"]),
            ],
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        password_file.unlink()
        if done.returncode:
            raise Trouble(f"PostgreSQL could not make its cluster in {self.cluster}:\n{done.stderr.strip()}")
        unfinished.rename(self.cluster)

    def _locale(self) -> list[str]:
        """The same order and letters on every machine: PostgreSQL's own from 17 on, before that the C library's."""
        told = subprocess.run(  # noqa: S603 - the wheel's own initdb
            [self.programs / "initdb", "--version"], capture_output=True, text=True
        ).stdout
        if told and int(told.split()[-1].split(".")[0]) < 17:
            return ["--locale", "C.UTF-8"]
        return ["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"]

    def _end_predecessor(self) -> None:
        """The caller holds the data directory, so a server that still runs on it is an orphan on its way out."""
        lock = self.cluster / "postmaster.pid"
        ending = [(signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)]
        while (pid := self._server_pid(lock)) and ending:
            number, patience = ending.pop(0)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            deadline = time.monotonic() + patience
            while self._server_pid(lock) and time.monotonic() < deadline:
                time.sleep(0.02)
        if not pid:
            lock.unlink(missing_ok=True)

    def _server_pid(self, lock: Path) -> int | None:
        """The pid in the lock file if it is a server on this very cluster: a reused pid is somebody else."""
        try:
            pid = int(lock.read_text().split()[0])
        except (OSError, IndexError, ValueError):
            return None
        return pid if str(self.cluster) in command_line(pid) else None
