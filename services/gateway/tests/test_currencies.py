"""A tenant's currency and locale: what its people are shown, what they may type, and what its files have to say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from contracts.entitlement import Held, bar
from contracts.facts import RunStarted, TurnQuoted
from contracts.parts import Person
from gateway import audit
from gateway.console import words
from gateway.console.edits import PREFIX, arguments, fields
from gateway.profiles import InvalidTenant, Tenants

from .conftest import World
from .facts import SAM, story_from_the_hold, story_to_the_hold
from .test_console import browser
from .test_stops import approvals
from .test_streams import some, stream

pytestmark = pytest.mark.timeout(60)
NNBSP, NBSP = "\u202f", "\u00a0"
RUN = "TCK-2004-1"
ALONE = Person(subject="sue", issuer=SAM.issuer, role="approver", limit_minor=9000)


def pays_in(world: World, currency: str, locale: str) -> None:
    """Before anybody asks for a page: a tenant's file is read once."""
    folder = world.settings.tenants_dir / "acme"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tenant.yaml").write_text(f"policy_pack: acme\ncurrency: {currency}\nlocale: {locale}\n")


def story(facts: list[Any], currency: str, locale: str) -> list[Any]:
    """The story as a tenant's services say it who pays in another currency."""
    told = []
    for fact in facts:
        if isinstance(fact, RunStarted):
            fact = fact.model_copy(update={"currency": currency, "locale": locale})
        if isinstance(fact, TurnQuoted):
            fact = TurnQuoted.model_validate_json(fact.model_dump_json().replace('"GBP"', f'"{currency}"'))
        told.append(fact)
    return told


@pytest.mark.parametrize(
    ("currency", "locale", "shown"),
    [
        ("XOF", "fr_SN", f"18{NNBSP}000{NBSP}XOF"),
        ("XOF", "en_GB", f"XOF{NBSP}18,000"),
        ("JPY", "ja_JP", "￥18,000"),
        ("KWD", "en_GB", f"KWD{NBSP}18.000"),
        ("EUR", "de_DE", f"180,00{NBSP}€"),
        ("GBP", "en_GB", "£180.00"),
        ("USD", "en_US", "$180.00"),
    ],
)
async def test_a_held_refund_is_shown_as_its_tenant_writes_it(
    world: World, currency: str, locale: str, shown: str
) -> None:
    pays_in(world, currency, locale)
    await world.ticket()
    await world.others.say(RUN, *story(story_to_the_hold(), currency, locale))
    await world.seen(RUN)
    async with browser(world, "sam") as sam:
        queue, ticket = [(await sam.get(path)).text for path in ("/approvals", f"/tickets/TCK-2004?run={RUN}")]
    assert f"Approve {shown}" in queue
    assert f"Approve {shown}" in ticket
    assert "180.00 XOF" not in queue + ticket
    async with world.client("sam") as client:
        [approval] = (await client.get("/v1/approvals")).json()["approvals"]
        run = (await client.get(f"/v1/runs/{RUN}")).json()
    assert (approval["locale"], run["locale"]) == (locale, locale)


async def test_the_stream_shows_an_amount_as_the_page_does(world: World) -> None:
    pays_in(world, "XOF", "fr_SN")
    await world.ticket()
    await world.others.say(RUN, *story(story_to_the_hold(), "XOF", "fr_SN"))
    await world.seen(RUN)
    async with browser(world, "sam") as sam, stream(sam, f"/console/stream/runs/{RUN}") as frames:
        await world.others.say(RUN, *story(story_from_the_hold(), "XOF", "fr_SN"))
        streamed = ""
        while "Refund made" not in streamed:
            [frame] = await some(frames, 1)
            streamed += (
                "".join(one["html"] for one in json.loads(frame.data)["changes"]) if frame.data[:1] == "{" else ""
            )
        await world.seen(RUN)
        page = (await sam.get(f"/tickets/TCK-2004?run={RUN}")).text
    amount = f"−18{NNBSP}000{NBSP}XOF"
    assert amount in streamed
    assert amount in page


async def test_a_run_is_started_with_the_currency_and_the_locale_of_its_tenant(world: World) -> None:
    pays_in(world, "JPY", "ja_JP")
    await world.ticket()
    async with world.client() as alex:
        run = (await alex.post("/v1/tickets/TCK-2004/runs", json={})).json()["run"]
    started = (await world.runs.history("acme", run)).started
    assert started is not None
    assert (started.currency, started.locale) == ("JPY", "ja_JP")


