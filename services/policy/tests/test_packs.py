"""Which pack a tenant is judged by: the file's, then whichever was promoted last and can be read."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from contracts.canonical import sha256
from contracts.events import Draft, Event
from contracts.facts import Fact
from contracts.memory import MemoryLog
from contracts.parts import Pack
from contracts.subjects import TenantKey
from contracts.tenant_facts import PolicyPromoted, StopSet
from contracts.testing import person
from policy.handlers import checking
from policy.pack import InvalidPack, parse
from policy.packs import Packs
from structlog.testing import capture_logs

from .quotes import PACK

DEPLOYED = Path(__file__).parents[3] / "deploy" / "tenants"
LEE = person("lee", "lead")
NEWER = PACK.replace("version: 3", "version: 4").replace("automatic_up_to: 5000", "automatic_up_to: 3000")


def said(fact: Fact, tenant: str = "acme") -> Event:
    log = MemoryLog(clock=lambda: datetime(2026, 11, 2, tzinfo=UTC))
    return log.say(log.history(TenantKey(tenant)), Draft(fact, None))


def promoted(text: str, pack: Pack | None = None) -> PolicyPromoted:
    return PolicyPromoted(pack=pack or parse(text).stamp, text=text, by=LEE)


def version(packs: Packs, tenant: str = "acme") -> int | None:
    pack = packs.of(tenant)
    return pack.version if pack else None


@pytest.fixture
def packs(tmp_path: Path) -> Packs:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "policy.yaml").write_text(PACK)
    return Packs(tmp_path)


def test_the_file_is_the_pack_until_one_is_promoted_and_the_last_promoted_one_counts(packs: Packs) -> None:
    assert version(packs) == 3

    packs.hear(said(promoted(NEWER)))
    assert version(packs) == 4

    packs.hear(said(promoted(PACK)))
    assert version(packs) == 3, "going back is a promotion, too"


def test_a_tenant_that_has_no_file_gets_its_pack_by_promotion_and_only_that_tenant(packs: Packs) -> None:
    packs.hear(said(promoted(NEWER), tenant="newcomer"))

    assert (version(packs, "newcomer"), version(packs)) == (4, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        promoted("name: acme\n", parse(NEWER).stamp),
        promoted("", parse(NEWER).stamp),
        promoted("!!python/object/apply:os.system [false]", parse(NEWER).stamp),
        promoted(NEWER.replace("3000", "900000"), parse(PACK).stamp),
        promoted(NEWER, Pack(name="acme", version=4, digest=sha256("another text"))),
    ],
    ids=["incomplete", "empty", "code", "limits that do not rise", "not the text that was checked"],
)
def test_an_invalid_promoted_text_is_never_used_and_the_pack_before_stays(packs: Packs, wrong: PolicyPromoted) -> None:
    packs.hear(said(promoted(NEWER)))

    with capture_logs() as logs:
        packs.hear(said(wrong))

    assert packs.of("acme") == parse(NEWER)
    assert (logs[0]["log_level"], logs[0]["tenant"]) == ("error", "acme")


def test_other_facts_of_a_tenant_change_no_pack(packs: Packs) -> None:
    packs.hear(said(StopSet(stop_id="s-1", reason="all of it", by=LEE)))

    assert version(packs) == 3


def test_a_tenant_without_a_pack_is_told_which_file_to_write(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert Packs(tmp_path).of("nobody") is None

    assert "nobody/policy.yaml" in logs[0]["do"]


def test_one_wrong_pack_keeps_the_service_from_starting(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "policy.yaml").write_text("name: acme\n")

    with pytest.raises(InvalidPack, match=r"policy\.yaml, line 1, version"):
        Packs(tmp_path)


# Asked


async def test_a_pack_that_can_be_read_is_answered_with_its_stamp(packs: Packs) -> None:
    answer = await checking(packs)({"tenant": "acme", "text": NEWER})

    assert answer == {"status": 200, "pack": parse(NEWER).stamp.model_dump(mode="json")}
    assert version(packs) == 3, "asked is not promoted"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"tenant": "acme", "text": PACK.replace("up_to: 200000", "up_to: x")}, "line 8, refund.tiers.1.up_to"),
        ({"tenant": "acme", "text": "- a"}, "a pack is a mapping"),
        ({"tenant": "acme", "text": PACK + "#" * 20_000}, "text: may have at most 20000 characters"),
        ({"tenant": "acme", "text": PACK.replace("GBP", "USD")}, "acme pays in GBP"),
        ({"tenant": "acme", "text": None}, "text: must be a text"),
        ({}, "tenant: is missing"),
    ],
)
async def test_what_is_no_pack_for_the_tenant_is_answered_with_why(
    packs: Packs, request_: dict[str, object], says: str
) -> None:
    answer = await checking(packs)(request_)

    assert answer["status"] == 422
    assert answer["title"]
    assert says in answer["detail"]


async def test_a_tenants_first_pack_may_be_in_any_currency(packs: Packs) -> None:
    answer = await checking(packs)({"tenant": "newcomer", "text": PACK.replace("GBP", "USD")})

    assert answer["status"] == 200


NOBODY_PAYS_IN = PACK.replace("currency: GBP", "currency: XYZ").replace("name: acme", "name: other")


async def test_a_pack_in_a_currency_that_nobody_knows_is_neither_set_up_nor_promoted(tmp_path: Path) -> None:
    answer = await checking(Packs(tmp_path))({"tenant": "acme", "text": NOBODY_PAYS_IN})
    assert (answer["status"], answer["title"]) == (422, "Not a policy pack")
    assert "pack, currency: 'XYZ' is no currency that ISO 4217 has a minor unit for" in answer["detail"]

    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "policy.yaml").write_text(NOBODY_PAYS_IN)
    with pytest.raises(InvalidPack, match=r"policy\.yaml, currency: 'XYZ' is no currency"):
        Packs(tmp_path)


def test_a_promoted_pack_stays_in_force_when_its_currency_is_taken_out_of_use(packs: Packs) -> None:
    packs.hear(said(promoted(NEWER.replace("currency: GBP", "currency: HRK"))))
    assert version(packs) == 4
