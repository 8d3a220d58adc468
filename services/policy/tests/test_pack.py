"""A pack says what is wrong with it, and where."""

import hashlib
import inspect
import re
from contextlib import suppress
from pathlib import Path

import pytest
from contracts.parts import Needs
from hypothesis import given
from hypothesis import strategies as st
from policy import domain, limits, rules
from policy.pack import InvalidPack, Limits, parse
from policy.packs import Packs

from .quotes import PACK

DEPLOYED = Path(__file__).parents[3] / "deploy" / "tenants"


def test_a_pack_is_read_with_its_tiers_and_the_digest_of_its_text() -> None:
    pack = parse(PACK)

    assert (pack.name, pack.version, pack.currency, pack.refund.automatic_up_to) == ("acme", 3, "GBP", 5000)
    assert [tier.needs for tier in pack.refund.tiers] == [
        Needs(role="approver", people=1),
        Needs(role="approver", people=2, one_of_role="lead"),
    ]
    assert pack.stamp.digest == hashlib.sha256(PACK.encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "automatic_up_to: 5000",
            "automatic_up_to: 50.00",
            "acme.yaml, line 5, refund.automatic_up_to: must be a",
        ),
        (
            "automatic_up_to: 5000",
            'automatic_up_to: "5000"',
            "line 5, refund.automatic_up_to: must be a whole number",
        ),
        (
            "automatic_up_to: 5000",
            "automatic_up_to: true",
            "line 5, refund.automatic_up_to: must be a whole number",
        ),
        (
            "automatic_up_to: 5000",
            "automatic_up_to: -1",
            "line 5, refund.automatic_up_to: must be at least",
        ),
        (
            "automatic_up_to: 5000",
            "automatic_up_to: 5000\n  automatic_up_to: 9",
            "line 6, refund.automatic_up_to: is given twice",
        ),
        ("up_to: 200000", "up_to: 40000", "line 4, refund: each tier must reach above the one before"),
        (
            "up_to: 50000",
            "up_to: 50000\n      role: lead",
            "line 4, refund: tier 2 asks for fewer or lesser people",
        ),
        (
            "up_to: 50000",
            "up_to: 50000\n      people: 3",
            "line 4, refund: tier 2 asks for fewer or lesser people",
        ),
        ("up_to: 200000", "upto: 200000", "line 8, refund.tiers.1.up_to: is missing"),
        ("people: 2", "people: 0", "line 9, refund.tiers.1.people: must be at least"),
        ("one_of_role: lead", "one_of_role: boss", "line 10, refund.tiers.1.one_of_role: must be 'lead'"),
        ("issue_refund: refund", "issue_refund: yes", "line 12, writes.issue_refund: must be 'refund' or"),
        ("currency: GBP", "currency: pounds", "line 3, currency: must have the form"),
        (
            "expires_after_seconds: 86400",
            "expires_after_seconds: 60",
            "line 15, hold: remind_after_seconds must",
        ),
        ("version: 3", "version: 3\nmode: off", "line 3, mode: must be 'enforce' or 'audit'"),
        ("version: 3", "version: 9007199254740992", "line 2, version: must be"),
        ("  expires", "  escalate_after_seconds: 60\n  expires", "escalate_after_seconds must be between"),
        (
            "  expires",
            "  escalate_after_seconds: 86400\n  expires",
            "escalate_after_seconds must be between",
        ),
        *(
            ("writes:", f"limits:\n  {limit}\nwrites:", f"line 12, limits.{says}")
            for limit, says in (
                ("customer_day: {}", "customer_day: give amount, refunds or both"),
                ("tenant_day: {amount: 5, then: hold}", "tenant_day.then: is not known here"),
                ("customer_day: {amount: 5, then: ask}", "customer_day.then: must be 'hold' or 'refuse'"),
                ("customer_day: {amount: 5, then: refuse, role: lead}", "customer_day: role is for"),
                ("profile_day: {support: {then: hold}}", "profile_day.support.amount: is missing"),
                ("profile_day: {a.b: {amount: 5}}", "profile_day.a.b"),
                ("cooling_off: {then: hold}", "cooling_off: give after_decline_seconds"),
                ("cooling_off: {after_refund_seconds: 0}", "cooling_off.after_refund_seconds: must be"),
                ("refund_window: {days: -1}", "refund_window.days: must be"),
                ("own_customer_only: 1", "own_customer_only: must be true or false"),
                ("hourly: {}", "hourly: is not known here"),
            )
        ),
        ("version: 3", "version: 3\nlimit: {}", "line 3, limit: is not known here"),
        ("version: 3", "version: 3\ndigest: abc", "line 3, digest: is computed"),
        ("version: 3", "version: [3", "line 3: expected ',' or ']'"),
        ("version: 3", "version: &again [*again]", "line 2: write it out"),
        ("name: acme", "name: a.b", "line 1, name: must have the form"),
    ],
)
def test_a_wrong_pack_is_refused_with_line_and_field(old: str, new: str, says: str) -> None:
    assert old in PACK

    with pytest.raises(InvalidPack) as error:
        parse(PACK.replace(old, new), source="acme.yaml")

    assert says in str(error.value), error.value