async def test_a_stop_above_an_amount_is_typed_and_shown_in_the_tenants_currency(world: World) -> None:
    asked = await approvals(world)
    pays_in(world, "XOF", "fr_SN")
    async with browser(world, "ada") as ada:
        refused = await ada.post("/stops", data={"reason": "r", "above": "100,00"})
        done = await ada.post("/stops", data={"reason": "r", "above": f"18{NNBSP}000 XOF"})
        page = (await ada.get("/stops")).text
    assert (refused.status_code, done.status_code) == (422, 303)
    assert "Write the amount as in 100, or leave it empty" in refused.text
    assert [body["above_minor"] for body in asked] == [18000]
    assert f"above 18{NNBSP}000{NBSP}XOF to one customer in a day is stopped" in page
    assert "XOF, as in 100; empty: whatever the amount" in page
    async with world.client("sam") as sam:
        [stop] = (await sam.get("/v1/stops")).json()["stops"]
    assert (stop["above_minor"], stop["above"]) == (18000, f"18{NNBSP}000{NBSP}XOF")


@pytest.mark.parametrize(
    ("currency", "locale", "value", "typed", "minor"),
    [
        ("XOF", "fr_SN", "18000", f"12{NNBSP}000", 12000),
        ("JPY", "en_US", "18000", "¥12,000", 12000),
        ("EUR", "de_DE", "180,00", "120,5", 12050),
        ("KWD", "en_GB", "18.000", "12.5", 12500),
    ],
)
def test_an_amount_in_the_form_with_changes_is_what_a_person_of_the_tenant_would_type(
    currency: str, locale: str, value: str, typed: str, minor: int
) -> None:
    [quoted] = [fact for fact in story(story_to_the_hold(), currency, locale) if isinstance(fact, TurnQuoted)][-1:]
    [quote] = quoted.quotes
    token = words.LOCALE.set(locale)
    try:
        [field] = [one for one in fields(quote) if one.kind == "money"]
        changed = arguments(quote, {PREFIX + field.name: typed})
        unchanged = arguments(quote, {PREFIX + field.name: field.value})
    finally:
        words.LOCALE.reset(token)
    assert field.value == value
    assert changed["amount_pence"] == minor
    assert unchanged == quote.arguments


async def test_who_may_release_less_is_told_so_in_the_tenants_currency(world: World) -> None:
    pays_in(world, "XOF", "en_GB")
    await world.ticket()
    facts = story(story_to_the_hold(), "XOF", "en_GB")
    facts[-1] = facts[-1].model_copy(
        update={
            "holds": [
                hold.model_copy(update={"needs": hold.needs.model_copy(update={"amount_minor": 18000})})
                for hold in facts[-1].holds
            ]
        }
    )
    await world.others.say(RUN, *facts)
    view = await world.runs.read("acme", RUN)
    [call] = view.holds
    barred = bar(Held(view.requested_by, view.customer, call.hold, call.quote, locale=view.locale), ALONE, "approve")
    assert barred is not None
    assert f"it is XOF{NBSP}18,000 to this customer today; your own limit is XOF{NBSP}9,000." in barred.detail


def test_an_amount_stays_in_one_piece_in_a_row_of_the_audit() -> None:
    assert audit.line(f" 18{NNBSP}000{NBSP}XOF\n to  this customer ") == f"18{NNBSP}000{NBSP}XOF to this customer"


# The tenant's files


def tenant(folder: Path, **files: str) -> Path:
    (folder / "shop").mkdir(parents=True)
    for name, text in files.items():
        (folder / "shop" / f"{name}.yaml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("locale: en_ZZ", "locale: 'en_ZZ' is no locale that CLDR knows"),
        ("locale: english", "locale: 'english' is no locale that CLDR knows"),
        ("locale: no", "locale: must be a text"),
        ("currency: EURO", "currency: 'EURO' is no currency that ISO 4217 has a minor unit for"),
        ("currency: XXX", "currency: 'XXX' is no currency"),
        ("currency: gbp", "currency: 'gbp' is no currency"),
    ],
)
def test_a_tenant_whose_currency_or_locale_nobody_knows_is_refused_with_file_and_field(
    tmp_path: Path, text: str, said: str
) -> None:
    folder = tenant(tmp_path, tenant=f"policy_pack: shop\n{text}\n")
    with pytest.raises(InvalidTenant, match=re.escape(said)) as refused:
        Tenants(folder)
    assert str(folder / "shop" / "tenant.yaml") in str(refused.value)


@pytest.mark.parametrize("other", ["policy", "demo"])
def test_files_of_one_tenant_that_are_about_different_currencies_are_refused(tmp_path: Path, other: str) -> None:
    files = {"tenant": "currency: JPY\n", "policy": "currency: JPY\n", "demo": "currency: JPY\n"}
    Tenants(tenant(tmp_path / "same", **files)).check_currencies()
    with pytest.raises(InvalidTenant, match=f"currency: JPY, and .*{other}.yaml says GBP"):
        Tenants(tenant(tmp_path / "other", **files | {other: "currency: GBP\n"})).check_currencies()


def test_the_locale_of_a_tenant_is_read_however_it_is_spelt(tmp_path: Path) -> None:
    folder = tenant(tmp_path, tenant="policy_pack: shop\ncurrency: JPY\nlocale: ja-jp\n")
    assert Tenants(folder).of("shop").locale == "ja_JP"
