"""A second whole system, for tests that stop it, watch it from outside, or wait for its clock."""

from collections.abc import Iterator

import pytest

from .collector import Collector, collecting
from .own_system import OwnSystem
from .own_system import own_system as running


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="session")
def own_system(collector: Collector) -> Iterator[OwnSystem]:
    with running(collector) as system:
        yield system
