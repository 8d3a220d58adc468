"""What may run, what a person must release and what is refused: a turn's quotes held against the tenant's pack.

Quotes are judged together: what a turn refunds to one customer counts as one sum, so that splitting an amount into
several calls reaches no lower tier.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.facts import CallQuote, Guard, Needs
from contracts.money import Money

from policy.pack import PolicyPack


@dataclass(frozen=True, slots=True)
class Run:
    """It runs without a person. `pays` where it moves money, within the automatic limit."""

    rule: str
    pays: bool = False


@dataclass(frozen=True, slots=True)
class AskPeople:
    """It waits until these people release it."""

    rule: str
    reason: str
    needs: Needs


@dataclass(frozen=True, slots=True)
class Refuse:
    """It cannot run, and nobody can release it. `reason` is for the model."""

    rule: str
    reason: str


Judgement = Run | AskPeople | Refuse


def judge(quotes: Sequence[CallQuote], pack: PolicyPack) -> list[Judgement]:
    """One judgement a quote, in their order."""
    in_turn = Counter[str]()
    for quote in quotes:
        if moves_money(quote, pack):
            in_turn[quote.subject or ""] += max(_amount(quote), 0)
    so_far = Counter[str]()
    judgements: list[Judgement] = []
    for quote in quotes:
        if moves_money(quote, pack):
            customer = quote.subject or ""
            so_far[customer] += max(_amount(quote), 0)
            # The shop's total of the day holds this call and the turn's earlier ones; it can never be less than those.
            told = quote.facts.refunded_today_minor
            today = None if told is None else max(told, so_far[customer])
            judgements.append(_refund(quote, pack, today=today, together=in_turn[customer]))
        else:
            judgements.append(_harmless(quote, pack))
    return judgements


def moves_money(quote: CallQuote, pack: PolicyPack) -> bool:
    """Whether it would pay if it ran: not a read, nor what will fail or has been done. A request to pay again does,
    unless that has been done as well: then its quote moves nothing.
    """
    if quote.kind == "read" or quote.will_fail is not None:
        return False
    if quote.duplicate_of is not None and (quote.facts.again_after is None or _nothing(quote)):
        return False
    return pack.writes.get(quote.tool) == "refund" or _amount(quote) != 0


def guards(paying: Iterable[CallQuote], released: Iterable[CallQuote], pack: PolicyPack) -> list[Guard]:
    """What must still be true when the turn runs: each customer who is paid without a person stays within the limit.

    What people released in the same turn does not use the limit up, so it is added on top.
    """
    by_people = Counter[str]()
    for quote in released:
        by_people[quote.subject or ""] += max(_amount(quote), 0)
    return [
        Guard(
            name="refunded_today_by_customer",
            subject=customer,
            at_most=pack.refund.automatic_up_to + by_people[customer],
        )
        for customer in sorted({quote.subject or "" for quote in paying})
    ]


def _harmless(quote: CallQuote, pack: PolicyPack) -> Judgement:
    if quote.kind == "read":
        return Run("read")
    if quote.will_fail is not None:
        return Run("explains-why-not")
    if quote.duplicate_of is not None:
        return Run("already-done")
    if quote.tool in pack.writes:
        return Run("automatic-write")
    return AskPeople(
        "unlisted-write",
        f"{quote.tool} changes something and the policy does not name it, so a lead has to look at it.",
        Needs(role="lead"),
    )


def _refund(quote: CallQuote, pack: PolicyPack, *, today: int | None, together: int) -> Judgement:
    effect = quote.effect
    if effect is None or effect.amount_minor is None:
        return Refuse("amount-missing", f"{quote.tool} did not say how much money it would move.")
    if effect.amount_minor <= 0:
        return Refuse("amount-not-positive", "The amount must be more than nothing.")
    if effect.currency != pack.currency:
        return Refuse("other-currency", f"Money moves in {pack.currency} here, not in {effect.currency or 'none'}.")
    if quote.subject is None:
        return Refuse("customer-missing", f"{quote.tool} did not say which customer would be paid.")
    most = Money(pack.refund.tiers[-1].up_to, pack.currency).text()
    needs = _needs(together, pack)
    if needs is None:
        total = Money(together, pack.currency).text()
        return Refuse("above-every-tier", f"{total} is more than {most}, the most that anybody here may refund.")
    if quote.tool not in pack.writes:
        return AskPeople("unlisted-write", f"{quote.tool} moves money and the policy does not name it.", _lead(needs))
    if quote.facts.again_after is not None:
        paid = f"A second equal refund, after {quote.facts.again_after}"
        return AskPeople("pays-again", f"{paid}: a person has to see that it is meant.", needs)
    if today is None:
        return AskPeople("day-total-missing", "What this customer was refunded today is not known.", needs)
    if today <= pack.refund.automatic_up_to:
        return Run("within-automatic-limit", pays=True)
    limit = Money(pack.refund.automatic_up_to, pack.currency).text()
    reached = Money(today, pack.currency).text()
    return AskPeople(
        "above-automatic-limit", f"{reached} to one customer today is above the {limit} that needs no person.", needs
    )


def _needs(together: int, pack: PolicyPack) -> Needs | None:
    return next((tier.needs for tier in pack.refund.tiers if together <= tier.up_to), None)


def _lead(needs: Needs) -> Needs:
    return needs.model_copy(update={"role": "lead", "one_of_role": None})


def _nothing(quote: CallQuote) -> bool:
    return quote.effect is not None and quote.effect.amount_minor == 0


def _amount(quote: CallQuote) -> int:
    return (quote.effect.amount_minor or 0) if quote.effect else 0
