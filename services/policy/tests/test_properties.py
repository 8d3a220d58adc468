"""For all packs, turns and decisions: nobody is paid above a limit without people, and every call has one end."""

from collections import Counter
from datetime import timedelta

from contracts.canonical import sha256
from contracts.facts import (
    CallDecided,
    CallQuote,
    Fact,
    HoldExpired,
    Person,
    TurnForwarded,
    TurnHeld,
    TurnQuoted,
    TurnRefused,
)
from contracts.testing import person
from hypothesis import given
from hypothesis import strategies as st
from policy import domain
from policy.pack import PolicyPack, Tier

from .quotes import read, refund, write
from .told import ALEX, LEE, LIA, SAM, SUE, Told

PEOPLE = [ALEX, SAM, SUE, LEE, LIA, person("alex", "lead"), person("C-1004", "lead"), person("lee", "approver")]
ROLES = {"approver": 1, "lead": 2}


@st.composite
def packs(draw: st.DrawFn) -> PolicyPack:
    limits = sorted(draw(st.sets(st.integers(0, 300), min_size=2, max_size=4)))
    people = sorted(draw(st.lists(st.integers(1, 3), min_size=3, max_size=3)))
    seats = sorted(draw(st.lists(st.sampled_from([0, 1, 2]), min_size=3, max_size=3)))
    tiers = [
        {
            "up_to": limit * 100,
            "people": count,
            "role": "lead" if seat == 2 else "approver",
            "one_of_role": "lead" if seat == 1 else None,
        }
        for limit, count, seat in zip(limits[1:], people, seats, strict=False)
    ]
    return PolicyPack.model_validate(
        {
            "name": "acme",
            "version": 1,
            "currency": "GBP",
            "refund": {"automatic_up_to": limits[0] * 100, "tiers": tiers},
            "writes": {"issue_refund": "refund", "cancel_subscription": "automatic"},
            "hold": {"remind_after_seconds": 3600, "expires_after_seconds": 7200},
            "digest": sha256("pack"),
        }
    )


@st.composite
def quotes(draw: st.DrawFn, call_id: str) -> CallQuote:
    kind = draw(st.sampled_from(["read", "write", "unlisted", "refund", "refund", "refund"]))
    if kind == "read":
        return read(call_id)
    if kind in ("write", "unlisted"):
        return write("cancel_subscription" if kind == "write" else "unheard_of", call_id)
    amount = draw(st.one_of(st.integers(1, 400).map(lambda pounds: pounds * 100), st.sampled_from([None, 0, -100])))
    return refund(
        call_id,
        amount,
        today=draw(st.one_of(st.none(), st.integers(0, 400).map(lambda pounds: pounds * 100))),
        customer=draw(st.sampled_from(["C-1", "C-1", "C-2", None])),
        currency=draw(st.sampled_from(["GBP"] * 9 + ["USD"])),
        tool=draw(st.sampled_from(["issue_refund"] * 5 + ["unheard_of"])),
        will_fail=draw(st.sampled_from([None] * 9 + ["No."])),
        duplicate_of=draw(st.sampled_from([None] * 9 + ["RF-1"])),
        again_after=draw(st.sampled_from([None] * 9 + ["RF-0"])),
    )


@st.composite
def turns(draw: st.DrawFn) -> list[CallQuote]:
    """Anything at all; or an amount split into ordinary refunds to one customer, whose total may be told wrong."""
    ids = [f"call-{n}" for n in range(draw(st.integers(1, 4)))]
    if draw(st.booleans()):
        return [draw(quotes(call_id)) for call_id in ids]
    pounds = draw(st.lists(st.integers(1, 150), min_size=len(ids), max_size=len(ids)))
    return [
        refund(call_id, 100 * each, today=100 * draw(st.sampled_from([each, sum(pounds)])), customer="C-1")
        for call_id, each in zip(ids, pounds, strict=True)
    ]


@st.composite
def decisions(draw: st.DrawFn) -> tuple[int, Person, str, bool, int]:
    """Which call, by whom, what, for the digest as quoted or another, and how many minutes later."""
    return (
        draw(st.integers(0, 3)),
        draw(st.sampled_from(PEOPLE)),
        draw(st.sampled_from(["approve", "approve", "approve", "decline"])),
        draw(st.sampled_from([True] * 5 + [False])),
        draw(st.sampled_from([0, 1, 1, 30, 100])),
    )


def decided(quote: CallQuote, by: Person, decision: str, digest_is_right: bool) -> CallDecided:
    digest = quote.digest if digest_is_right else sha256("another")
    return CallDecided.model_validate(
        {"turn": 1, "call_id": quote.call_id, "digest": digest, "decision": decision, "by": by}
    )


def pays(quote: CallQuote) -> bool:
    """Said again here on purpose: a mistake of the rules must not hide itself."""
    if quote.kind == "read" or quote.will_fail or (quote.duplicate_of and not quote.facts.again_after):
        return False
    return bool(quote.effect and quote.effect.amount_minor)


def amount(quote: CallQuote) -> int:
    return (quote.effect.amount_minor or 0) if quote.effect else 0


def approvers(run: Told, quote: CallQuote) -> dict[str, int]:
    """The different people who could have approved this very effect and did so in time, and their highest rank."""
    found: dict[str, int] = {}
    expires_at = None
    for event in run.history.events:
        if isinstance(event.fact, TurnHeld):
            expires_at = event.fact.expires_at
        if (
            isinstance(event.fact, CallDecided)
            and (event.fact.call_id, event.fact.digest, event.fact.decision) == (quote.call_id, quote.digest, "approve")
            and event.fact.by.subject not in ("alex", "C-1004")
            and event.fact.by.role in ROLES
            and expires_at is not None
            and event.time < expires_at
        ):
            by = event.fact.by
            found[by.subject] = max(found.get(by.subject, 0), ROLES[by.role])
    return found


