"""The unprivileged account that PostgreSQL, which refuses to run as root, is given when we are root."""

import os
import pwd
import shutil
import stat
import uuid
from dataclasses import dataclass
from pathlib import Path

from turngate.embedded.trouble import Trouble

CANDIDATES = ("nobody", "daemon")
ELSEWHERE = Path("/var/lib/turngate")


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int

    def owns(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether every directory down to the path, and the path itself where it exists, lets this account through."""
        chain = (path.absolute(), *path.absolute().parents)
        return all(self._passes(step.stat()) for step in chain if step.exists())

    def _passes(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def unprivileged(cluster: Path) -> Account | None:
    """Who owns the cluster already, else the first candidate. None for an ordinary user, who runs it themselves."""
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (status := cluster.stat()).st_uid != 0:
        return Account(status.st_uid, status.st_gid)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise Trouble(
        f"PostgreSQL does not run as root, and there is no account named {' or '.join(CANDIDATES)} to run it as. "
        "Nothing was started. Run this as an ordinary user."
    )


def home_for(account: Account | None, wanted: Path, note: Path) -> Path:
    """`wanted` where the account can reach it. Else (a checkout under /root) a directory outside, which `note` names,
    so that the next start finds it again."""
    if note.exists():
        return Path(note.read_text().strip()) / wanted.name
    if account is None or account.reaches(wanted):
        return wanted
    elsewhere = ELSEWHERE / uuid.uuid4().hex[:12]
    elsewhere.mkdir(parents=True)
    for directory in (ELSEWHERE, elsewhere):
        directory.chmod(0o711)
    note.write_text(f"{elsewhere}\n")
    return elsewhere / wanted.name


def reachable_copy(account: Account | None, package: Path, home: Path) -> Path:
    """The package's directory, or a copy (with its shared libraries) beside `home` where it is out of reach."""
    if account is None or account.reaches(package / "bin" / "postgres"):
        return package
    carrier = package.parent
    copy = home.parent / carrier.name
    libraries = carrier.with_name(f"{carrier.name}.libs")
    if not copy.exists():
        if libraries.exists():
            shutil.copytree(libraries, home.parent / libraries.name, dirs_exist_ok=True)
        unfinished = copy.with_suffix(".unfinished")
        shutil.copytree(carrier, unfinished, dirs_exist_ok=True)
        unfinished.rename(copy)
        for place in (copy, home.parent / libraries.name):
            _open_to_all(place)
    return copy / package.name


def _open_to_all(place: Path) -> None:
    """What its owner may read or run, everybody may: the copy may come from an installation under a strict umask."""
    for path in (place, *place.rglob("*")):
        if not path.is_symlink() and path.exists():
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
