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
        """Whether every directory above the path lets this account through."""
        return all(self._passes(directory.stat()) for directory in path.absolute().parents if directory.exists())

    def _passes(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def unprivileged() -> Account | None:
    """None for an ordinary user, who runs everything as themselves."""
    if os.geteuid() != 0:
        return None
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
        return Path(note.read_text().strip())
    if account is None or account.reaches(wanted):
        return wanted
    elsewhere = ELSEWHERE / uuid.uuid4().hex[:12]
    elsewhere.mkdir(parents=True, mode=0o711)
    ELSEWHERE.chmod(0o711)
    note.write_text(f"{elsewhere}\n")
    return elsewhere / wanted.name


def reachable_copy(account: Account | None, package: Path, home: Path) -> Path:
    """The package's directory, or a copy (with its shared libraries) beside `home` where it is out of reach."""
    if account is None or account.reaches(package / "bin"):
        return package
    carrier = package.parent
    copy = home.parent / carrier.name
    if not copy.exists():
        libraries = carrier.with_name(f"{carrier.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, home.parent / libraries.name, dirs_exist_ok=True)
        unfinished = copy.with_suffix(".unfinished")
        shutil.copytree(carrier, unfinished, dirs_exist_ok=True)
        unfinished.rename(copy)
    return copy / package.name
