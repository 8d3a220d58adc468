"""Runs the Alembic scripts of each service, in its own schema, as the owner."""

import importlib.util
from pathlib import Path

import psycopg

from turngate.databases import KEEPS

ALEMBIC = Path(__file__).with_name("alembic")


def migrate_all(owner_dsn: str) -> list[str]:
    """Brings every schema up to date, as the owner. Returns the packages that were found."""
    found = [keep for keep in KEEPS if directory_of(keep.migrations)]
    for keep in found:
        migrate(owner_dsn, keep.migrations, keep.schemas[0])
    return [keep.migrations for keep in found]


def migrate(owner_dsn: str, package: str, schema: str, revision: str = "head") -> None:
    """Runs what is missing up to a revision in one transaction. The version table lies in `schema`."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, pool

    directory = directory_of(package)
    if directory is None:
        raise LookupError(f"there is no package {package}")
    config = Config()
    for name, path in (("script_location", ALEMBIC), ("version_locations", directory)):
        config.set_main_option(name, str(path).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")  # a directory's name may hold anything else
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(owner_dsn), poolclass=pool.NullPool)
    with engine.begin() as connection:
        config.attributes |= {"connection": connection, "schema": schema}
        command.upgrade(config, revision)
    engine.dispose()


def directory_of(package: str) -> Path | None:
    """Where the package's scripts lie, found without importing it (or its parent's dependencies)."""
    parent, _, name = package.rpartition(".")
    spec = importlib.util.find_spec(parent)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(place) / name / "versions").is_dir():
            return found
    return None
