"""The pack that most tests judge by, and a run that has begun."""

import pytest
from policy.pack import PolicyPack, parse

from .quotes import PACK
from .told import Told


@pytest.fixture
def pack() -> PolicyPack:
    return parse(PACK)


@pytest.fixture
def run(pack: PolicyPack) -> Told:
    return Told(pack)
