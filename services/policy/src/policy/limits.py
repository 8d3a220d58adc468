"""A pack's limits as they meet one refund: which of them it passes, and what must still hold when it is paid."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from contracts.money import Money
from contracts.parts import CallQuote, Guard, GuardName

from policy.pack import Limit, PolicyPack

_HARD = Limit(then="refuse")


@dataclass(frozen=True, slots=True)
class About:
    """What the rules know of a turn beside its quotes. `customer` is the ticket's own, `now` when it was quoted,
    `locale` how amounts are written."""

    tenant: str
    profile: str
    customer: str | None
    now: datetime
    locale: str = ""


@dataclass(slots=True)
class Sums:
    """What the turn has refunded up to a call, with it. The shop's totals hold this too, so they are never less.

    told: the most that the shop tells of a customer's day: what was paid before this turn, in whichever run, as well.
    """

    amounts: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)

    def add(self, quote: CallQuote) -> None:
        customer = quote.subject or ""
        self.amounts[customer] += amount(quote)
        self.counts[customer] += 1
        self.told[customer] = max(self.told[customer], quote.facts.refunded_today_minor or 0)

    def today(self, customer: str) -> int:
        """What the customer is refunded today all together."""
        return max(self.amounts[customer], self.told[customer])


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit as it meets one call.

    reason: why the call passes it, for a person; None where it is kept.
    guard: what must hold when the call is paid, with the call's own share of it, which `adds` says.
    """

    rule: str
    limit: Limit
    reason: str | None
    guard: Guard | None = None
    adds: int = 0

    @property
    def hard(self) -> bool:
        """Nobody can release what passes it."""
        return self.limit.then == "refuse"


@dataclass(frozen=True, slots=True)
class Day:
    """What a customer is refunded today all together, and how much it may be before other people have to be asked."""

    minor: int
    guard: Guard


def amount(quote: CallQuote) -> int:
    """What it moves; nothing where that is not said, or where it is no amount to move."""
    return max((quote.effect.amount_minor or 0) if quote.effect else 0, 0)


def bounds(quote: CallQuote, pack: PolicyPack, about: About, sums: Sums) -> list[Bound]:
    """Every limit of the pack that this refund meets. What is not known keeps no limit."""
    return [*_totals(quote, pack, about, sums), *_cooling_off(quote, pack, about), *_window(quote, pack, about)]


def _totals(quote: CallQuote, pack: PolicyPack, about: About, sums: Sums) -> Iterator[Bound]:
    facts, limits, customer, adds = quote.facts, pack.limits, quote.subject or "", amount(quote)

    def money(minor: int) -> str:
        return Money(minor, pack.currency).text(about.locale)

    if day := limits.customer_day:
        told, own = facts.refunded_today_minor, sums.amounts[customer]
        guard = _guard("refunded_today_by_customer", customer, day.amount)
        yield from _total("customer-day-amount", day, guard, told, own, adds, money, "to this customer")
        times, own = facts.refunds_today_by_customer, sums.counts[customer]
        guard = _guard("refunds_today_by_customer", customer, day.refunds)
        yield from _total("customer-day-count", day, guard, times, own, 1, _times, "to this customer")
    own = sums.amounts.total()
    if share := limits.profile_day.get(about.profile):
        told = facts.refunded_today_by_profile_minor
        guard = _guard("refunded_today_by_profile", about.profile, share.amount)
        whose = f"by agents of the profile {about.profile}"
        yield from _total("profile-day-amount", share, guard, told, own, adds, money, whose)
    if shop := limits.tenant_day:
        told = facts.refunded_today_of_tenant_minor
        guard = _guard("refunded_today_of_tenant", about.tenant, shop.amount)
        yield from _total("tenant-day-amount", _HARD, guard, told, own, adds, money, "by the whole shop")
        times, own = facts.refunds_today_of_tenant, sums.counts.total()
        guard = _guard("refunds_today_of_tenant", about.tenant, shop.refunds)
        yield from _total("tenant-day-count", _HARD, guard, times, own, 1, _times, "by the whole shop")


def _total(
    rule: str,
    limit: Limit,
    guard: Guard | None,
    told: int | None,
    own: int,
    adds: int,
    say: Callable[[int], str],
    whose: str,
) -> Iterator[Bound]:
    """A total of the day: as the shop tells it (None: not known), at least the turn's own."""
    if guard is None:
        return
    reason = None
    if told is None:
        reason = f"What is refunded {whose} today is not known, and it is limited to {say(guard.at_most)}."
    elif (total := max(told, own)) > guard.at_most:
        reason = f"{say(total)} {whose} today would be more than the limit of {say(guard.at_most)}."
    yield Bound(rule, limit, reason, guard, adds)


def _cooling_off(quote: CallQuote, pack: PolicyPack, about: About) -> Iterator[Bound]:
    cooling, customer = pack.limits.cooling_off, quote.subject or ""
    if cooling is None:
        return
    facts, since = quote.facts, int(about.now.timestamp())
    times: list[tuple[str, GuardName, int | None, datetime | None]] = [
        ("refund", "last_refund_of_customer", cooling.after_refund_seconds, facts.last_refund_at),
        ("decline", "last_decline_of_customer", cooling.after_decline_seconds, facts.last_declined_at),
    ]
    for what, name, wait, last in times:
        if wait is None:
            continue
        guard = Guard(name=name, subject=customer, at_most=since - wait)
        reason = None
        if last is None:
            reason = f"When this customer's last {what} was is not known, and the next refund has to wait for {wait} s."
        elif last.timestamp() > guard.at_most:
            reason = f"This customer's last {what} was less than {wait} s ago."
        yield Bound(f"cooling-off-after-{what}", cooling, reason, guard)


def _window(quote: CallQuote, pack: PolicyPack, about: About) -> Iterator[Bound]:
    """No guard: the day from which it counts is a row's that the quote's digest covers, and time passes for all."""
    window, since = pack.limits.refund_window, quote.facts.window_from
    if window is None:
        return
    reason = None
    if since is None:
        reason = f"When this was delivered or ordered is not known, and refunds end {window.days} days later."
    elif about.now - since > timedelta(days=window.days):
        reason = f"The {window.days} days in which this could be refunded have passed."
    yield Bound("refund-window", window, reason)


def _guard(name: GuardName, subject: str, at_most: int | None) -> Guard | None:
    return None if at_most is None else Guard(name=name, subject=subject, at_most=at_most)


def _times(count: int) -> str:
    return f"{count} refund" if count == 1 else f"{count} refunds"
