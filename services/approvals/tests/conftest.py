"""A run that has begun."""

import pytest

from .told import Told


@pytest.fixture
def run() -> Told:
    return Told()