@pytest.mark.parametrize(
    "text",
    [
        "", "- a\n", "just words", "\x00", "a: *b", "!!set {name, version}", "version: " + "9" * 5000, "a: 2026-99-99",
        "[" * 5000, PACK + "#" * 20_000, "? [a]\n: b", "1: 2", "a: b\n---\nc: d", "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_pack_at_all_is_refused(text: str) -> None:
    with pytest.raises(InvalidPack, match=r"p\.yaml"):
        parse(text, source="p.yaml")


def test_what_is_nested_for_its_own_sake_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidPack, match="line 2: no pack is nested as deep as that"):
        parse("name: acme\nlimits: " + "[" * 20 + "]" * 20)


@given(
    st.lists(st.tuples(st.integers(0, len(PACK) - 1), st.integers(0, 12), st.text(max_size=12)), min_size=1, max_size=4)
)
def test_whatever_the_text_it_is_a_pack_or_said_to_be_none(cuts: list[tuple[int, int, str]]) -> None:
    text = PACK
    for at, length, put in cuts:
        text = text[:at] + put + text[at + length :]

    with suppress(InvalidPack):
        assert parse(text).stamp.digest == hashlib.sha256(text.encode()).hexdigest()


def test_everything_wrong_is_named_at_once() -> None:
    with pytest.raises(InvalidPack) as error:
        parse("name: acme\nversion: x\n")

    assert "line 2, version" in str(error.value)
    assert "refund: is missing" in str(error.value)


@pytest.mark.parametrize(("tenant", "currency"), [("acme", "GBP"), ("globex", "USD")])
def test_the_deployed_packs_hold_the_limits_of_the_demo(tenant: str, currency: str) -> None:
    pack = Packs(DEPLOYED).of(tenant)

    assert pack is not None
    assert (pack.name, pack.currency, pack.refund.automatic_up_to) == (tenant, currency, 5000)
    assert [tier.up_to for tier in pack.refund.tiers] == [50000, 200000]
    assert (pack.hold.remind_after_seconds, pack.hold.expires_after_seconds) == (18 * 3600, 24 * 3600)


def test_the_packs_of_the_guide_can_be_read_and_say_what_it_says() -> None:
    guide = (Path(__file__).parents[1] / "PACKS.md").read_text()
    smallest, more = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)

    assert parse(smallest).limits == Limits()
    limited = parse(smallest + more).limits
    assert all(limited.model_dump().values()), "the guide has every limit"
    assert parse(smallest + "mode: audit\n").audits


def test_the_guide_names_every_rule() -> None:
    guide = (Path(__file__).parents[1] / "PACKS.md").read_text()
    code = "".join(inspect.getsource(module) for module in (rules, limits, domain))
    said = set(re.findall(r'(?:Run|Refuse|AskPeople)\(\s*"([a-z-]+)"', code)) | {
        rules.STOPPED,
        rules.AUTOMATIC,
        rules.UNKNOWN,
    }
    said |= set(re.findall(r'\("([a-z-]+)", reason', code))
    said |= set(re.findall(r'_total\("([a-z-]+)"', code)) | set(re.findall(r'Bound\(f?"([a-z-]+)"', code))

    assert len(said) > 20
    assert [rule for rule in said if f"`{rule}`" not in guide and not f"`{rule}".startswith("`tenant-day-")] == []
