"""What the tenants' files name, held against the services that must know it."""

from pathlib import Path

import pytest
from agent_runner.prices import Prices
from agent_runner.profiles import Profiles
from contracts.models import DEFAULT_MODEL
from gateway.profiles import Tenants
from policy import pack

TENANTS = Path(__file__).parents[1] / "deploy" / "tenants"
NAMES = sorted(folder.name for folder in TENANTS.iterdir() if folder.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_what_a_tenants_profiles_name_is_known_to_the_runner(name: str):
    runner, prices = Profiles.load(), Prices.load()
    for profile_name, profile in Tenants(TENANTS).of(name).profiles.items():
        assert runner.profile(profile_name)
        assert runner.prompt(profile.prompt_version)
        assert prices.of(profile.model or DEFAULT_MODEL)


@pytest.mark.parametrize("name", NAMES)
def test_a_tenants_runs_name_the_pack_that_policy_reads(name: str):
    packed = pack.parse((TENANTS / name / "policy.yaml").read_text())
    assert Tenants(TENANTS).of(name).policy_pack == packed.name
