"""Servers for every test. Where they come from is `turngate.testing`'s business."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings
from turngate import testing
from turngate.running import RunningSystem, temporary_system
from turngate.testing import Cluster, Database, NatsAccess

import evaluation  # noqa: F401 - else pytest takes the directory of that name for the package

# How long an example takes says nothing on a busy machine.
settings.register_profile("turngate", deadline=None)
settings.load_profile("turngate")
# Tracebacks that show every local take minutes to print where an event is among them.
structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with testing.directory() as path:
        yield path


@pytest.fixture(scope="session")
def session_data_dir() -> Iterator[Path]:
    with testing.directory() as path:
        yield path


@pytest.fixture(scope="session")
def nats_server(session_data_dir: Path) -> Iterator[NatsAccess]:
    """One server for the session. Tests that share it use tenants or runs of their own."""
    with testing.nats_server(session_data_dir) as access:
        yield access


@pytest.fixture
def fresh_nats(data_dir: Path) -> Iterator[NatsAccess]:
    """A server of the test's own, empty but for the streams."""
    with testing.nats_server(data_dir) as access:
        yield access


@pytest.fixture(scope="session")
def cluster(session_data_dir: Path) -> Iterator[Cluster]:
    with testing.postgres_cluster(session_data_dir) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres(cluster: Cluster) -> Iterator[Database]:
    """One migrated database for the session. Tests that share it use tenants of their own."""
    with cluster.database() as database:
        yield database


@pytest.fixture
def fresh_database(cluster: Cluster) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with cluster.database() as database:
        yield database


@pytest.fixture(scope="session")
def system() -> Iterator[RunningSystem]:
    """The whole system, started once for all tests that share it, with the stand-in as its model."""
    with temporary_system() as system:
        yield system
