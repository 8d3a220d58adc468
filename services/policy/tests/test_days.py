"""Tiers and own limits are of what a customer is refunded in a day, in whichever calls, turns and runs."""

from contracts.facts import Fact, TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import Needs, Person
from policy.pack import parse

from .quotes import PACK, refund
from .shop import Refund, Shop
from .told import LEE, SAM, SUE, Told, verdicts


def pay(shop: Shop, run: Told, calls: list[Refund], *people: Person) -> Fact | None:
    """What becomes of a turn once these people, as far as they are asked, have approved all of it."""
    answer, attempt = shop.quote(run, calls, 1), 1
    while isinstance(answer, TurnHeld):
        for hold in answer.holds:
            quote = next(quote for quote in run.last_quotes if quote.call_id == hold.call_id)
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
    assert verdicts(run.decide(LEE, run.last_quotes[0])) == {"c0": "run"}
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


def both_approved(by: Person, amount: int) -> tuple[Shop, Told, Needs]:
    """Two runs of one customer were approved before either was paid: what the second needs once the first has been."""
    shop, pack, calls = Shop(), parse(PACK), [("C-1", amount)]
    first, second = Told(pack), Told(pack)
    for run in (first, second):
        shop.quote(run, calls, 1)
    said = [run.decide(by, run.last_quotes[0]) for run in (first, second)]
    forwarded = [fact for fact in said if isinstance(fact, TurnForwarded)]
    assert [shop.execute(*each) for each in zip((first, second), [calls] * 2, forwarded, strict=True)] == [True, False]
    held = shop.quote(second, calls, 2)
    assert isinstance(held, TurnHeld)
    return shop, second, held.holds[0].needs


def test_of_two_runs_that_were_approved_before_either_was_paid_the_second_asks_for_one_more() -> None:
    shop, run, needs = both_approved(SAM, 45_000)
    assert (needs.people, needs.amount_minor) == (2, 90_000)

    released = run.decide(LEE, run.last_quotes[0])

    assert isinstance(released, TurnForwarded)
    assert released.verdicts[0].reason == "Released by sam and lee.", "who has approved it keeps their seat"
    assert shop.execute(run, [("C-1", 45_000)], released)


def test_of_two_runs_that_were_approved_at_once_within_an_own_limit_the_second_waits_for_somebody_else() -> None:
    nia = SAM.model_copy(update={"limit_minor": 10_000})

    _, run, needs = both_approved(nia, 9900)

    assert needs.amount_minor == 19_800
    assert run.decide(nia, run.last_quotes[0]) is None
    assert verdicts(run.decide(SUE, run.last_quotes[0])) == {"c0": "run"}
