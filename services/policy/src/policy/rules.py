"""What may run, what a person must release and what is refused: a turn's quotes held against the tenant's pack.

What a customer is refunded today counts as one sum: splitting an amount over calls, turns, runs or tickets reaches no
lower tier, and no own limit.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from contracts.money import Money
from contracts.parts import CallQuote, Guard, Needs, Person
from contracts.people import stricter

from policy.limits import About, Bound, Day, Sums, amount, bounds
from policy.pack import Limit, PolicyPack

STOPPED, AUTOMATIC, UNKNOWN, TIER = "stopped", "above-automatic-limit", "day-total-missing", "tier"
_MOST = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Refuse:
    """It cannot run, and nobody can release it. `reason` is for the model."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """It runs without a person. `pays` where it moves money, within the automatic limit.

    instead_of: what a pack that enforces would have said (audit mode). day: of the customer who is refunded.
    """

    rule: str
    pays: bool = False
    bounds: tuple[Bound, ...] = ()
    instead_of: Refuse | None = None
    day: Day | None = None


@dataclass(frozen=True, slots=True)
class AskPeople:
    """It waits until these people release it. `instead_of` and `day` as in Run."""

    rule: str
    reason: str
    needs: Needs
    bounds: tuple[Bound, ...] = ()
    instead_of: Refuse | None = None
    day: Day | None = None


Judgement = Run | AskPeople | Refuse


def judge(quotes: Sequence[CallQuote], pack: PolicyPack, about: About) -> list[Judgement]:
    """One judgement a quote, in their order."""
    whole, so_far = Sums(), Sums()
    for quote in quotes:
        if moves_money(quote, pack):
            whole.add(quote)
    judgements: list[Judgement] = []
    for quote in quotes:
        if quote.facts.stopped is not None:
            judgements.append(Refuse(STOPPED, quote.facts.stopped))
        elif moves_money(quote, pack):
            so_far.add(quote)
            judgements.append(_refund(quote, pack, about, so_far, today=whole.today(quote.subject or "")))
        else:
            judgements.append(_harmless(quote, pack, about))
    return judgements


def moves_money(quote: CallQuote, pack: PolicyPack) -> bool:
    """Whether it would pay if it ran: not a read, nor what will fail or has been done. A request to pay again does,
    unless that has been done as well: then its quote moves nothing.
    """
    if quote.kind == "read" or quote.will_fail is not None:
        return False
    if quote.duplicate_of is not None and (quote.facts.again_after is None or _says(quote) == 0):
        return False
    return pack.writes.get(quote.tool) == "refund" or bool(_says(quote))


def guards(calls: Iterable[tuple[Run | AskPeople, Sequence[Person]]], pack: PolicyPack) -> list[Guard]:
    """What must still be true when the turn runs, given each call that runs and who released it, if people did.

    People waive the limits that they were asked about, and the automatic one, for their call: it is added on top of
    them for the others. Nobody waives a hard cap; under audit those bind nothing. What people release stays within the
    tier that they were asked for and their own limits, whatever else the customer is paid in the meantime.
    """
    binding: dict[tuple[str, str, str], Guard] = {}
    waived: dict[tuple[str, str, str], int] = defaultdict(int)
    for judgement, people in calls:
        if people and judgement.day:
            guard = _as_far_as(people, judgement.day.guard)
            key = (guard.name, guard.subject, TIER)
            binding[key] = min(guard, binding.get(key, guard), key=lambda one: one.at_most)
        for bound in judgement.bounds:
            # Nobody's totals are nobody's to look up (a refund to no customer, which only audit lets through).
            if bound.guard is None or not bound.guard.subject or (bound.hard and pack.audits):
                continue
            automatic = bound.rule in (AUTOMATIC, UNKNOWN)
            key = (bound.guard.name, bound.guard.subject, AUTOMATIC if automatic else bound.rule)
            if people and not bound.hard and (automatic or bound.reason is not None):
                waived[key] += bound.adds
            else:
                binding[key] = bound.guard
    least: dict[tuple[str, str], Guard] = {}
    for (name, subject, rule), guard in sorted(binding.items()):
        widened = guard.model_copy(update={"at_most": min(guard.at_most + waived[name, subject, rule], _MOST)})
        other = least.get((name, subject))
        least[name, subject] = widened if other is None or widened.at_most < other.at_most else other
    return list(least.values())


def _as_far_as(people: Sequence[Person], guard: Guard) -> Guard:
    own = [person.limit_minor for person in people if person.limit_minor is not None]
    return guard.model_copy(update={"at_most": min(guard.at_most, *own)}) if own else guard


def _harmless(quote: CallQuote, pack: PolicyPack, about: About) -> Judgement:
    refusal = _not_their_own(quote, pack, about)
    if refusal and not pack.audits:
        return refusal
    judgement = _writes_or_reads(quote, pack)
    return replace(judgement, instead_of=refusal) if refusal else judgement


def _writes_or_reads(quote: CallQuote, pack: PolicyPack) -> Run | AskPeople:
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
        Needs(role="lead", amount_minor=0 if quote.effect else None),
    )


def _refund(quote: CallQuote, pack: PolicyPack, about: About, sums: Sums, *, today: int) -> Judgement:
    met = [*bounds(quote, pack, about, sums), _automatic(quote, pack, about, sums)]
    tier = next((tier for tier in pack.refund.tiers if today <= tier.up_to), None)
    # What cannot be weighed against the limits is left to those who release the most.
    unweighed = _malformed(quote, pack) or (_above_every_tier(pack, about, today) if tier is None else None)
    refusal = (
        _not_their_own(quote, pack, about)
        or unweighed
        or next((Refuse(bound.rule, bound.reason) for bound in met if bound.hard and bound.reason), None)
    )
    if refusal and not pack.audits:
        return refusal
    asks = _asks(quote, pack, met)
    day = _day(quote, today, _MOST if tier is None else tier.up_to)
    if unweighed:
        asks.insert(0, (unweighed.rule, unweighed.reason, Limit()))
    if not asks:
        asks = _below_the_shops_floor(quote, pack, about)
    if not asks:
        return Run("within-automatic-limit", pays=True, bounds=tuple(met), instead_of=refusal, day=day)
    needs = tier.needs if tier and not unweighed else pack.refund.tiers[-1].needs
    needs = needs.model_copy(update={"amount_minor": None if _says(quote) is None else today})
    for _, _, limit in asks:
        needs = stricter(needs, Needs(role=limit.role))
    return AskPeople(asks[0][0], " ".join(reason for _, reason, _ in asks), needs, tuple(met), refusal, day)


def _day(quote: CallQuote, today: int, at_most: int) -> Day | None:
    """None of a refund to no customer, which only audit lets through."""
    if quote.subject is None:
        return None
    return Day(today, Guard(name="refunded_today_by_customer", subject=quote.subject, at_most=at_most))


def _asks(quote: CallQuote, pack: PolicyPack, met: Iterable[Bound]) -> list[tuple[str, str, Limit]]:
    """Why people have to look at a refund: the rule, the reason, and who at least."""
    asks: list[tuple[str, str, Limit]] = []
    if quote.tool not in pack.writes:
        reason = f"{quote.tool} moves money and the policy does not name it."
        asks.append(("unlisted-write", reason, Limit(role="lead")))
    if quote.facts.again_after is not None:
        reason = f"A second equal refund, after {quote.facts.again_after}: a person has to see that it is meant."
        asks.append(("pays-again", reason, Limit()))
    asks += [(bound.rule, bound.reason, bound.limit) for bound in met if bound.reason and not bound.hard]
    return asks


def _below_the_shops_floor(quote: CallQuote, pack: PolicyPack, about: About) -> list[tuple[str, str, Limit]]:
    """What the pack would let run unasked and the shop would not pay: only asked about it can ever be done."""
    floor, moved = quote.facts.decided_above_minor, amount(quote)
    if floor is None or moved <= floor:
        return []
    pays, most = (Money(minor, pack.currency).text(about.locale) for minor in (moved, floor))
    reason = f"The policy would pay {pays} unasked, but above {most} this shop pays only what a person has approved."
    return [("shop-floor", reason, Limit())]


def _automatic(quote: CallQuote, pack: PolicyPack, about: About, sums: Sums) -> Bound:
    """The limit up to which no person is asked."""
    customer, most, told = quote.subject or "", pack.refund.automatic_up_to, quote.facts.refunded_today_minor
    guard = Guard(name="refunded_today_by_customer", subject=customer, at_most=most)
    if told is None:
        return Bound(UNKNOWN, Limit(), "What this customer was refunded today is not known.", guard, amount(quote))
    # The shop's total of the day holds this call and the turn's earlier ones; it can never be less than those.
    today, reason = max(told, sums.amounts[customer]), None
    if today > most:
        limit, reached = (Money(minor, pack.currency).text(about.locale) for minor in (most, today))
        reason = f"{reached} to this customer today is above the {limit} that needs no person."
    return Bound(AUTOMATIC, Limit(), reason, guard, amount(quote))


def _malformed(quote: CallQuote, pack: PolicyPack) -> Refuse | None:
    minor, currency = _says(quote), quote.effect.currency if quote.effect else None
    if minor is None:
        return Refuse("amount-missing", f"{quote.tool} did not say how much money it would move.")
    if minor <= 0:
        return Refuse("amount-not-positive", "The amount must be more than nothing.")
    if currency != pack.currency:
        return Refuse("other-currency", f"Money moves in {pack.currency} here, not in {currency or 'none'}.")
    if quote.subject is None:
        return Refuse("customer-missing", f"{quote.tool} did not say which customer would be paid.")
    return None


def _above_every_tier(pack: PolicyPack, about: About, today: int) -> Refuse:
    total, most = (Money(minor, pack.currency).text(about.locale) for minor in (today, pack.refund.tiers[-1].up_to))
    most = f"{most}, the most that anybody here may refund to one customer in a day"
    return Refuse("above-every-tier", f"{total} to this customer today is more than {most}.")


def _not_their_own(quote: CallQuote, pack: PolicyPack, about: About) -> Refuse | None:
    """A ticket that was opened with an e-mail address alone names nobody to compare with; the shop knows no other
    account than that address's anyway."""
    if not pack.limits.own_customer_only or quote.subject is None or about.customer in (None, quote.subject):
        return None
    return Refuse("own-customer", f"{quote.tool} is about another customer than the one who wrote this ticket.")


def _says(quote: CallQuote) -> int | None:
    """The amount as the quote gives it."""
    return quote.effect.amount_minor if quote.effect else None
