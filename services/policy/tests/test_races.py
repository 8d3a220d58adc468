"""Several runs at once against one day's limits: whatever is quoted before whatever is paid, none is exceeded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from contracts.facts import Fact, TurnForwarded, TurnHeld, TurnQuoted, TurnRefused
from contracts.parts import CallQuote, Guard, Person
from hypothesis import given
from hypothesis import strategies as st
from policy.pack import PolicyPack, parse

from .quotes import NEVER, PACK, refund
from .told import LEE, LIA, SAM, SUE, Told, verdicts

Refund = tuple[str, int]  # to whom, how much


@dataclass
class Shop:
    """What the tools service does with quotes and guards, in little."""

    paid: list[tuple[str, int, datetime]] = field(default_factory=list)
    receipts: list[tuple[str, int, str]] = field(
        default_factory=list
    )  # who, what they have got today, and by whose word

    def totals(self, customer: str) -> dict[str, int]:
        own = [amount for to, amount, _ in self.paid if to == customer]
        every = [amount for _, amount, _ in self.paid]
        return {
            "refunded_today_by_customer": sum(own),
            "refunds_today_by_customer": len(own),
            "refunded_today_by_profile": sum(every),
            "refunded_today_of_tenant": sum(every),
            "refunds_today_of_tenant": len(every),
        }

    def last(self, customer: str) -> datetime:
        return max((at for to, _, at in self.paid if to == customer), default=NEVER)

    def quote(self, run: Told, calls: list[Refund], attempt: int) -> Fact | None:
        quotes, before = [], Shop(list(self.paid))
        for number, (customer, amount) in enumerate(calls):
            last = self.last(customer)
            before.paid.append((customer, amount, run.now))
            totals = before.totals(customer)
            facts: dict[str, Any] = {
                "refunds_today_by_customer": totals["refunds_today_by_customer"],
                "refunded_today_by_profile_minor": totals["refunded_today_by_profile"],
                "refunded_today_of_tenant_minor": totals["refunded_today_of_tenant"],
                "refunds_today_of_tenant": totals["refunds_today_of_tenant"],
                "last_refund_at": last,
                "last_declined_at": NEVER,
            }
            today = totals["refunded_today_by_customer"]
            quotes.append(refund(f"c{number}", amount, customer=customer, today=today, facts=facts))
        return run.quote(*quotes, attempt=attempt)

    def execute(self, run: Told, calls: list[Refund], forwarded: TurnForwarded) -> bool:
        """Whether it was paid: all of it, if every guard holds with it."""
        ids = [f"c{number}" for number in range(len(calls))]
        runs = {verdict.call_id for verdict in forwarded.verdicts if verdict.verdict == "run"}
        paying = [call for call_id, call in zip(ids, calls, strict=True) if call_id in runs]
        after = Shop([*self.paid, *((customer, amount, run.now) for customer, amount in paying)])
        if not all(self._holds(guard, after) for guard in forwarded.guards):
            return False
        self.paid = after.paid
        words = {verdict.call_id: verdict.reason for verdict in forwarded.verdicts}
        for call_id, (customer, _) in zip(ids, calls, strict=True):
            if call_id in runs:
                today = after.totals(customer)["refunded_today_by_customer"]
                self.receipts.append((customer, today, words[call_id]))
        return True

    def _holds(self, guard: Guard, after: "Shop") -> bool:
        if guard.name.startswith("last"):
            last = self.last(guard.subject) if guard.name == "last_refund_of_customer" else NEVER
            return int(last.timestamp()) <= guard.at_most
        return after.totals(guard.subject)[guard.name] <= guard.at_most


def all_at_once(
    pack: PolicyPack,
    turns: list[list[Refund]],
    order: Callable[[list[int]], None],
    decide: Callable[[Told], Fact | None],
) -> tuple[Shop, list[Told]]:
    """Every run is quoted before any pays; then they go on one step at a time, in any order."""
    shop, runs = Shop(), [Told(pack) for _ in turns]
    said = [shop.quote(run, calls, 1) for run, calls in zip(runs, turns, strict=True)]
    going = list(range(len(runs)))
    while going:
        order(going)
        one = going.pop()
        run, calls, answer = runs[one], turns[one], said[one]
        if isinstance(answer, TurnHeld):
            said[one] = decide(run)
        elif isinstance(answer, TurnForwarded) and not shop.execute(run, calls, answer):
            said[one] = shop.quote(run, calls, answer.attempt + 1)
        else:
            continue
        if said[one] is not None:
            going.append(one)
    return shop, runs


LIMITS = """\
limits:
  customer_day: {amount: 7000, refunds: 3, then: THEN}
  profile_day: {support: {amount: 9000, then: THEN}}
  tenant_day: {amount: 12000, refunds: 6}
