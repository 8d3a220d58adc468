"""For all packs, turns and decisions: nobody is paid above a limit without people, and every call has one end."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from contracts.canonical import sha256
from contracts.facts import (
    CallDecided,
    Fact,
    HoldExpired,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.parts import CallQuote, CallResult, Person, ToolCall, Usage
from contracts.verify import verify_run
from hypothesis import given
from hypothesis import strategies as st
from policy import domain
from policy.pack import Limits, PolicyPack, Tier

from .drawn import ROLES, approvals, days, decisions, packs, turns
from .quotes import ABOUT, refund
from .told import LEE, LIA, SAM, SUE, Told

Said = tuple[int, Person, str, bool, int]
CHANGED = {"amount_pence": 1}


# Said again here on purpose: a mistake of the rules must not hide itself.


def pays(quote: CallQuote) -> bool:
    if quote.kind == "read" or quote.will_fail or (quote.duplicate_of and not quote.facts.again_after):
        return False
    return bool(quote.effect and quote.effect.amount_minor)


def amount(quote: CallQuote) -> int:
    return (quote.effect.amount_minor or 0) if quote.effect else 0


def weighable(quote: CallQuote) -> bool:
    return bool(amount(quote) > 0 and quote.subject and quote.effect and quote.effect.currency == "GBP")


def releasers(run: Told, quote: CallQuote, today: int) -> dict[str, int]:
    """The different people who could have released this very effect and did so in time, and their highest rank.

    today: what the customer is refunded today with it, which is within the limit of each of them.
    """
    found: dict[str, int] = {}
    editors: set[str] = set()
    held: dict[str, str] = {}
    expires_at = None
    was: dict[str, CallQuote] = {}
    edits: list[tuple[Person, str, str | None]] = []
    for event in run.history.events:
        match event.fact:
            case TurnForwarded() | TurnRefused():
                held = {}
            case TurnQuoted(quotes=quotes):
                held = {}
                now = next(q for q in quotes if q.call_id == quote.call_id)
                was[now.digest] = now
                edits = [(by, of, came or (now.digest if now.edited == of else None)) for by, of, came in edits]
            case TurnHeld(holds=holds):
                held, expires_at = {hold.call_id: hold.digest for hold in holds}, event.fact.expires_at
            case CallDecided(decision="approve", by=by) as said if said.call_id == quote.call_id:
                if by.subject in ("alex", "C-1004") or by.role not in ROLES or held.get(quote.call_id) != said.digest:
                    continue
                if expires_at is None or event.time >= expires_at:
                    continue
                if said.edited is not None:
                    edits.append((by, said.digest, None))
                    editors.add(by.subject)
                elif said.digest == quote.digest and (by.limit_minor is None or today <= by.limit_minor):
                    found[by.subject] = max(found.get(by.subject, 0), ROLES[by.role])
    found = {subject: rank for subject, rank in found.items() if subject not in editors}
    for by, of, came in edits:
        lowered = came == quote.digest and 0 < amount(quote) <= amount(was[of]) and quote.subject == was[of].subject
        if lowered and (by.limit_minor is None or today <= by.limit_minor):
            found[by.subject] = max(found.get(by.subject, 0), ROLES[by.role])
    return found


def enough(people: dict[str, int], tier: Tier) -> bool:
    ranks = [rank for rank in people.values() if rank >= ROLES[tier.role]]
    return len(ranks) >= tier.people and max(ranks) >= ROLES[tier.one_of_role or tier.role]


def passed(quote: CallQuote, pack: PolicyPack) -> Iterator[str]:
    """What follows from each limit that a refund passes by what the shop tells of it alone."""
    limits, facts = pack.limits, quote.facts

    def above(told: Any, most: Any) -> bool:
        return most is not None and (told is None or told > most)

    day, shop, share = limits.customer_day, limits.tenant_day, limits.profile_day.get("support")
    if day and (above(facts.refunded_today_minor, day.amount) or above(facts.refunds_today_by_customer, day.refunds)):
        yield day.then
    if share and above(facts.refunded_today_by_profile_minor, share.amount):
        yield share.then
    if shop and (
        above(facts.refunded_today_of_tenant_minor, shop.amount) or above(facts.refunds_today_of_tenant, shop.refunds)
    ):
        yield "refuse"
    if cooling := limits.cooling_off:
        for last in (facts.last_refund_at, facts.last_declined_at):
            if last is None or last > ABOUT.now - timedelta(seconds=60):
                yield cooling.then
    if (window := limits.refund_window) and (facts.window_from is None or facts.window_from.year == 1970):
        yield window.then
    if limits.own_customer_only and quote.subject != "C-1004":
        yield "refuse"


def paid_within_the_limits(run: Told, quoted: TurnQuoted, forwarded: TurnForwarded) -> None:
    pack = run.pack
    runs = {verdict.call_id for verdict in forwarded.verdicts if verdict.verdict == "run"}
    assert not any(quote.facts.stopped for quote in quoted.quotes if quote.call_id in runs), "a stop holds always"
    paying = [quote for quote in quoted.quotes if quote.call_id in runs and pays(quote)]
    today, alone = Counter[str](), Counter[str]()
    for quote in paying:
        today[quote.subject or ""] += max(amount(quote), 0)
    for quote in paying:
        customer = quote.subject or ""
        today[customer] = max(today[customer], quote.facts.refunded_today_minor or 0)
    guarded = {guard.subject: guard.at_most for guard in forwarded.guards if guard.name == "refunded_today_by_customer"}
    for quote in paying:
        customer = quote.subject or ""
        tier = next((tier for tier in pack.refund.tiers if today[customer] <= tier.up_to), None)
        if pack.mode == "enforce":
            assert weighable(quote)
            assert tier
            assert "refuse" not in passed(quote, pack)
            assert guarded[customer] <= tier.up_to, "nor is it paid once the day needs other people"
        if not enough(
            releasers(run, quote, today[customer]), tier if tier and weighable(quote) else pack.refund.tiers[-1]
        ):
            assert weighable(quote)
            alone[customer] += amount(quote)
            floor = quote.facts.decided_above_minor
            assert floor is None or amount(quote) <= floor, "the shop would not pay it"
            assert quote.facts.again_after is None
            assert quote.edited is None
            assert quote.facts.refunded_today_minor is not None
            assert quote.facts.refunded_today_minor <= pack.refund.automatic_up_to
            assert "hold" not in passed(quote, pack)
    for customer, total in alone.items():
        assert total <= pack.refund.automatic_up_to
        assert any(guard.subject == customer for guard in forwarded.guards)
    if pack.mode == "enforce" and paying:
        by_name = {guard.name: guard.at_most for guard in forwarded.guards}
        if pack.limits.tenant_day:
            assert by_name["refunded_today_of_tenant"] == pack.limits.tenant_day.amount
            assert by_name["refunds_today_of_tenant"] == pack.limits.tenant_day.refunds
        share = pack.limits.profile_day.get("support")
        if share and (alone or share.then == "refuse"):
            assert by_name["refunded_today_by_profile"] >= share.amount
    for quote in quoted.quotes:
        if quote.call_id in runs and quote.edited and quote.kind == "write" and not quote.will_fail:
            total = today[quote.subject or ""] if quote in paying else amount(quote)
            assert releasers(run, quote, total), "what a person changed runs by nobody's word"


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
    """How the attempt that was quoted last ended, if it has."""
    facts = [event.fact for event in run.history.events]
    last = max(at for at, fact in enumerate(facts) if isinstance(fact, TurnQuoted))
    return next((fact for fact in facts[last:] if isinstance(fact, TurnForwarded | TurnRefused)), None)


def propose(run: Told, calls: list[CallQuote]) -> None:
    proposed = [ToolCall(call_id=call.call_id, tool=call.tool, arguments={}) for call in calls]
    run.say(
        TurnProposed(
            turn=1,
            agent="support",
            content=[],
            calls=proposed,
            stop_reason="tool_use",
            usage=Usage(),
            cost_micro_usd=0,
            request_digest=sha256("request"),
            tools_digest=sha256("tools"),
        )
    )


def decided(quote: CallQuote, by: Person, decision: str, digest_is_right: bool) -> CallDecided:
    digest = quote.digest if digest_is_right else sha256("another")
    edited = CHANGED if decision == "edit" else None
    said = {"turn": 1, "call_id": quote.call_id, "digest": digest, "by": by, "edited": edited}
    return CallDecided.model_validate(said | {"decision": "approve" if decision == "edit" else decision})


def changed(quote: CallQuote, data: st.DataObject) -> CallQuote:
    """What a person's change may come to: mostly less money, at times more, or somebody else's."""
    less = max(amount(quote) // 2, 1)
    to = data.draw(st.sampled_from([less, less, less, amount(quote) + 100]), "changed to")
    customer = data.draw(st.sampled_from([quote.subject] * 5 + ["C-2"]))
    again = refund(quote.call_id, to, today=data.draw(st.sampled_from([to, to, None])), customer=customer)
    facts = quote.facts.model_copy(update={"refunded_today_minor": again.facts.refunded_today_minor})
    return again.model_copy(update={"edited": quote.digest, "arguments": CHANGED, "facts": facts})


def tell(run: Told, calls: list[CallQuote], said: list[Said], data: st.DataObject) -> None:
    """A turn from its proposal on: decisions as they come, quoted anew where a person changed a call or, at times,
    where the world did once it was forwarded."""
    propose(run, calls)
    run.quote(*calls)
    attempt = 1
    for which, by, decision, right, minutes in said:
        quote = calls[which % len(calls)]
        fact = decided(quote, by, decision, right)
        open_holds = {hold.call_id: hold.digest for held in run.history.all(TurnHeld) for hold in held.holds}
        run.hear(run.say(fact, after=timedelta(minutes=minutes)))
        if end(run) is None:
            if decision == "edit" and open_holds.get(fact.call_id) == fact.digest:
                calls = [changed(each, data) if each is quote else each for each in calls]
                attempt += 1
                run.quote(*calls, attempt=attempt)
        elif isinstance(end(run), TurnForwarded) and data.draw(st.booleans(), "the world changes"):
            calls = [data.draw(st.sampled_from([each, each, refund(each.call_id, 9900)])) for each in calls]
            attempt += 1
            run.quote(*calls, attempt=attempt)
        if attempt == 4:
            break


def execute(run: Told, calls: list[CallQuote]) -> None:
    last = end(run)
    if isinstance(last, TurnForwarded):
        results = [CallResult(call_id=v.call_id, content="", is_error=v.verdict == "declined") for v in last.verdicts]
        run.say(TurnExecuted(turn=1, attempt=last.attempt, receipt_id="r", results=results))


@given(packs(), turns(), st.lists(decisions(), max_size=8), st.data())
def test_nothing_above_a_limit_is_forwarded_without_enough_different_people(
    pack: PolicyPack, calls: list[CallQuote], said: list[Said], data: st.DataObject
) -> None:
    run = Told(pack)
    tell(run, calls, said, data)
    execute(run, calls)

    holds_for_every_run(run)
    # Of decisions that approvals would not have recorded verify says that, too; here they are only to change nothing.
    wrong = [found.says for found in verify_run(list(run.history.events))]
    about = ("without the decisions", "verdict was not", "never forwarded", "what is forwarded", "what is held")
    assert not [says for says in wrong if any(words in says for words in about)]


@given(packs(modes=("enforce",)), days(), approvals(), st.data())
def test_what_a_customer_is_refunded_in_a_day_is_released_by_the_people_of_all_of_it(
    pack: PolicyPack, calls: list[CallQuote], said: list[Said], data: st.DataObject
) -> None:
    run = Told(pack.model_copy(update={"limits": Limits()}))
    tell(run, calls, said, data)
    execute(run, calls)

    holds_for_every_run(run)
    assert not [found for found in verify_run(list(run.history.events)) if "without the decisions" in found.says]


@given(packs(), turns(), st.lists(decisions(), max_size=6), st.randoms())
def test_whatever_the_order_of_decisions_and_deliveries_each_call_ends_once(
    pack: PolicyPack, calls: list[CallQuote], said: list[Said], chance: Any
) -> None:
    run = Told(pack)
    heard = [run.say(TurnQuoted(turn=1, attempt=1, quotes=calls))]
    run.hear(heard[0])
    chance.shuffle(said)
    said = [each for each in said if each[2] != "edit"]
    heard += [run.say(decided(calls[which % len(calls)], by, what, right)) for which, by, what, right, _ in said]
    for event in chance.choices(heard, k=2 * len(heard)):
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