def enough(people: dict[str, int], tier: Tier) -> bool:
    ranks = [rank for rank in people.values() if rank >= ROLES[tier.role]]
    return len(ranks) >= tier.people and max(ranks) >= ROLES[tier.one_of_role or tier.role]


def paid_within_the_limits(run: Told, quoted: TurnQuoted, forwarded: TurnForwarded) -> None:
    runs = {verdict.call_id for verdict in forwarded.verdicts if verdict.verdict == "run"}
    paying = [quote for quote in quoted.quotes if quote.call_id in runs and pays(quote)]
    together, alone = Counter[str](), Counter[str]()
    for quote in paying:
        assert quote.subject
        assert quote.effect
        assert quote.effect.currency == "GBP"
        assert amount(quote) > 0
        together[quote.subject] += amount(quote)
    for quote in paying:
        customer = quote.subject or ""
        tier = next(tier for tier in run.pack.refund.tiers if together[customer] <= tier.up_to)
        if not enough(approvers(run, quote), tier):
            alone[customer] += amount(quote)
            assert quote.facts.again_after is None
            assert quote.facts.refunded_today_minor is not None
            assert quote.facts.refunded_today_minor <= run.pack.refund.automatic_up_to
    for customer, total in alone.items():
        assert total <= run.pack.refund.automatic_up_to
        assert any(guard.subject == customer for guard in forwarded.guards)


def holds_for_every_run(run: Told) -> None:
    quoted: TurnQuoted | None = None
    answers: Counter[int] = Counter()
    for event in run.history.events:
        match event.fact:
            case TurnQuoted():
                quoted = event.fact
            case TurnForwarded() as forwarded:
                assert quoted is not None
                assert forwarded.attempt == quoted.attempt
                assert [v.call_id for v in forwarded.verdicts] == [q.call_id for q in quoted.quotes]
                assert [v.digest for v in forwarded.verdicts] == [q.digest for q in quoted.quotes]
                paid_within_the_limits(run, quoted, forwarded)
                answers[forwarded.attempt] += 1
            case TurnRefused() as refused:
                assert quoted is not None
                assert [r.call_id for r in refused.results] == [q.call_id for q in quoted.quotes]
                answers[refused.attempt] += 1
    assert all(count == 1 for count in answers.values())


def end(run: Told) -> Fact | None:
    return next((e.fact for e in run.history.events if isinstance(e.fact, TurnForwarded | TurnRefused)), None)


@given(packs(), turns(), st.lists(decisions(), max_size=8), st.data())
def test_nothing_above_a_limit_is_forwarded_without_enough_different_people(
    pack: PolicyPack, calls: list[CallQuote], said: list[tuple[int, Person, str, bool, int]], data: st.DataObject
) -> None:
    run = Told(pack)
    run.quote(*calls)
    for which, by, decision, right, minutes in said:
        fact = decided(calls[which % len(calls)], by, decision, right)
        run.hear(run.say(fact, after=timedelta(minutes=minutes)))
        if end(run) and data.draw(st.booleans(), "the world changes"):
            changed = [data.draw(st.sampled_from([quote, refund(quote.call_id, 9900)])) for quote in calls]
            attempt = sum(isinstance(event.fact, TurnQuoted) for event in run.history.events) + 1
            if attempt <= 3:
                run.quote(*changed, attempt=attempt)

    holds_for_every_run(run)


@given(packs(), turns(), st.lists(decisions(), max_size=6), st.randoms())
def test_whatever_the_order_of_decisions_and_deliveries_each_call_ends_once(
    pack: PolicyPack, calls: list[CallQuote], said: list[tuple[int, Person, str, bool, int]], chance: object
) -> None:
    run = Told(pack)
    heard = [run.say(TurnQuoted(turn=1, attempt=1, quotes=calls))]
    run.hear(heard[0])
    chance.shuffle(said)  # type: ignore[attr-defined]
    heard += [run.say(decided(calls[which % len(calls)], by, what, right)) for which, by, what, right, _ in said]
    for event in chance.choices(heard, k=2 * len(heard)):  # type: ignore[attr-defined]
        run.hear(event)
    held = next((event.fact for event in run.history.events if isinstance(event.fact, TurnHeld)), None)
    if held and end(run) is None:
        expiry = HoldExpired(turn=1, call_ids=[hold.call_id for hold in held.holds])
        run.hear(run.say(expiry, after=timedelta(hours=2)))

    assert end(run) is not None
    holds_for_every_run(run)
    assert all(domain.react(run.history, event, pack) is None for event in run.history.events)


@given(packs(), turns(), st.integers(0, 3), st.sampled_from([SAM, LEE]))
def test_what_somebody_entitled_declined_never_runs(
    pack: PolicyPack, calls: list[CallQuote], which: int, by: Person
) -> None:
    run = Told(pack)
    held = run.quote(*calls)
    if not isinstance(held, TurnHeld):
        return
    hold = held.holds[which % len(held.holds)]
    if ROLES[by.role] < ROLES[hold.needs.role]:
        return
    quote = next(quote for quote in calls if quote.call_id == hold.call_id)
    run.decide(by, quote, "decline")
    for other in calls:
        for person_ in (SUE, LIA, LEE, SAM):
            run.decide(person_, other)
    run.expire(*[call.call_id for call in calls])
    run.quote(*calls, attempt=2)

    for forwarded in run.history.all(TurnForwarded):
        assert {v.verdict for v in forwarded.verdicts if v.call_id == hold.call_id} == {"declined"}