writes:"""
refunds = st.tuples(
    st.sampled_from(["C-1", "C-1", "C-1", "C-2", "C-3"]), st.integers(1, 60).map(lambda pounds: pounds * 100)
)
at_once = st.lists(st.lists(refunds, min_size=1, max_size=2), min_size=2, max_size=8)


def limited(then: str) -> PolicyPack:
    return parse(PACK.replace("writes:", LIMITS.replace("THEN", then)))


def nobody(run: Told) -> Fact | None:
    return None


def everybody(run: Told) -> Fact | None:
    """Three people release all that is held."""
    held = run.history.last(TurnHeld)
    assert held is not None
    answer = None
    for hold in held.holds:
        quote = next(q for q in _last_quotes(run) if q.call_id == hold.call_id)
        for by in (SAM, LEE, LIA):
            answer = run.decide(by, quote) or answer
    return answer


def _last_quotes(run: Told) -> list[CallQuote]:
    quoted = run.history.last(TurnQuoted)
    return quoted.quotes if quoted else []


@given(at_once, st.sampled_from(["hold", "refuse"]), st.randoms())
def test_runs_at_once_never_exceed_a_days_limit_where_nobody_releases_anything(
    turns: list[list[Refund]], then: str, chance: Any
) -> None:
    shop, _ = all_at_once(limited(then), turns, chance.shuffle, nobody)

    for customer in ("C-1", "C-2", "C-3"):
        assert shop.totals(customer)["refunded_today_by_customer"] <= 5000
        assert shop.totals(customer)["refunds_today_by_customer"] <= 3
    assert shop.totals("")["refunded_today_by_profile"] <= 9000
    assert shop.totals("")["refunds_today_of_tenant"] <= 6


@given(at_once, st.randoms())
def test_runs_at_once_never_exceed_a_hard_cap_whatever_people_release(turns: list[list[Refund]], chance: Any) -> None:
    shop, _ = all_at_once(limited("refuse"), turns, chance.shuffle, everybody)

    for customer in ("C-1", "C-2", "C-3"):
        assert shop.totals(customer)["refunded_today_by_customer"] <= 7000
        assert shop.totals(customer)["refunds_today_by_customer"] <= 3
    assert shop.totals("")["refunded_today_by_profile"] <= 9000
    assert shop.totals("")["refunded_today_of_tenant"] <= 12_000
    assert shop.totals("")["refunds_today_of_tenant"] <= 6


def test_fifty_runs_at_once_pay_as_many_small_refunds_as_the_day_allows_and_hold_the_rest() -> None:
    pack = parse(PACK.replace("writes:", "limits:\n  customer_day: {refunds: 3}\n  tenant_day: {refunds: 20}\nwrites:"))
    turns = [[(f"C-{number % 10}", 100)] for number in range(50)]

    shop, runs = all_at_once(pack, turns, lambda going: None, nobody)

    assert len(shop.paid) == 20
    ends = [run.history.events[-1].fact for run in runs]
    assert sum(isinstance(end, TurnRefused) for end in ends) == 30
    assert {end.rule for end in ends if isinstance(end, TurnRefused)} == {"tenant-day-count"}


def test_of_two_runs_at_once_the_second_waits_for_the_cooling_off_of_the_first() -> None:
    pack = parse(PACK.replace("writes:", "limits:\n  cooling_off: {after_refund_seconds: 600}\nwrites:"))

    shop, runs = all_at_once(pack, [[("C-1", 100)], [("C-1", 200)]], lambda going: None, nobody)

    assert len(shop.paid) == 1
    held = [run.history.last(TurnHeld) for run in runs]
    assert sorted(fact.holds[0].rule for fact in held if fact) == ["cooling-off-after-refund"]
    later = Told(pack)
    later.now += timedelta(minutes=11)
    assert isinstance(shop.quote(later, [("C-1", 300)], 1), TurnForwarded)


# Tiers and own limits are of the customer's day


def pay(shop: Shop, run: Told, calls: list[Refund], *people: Person) -> Fact | None:
    """What becomes of a turn once these people, as far as they are asked, have approved all of it."""
    answer, attempt = shop.quote(run, calls, 1), 1
    while isinstance(answer, TurnHeld):
        for hold in answer.holds:
            quote = next(quote for quote in _last_quotes(run) if quote.call_id == hold.call_id)
            for by in people:
                answer = run.decide(by, quote) or answer
        if not isinstance(answer, TurnForwarded):
            return answer
        if not shop.execute(run, calls, answer):
            attempt += 1
            answer = shop.quote(run, calls, attempt)
    return answer


def test_a_second_run_of_one_customer_needs_the_people_of_what_both_come_to() -> None:
    shop, pack = Shop(), parse(PACK)
    assert isinstance(pay(shop, Told(pack), [("C-1", 45_000)], SAM), TurnForwarded)

    run = Told(pack)
    held = pay(shop, run, [("C-1", 45_000)], SAM)

    assert isinstance(held, TurnHeld)
    [needs] = [hold.needs for hold in held.holds]
    assert (needs.people, needs.one_of_role, needs.amount_minor) == (2, "lead", 90_000)
    assert held.holds[0].reason == "£900.00 to this customer today is above the £50.00 that needs no person."
    assert verdicts(run.decide(LEE, _last_quotes(run)[0])) == {"c0": "run"}
    assert isinstance(pay(shop, Told(pack), [("C-2", 45_000)], SAM), TurnForwarded), "another customer's day is theirs"


def test_four_refunds_in_four_turns_need_the_people_of_the_day_so_far_and_never_pass_the_last_tier() -> None:
    run = Told(parse(PACK))
    asked = []
    for turn in range(1, 6):
        quote = refund(f"c{turn}", 45_000, today=45_000 * turn)
        answer = run.quote(quote, turn=turn)
        if isinstance(answer, TurnHeld):
            asked.append((answer.holds[0].needs.people, answer.holds[0].needs.amount_minor))
            released = [run.decide(by, quote, turn=turn) for by in (SAM, LEE)]
            assert released.index(next(filter(None, released))) == answer.holds[0].needs.people - 1

    assert asked == [(1, 45_000), (2, 90_000), (2, 135_000), (2, 180_000)]
    assert isinstance(answer, TurnRefused)
    assert "£2,250.00 to this customer today is more than £2,000.00" in answer.results[0].content


def test_an_own_limit_is_not_split_away_over_turns() -> None:
    run, nia = Told(parse(PACK)), SAM.model_copy(update={"limit_minor": 10_000})
    first, second = refund("a", 9999), refund("b", 9998, today=19_997)
    run.quote(first)
    assert verdicts(run.decide(nia, first)) == {"a": "run"}

    run.quote(second, turn=2)

    assert run.decide(nia, second, turn=2) is None
    assert verdicts(run.decide(SUE, second, turn=2)) == {"b": "run"}


def test_of_two_runs_that_were_approved_before_either_was_paid_the_second_asks_for_one_more() -> None:
    shop, pack = Shop(), parse(PACK)
    calls, runs = [("C-1", 45_000)], [Told(pack), Told(pack)]
    for run in runs:
        shop.quote(run, calls, 1)
    first, second = (run.decide(SAM, _last_quotes(run)[0]) for run in runs)
    assert isinstance(first, TurnForwarded)
    assert isinstance(second, TurnForwarded)

    assert shop.execute(runs[0], calls, first)
    assert not shop.execute(runs[1], calls, second)

    held = shop.quote(runs[1], calls, 2)
    assert isinstance(held, TurnHeld)
    assert (held.holds[0].needs.people, held.holds[0].needs.amount_minor) == (2, 90_000)
    released = runs[1].decide(LEE, _last_quotes(runs[1])[0])
    assert isinstance(released, TurnForwarded)
    assert released.verdicts[0].reason == "Released by sam and lee.", "who has approved it keeps their seat"
    assert shop.execute(runs[1], calls, released)


def test_of_two_runs_that_were_approved_at_once_within_an_own_limit_the_second_waits_for_somebody_else() -> None:
    shop, pack, nia = Shop(), parse(PACK), SAM.model_copy(update={"limit_minor": 10_000})
    calls, runs = [("C-1", 9900)], [Told(pack), Told(pack)]
    for run in runs:
        shop.quote(run, calls, 1)
    first, second = (run.decide(nia, _last_quotes(run)[0]) for run in runs)
    assert isinstance(first, TurnForwarded)
    assert isinstance(second, TurnForwarded)

    assert shop.execute(runs[0], calls, first)
    assert not shop.execute(runs[1], calls, second)

    held = shop.quote(runs[1], calls, 2)
    assert isinstance(held, TurnHeld)
    assert held.holds[0].needs.amount_minor == 19_800
    assert runs[1].decide(nia, _last_quotes(runs[1])[0]) is None
    assert verdicts(runs[1].decide(SUE, _last_quotes(runs[1])[0])) == {"c0": "run"}


LIMITED = (SAM.model_copy(update={"limit_minor": 9000}), SUE, LEE)


@given(at_once, st.lists(st.sampled_from(LIMITED), min_size=1, max_size=3, unique=True), st.randoms())
def test_runs_at_once_pay_nothing_that_the_customers_day_all_together_needs_more_people_for(
    turns: list[list[Refund]], people: list[Person], chance: Any
) -> None:
    tiers = PACK.replace("up_to: 50000", "up_to: 10000").replace("up_to: 200000", "up_to: 15000")

    def some(run: Told) -> Fact | None:
        answers = [run.decide(by, quote) for quote in _last_quotes(run) for by in chance.sample(people, len(people))]
        return next((answer for answer in answers if answer), None)

    shop, _ = all_at_once(parse(tiers), turns, chance.shuffle, some)

    for _, today, word in shop.receipts:
        names = {by.subject for by in LIMITED if by.subject in word.split("Released by ")[-1]}
        assert today <= 15_000
        assert "sam" not in names or today <= 9000
        if len(names) == 1:
            assert today <= 10_000
        elif names:
            assert "lee" in names or today <= 10_000
