"""A held turn: what each of its calls would do, and what a decision on one of them releases.

A turn runs whole or not at all. Nothing of it is done before the last of its held calls is decided; then everything is
that was not declined, the calls that nobody was asked about included. So what a decision releases is the turn's total.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Literal

from contracts.kill_switch import Stop
from contracts.money import Money
from contracts.parts import CallQuote

# `waits`, `approved`, `declined` and `expired` are of held calls; `along` runs with them; `fails` and `repeated` move
# nothing, whatever is decided.
State = Literal["waits", "approved", "declined", "expired", "along", "fails", "repeated"]
DROPPED: frozenset[State] = frozenset({"declined", "expired"})


@dataclass(frozen=True, slots=True)
class Held:
    """How a held call stands. seats_left: how many people still have to approve it."""

    state: Literal["waits", "approved", "declined", "expired"]
    seats_left: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One call of a held turn. changed: a person approved it with changes, and this is what it came to.

    held: whether people are, or were, asked about it. less_minor: by how much less it moves than the quotes of the
    calls behind it count.
    """

    quote: CallQuote
    state: State
    seats_left: int = 0
    held: bool = False
    less_minor: int = 0

    @property
    def call_id(self) -> str:
        return self.quote.call_id

    @property
    def summary(self) -> str:
        return self.quote.effect.summary if self.quote.effect else self.quote.tool

    @property
    def changed(self) -> bool:
        return self.quote.edited is not None

    @property
    def money(self) -> Money | None:
        """What it moves if the turn runs."""
        return None if self.state in DROPPED else moved_by(self.quote)


@dataclass(frozen=True, slots=True)
class Release:
    """What a decision releases.

    now: whether it does so at once; if not, these other held calls (`waits_for`) and so many further people for the
    same call (`more_people`) are waited for. total: what the turn then moves, one sum a currency.
    """

    now: bool
    total: tuple[Money, ...]
    parts: tuple[Part, ...]
    waits_for: tuple[str, ...] = ()
    more_people: int = 0
    locale: str = ""

    @property
    def paying(self) -> list[Part]:
        return [part for part in self.parts if part.money is not None]

    @property
    def text(self) -> str:
        """`£180.00`, `£80.00 in 2 calls: Refund £40.00 for ORD-1; …`, `nothing yet: …`; empty where no money moves."""
        if not self.now:
            left = [f"{self.more_people} more to approve it"] if self.more_people else []
            left += [f"{len(self.waits_for)} more of its turn to be decided"] if self.waits_for else []
            return f"nothing yet: {' and '.join(left)}"
        if len(self.paying) < 2:
            return sums_in_words(self.total, self.locale)
        return _sum_of_calls(self.total, self.paying, self.locale)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stop that covers a call of the turn: `itself` the one that would be approved, or one that runs with it."""

    stop: Stop
    part: Part
    itself: bool
    locale: str = ""

    @property
    def detail(self) -> str:
        """Why an approval is not taken, for the person who would approve."""
        effect = self.part.quote.effect
        why = self.stop.in_the_way((effect and effect.currency) or "", self.locale)
        if self.itself:
            return why
        return f"With it runs {self.part.summary[:200]}, and a turn runs whole or not at all. {why}"


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn of which people hold at least one call, as it is quoted now. locale: how its amounts are written."""

    parts: tuple[Part, ...]
    locale: str = ""

    @classmethod
    def of(cls, quotes: Sequence[CallQuote], held: Mapping[str, Held], locale: str = "") -> "HeldTurn":
        """quotes: all calls of the turn in their order. held: those that people decide, by call id."""
        return cls(tuple(_part(quote, held.get(quote.call_id)) for quote in quotes), locale)

    @property
    def total(self) -> tuple[Money, ...]:
        """What it moves if everything that waits is approved, one sum a currency."""
        return totals(part.money for part in self.parts)

    @property
    def waiting(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.state == "waits")

    def part(self, call_id: str) -> Part | None:
        return next((part for part in self.parts if part.call_id == call_id), None)

    def release(self, call_id: str, decision: Literal["approve", "decline"] = "approve") -> Release:
        """What this decision on a call that waits releases."""
        part = self.part(call_id)
        others = tuple(one.call_id for one in self.waiting if one.call_id != call_id)
        more = max(part.seats_left - 1, 0) if part and decision == "approve" else 0
        left = [one for one in self.parts if one.state not in DROPPED]
        if decision == "decline":
            left = [one for one in left if one.call_id != call_id]
        total = totals(one.money for one in left)
        return Release(not others and not more, total, tuple(left), others, more, self.locale)

    def with_quote(self, quote: CallQuote) -> "HeldTurn":
        """The same turn with one call as a person would change it."""
        parts = tuple(_changed(part, quote) if part.call_id == quote.call_id else part for part in self.parts)
        return HeldTurn(parts, self.locale)

    @property
    def headline(self) -> str:
        """What the turn would do, in a line: the call that is held, or, where several move money, all that it moves."""
        paying = [part for part in self.parts if part.money is not None]
        if len(paying) > 1:
            return _sum_of_calls(self.total, paying, self.locale)
        held = [part for part in self.parts if part.held]
        return (held or list(self.parts))[0].summary

    def stopped(self, call_id: str, stops: Iterable[Stop], *, changed: bool = False) -> Stopped | None:
        """The stop that an approval of this call would meet: one that covers it, or a call that runs with it and that
        nobody can decline any more. What else still waits can be declined, so it stands in nobody's way.

        changed: it is going to be changed, nobody knows yet into what: then no stop above an amount covers it, or what
        is paid to the same customer behind it.
        """
        standing = list(stops)
        of_it = self._from(call_id) if changed else ()
        for part in sorted(self.parts, key=lambda one: one.call_id != call_id):
            itself = part.call_id == call_id
            if part.state in DROPPED or (part.state == "waits" and not itself):
                continue
            for stop in standing:
                open_ended = part in of_it and stop.above_minor is not None
                if not open_ended and self._covers(stop, part):
                    return Stopped(stop, part, itself, self.locale)
        return None

    def _covers(self, stop: Stop, part: Part) -> bool:
        quote = part.quote
        if quote.kind == "read" or quote.will_fail is not None or quote.effect is None:
            return False
        return stop.covers(quote.tool, quote.effect, self._today(part), harmless=bool(quote.facts.harmless))

    def _from(self, call_id: str) -> tuple[Part, ...]:
        """The call, and those behind it whose sum of the day holds what it moves."""
        behind = tuple(dropwhile(lambda part: part.call_id != call_id, self.parts))
        return tuple(part for part in behind if part is behind[0] or part.quote.subject == behind[0].quote.subject)

    def _today(self, part: Part) -> int | None:
        """What the customer is refunded that day with the call: the quote's sum holds the turn's earlier calls as they
        were quoted, of which those that were declined are not paid, and a changed one is in part."""
        today = part.quote.facts.refunded_today_minor
        if today is None:
            return None
        for earlier in self.parts[: self.parts.index(part)]:
            money = moved_by(earlier.quote)
            if money and earlier.quote.subject == part.quote.subject:
                today -= money.amount_minor if earlier.state in DROPPED else earlier.less_minor
        return today


def _changed(part: Part, quote: CallQuote) -> Part:
    before, now = moved_by(part.quote), moved_by(quote)
    less = (before.amount_minor if before else 0) - (now.amount_minor if now else 0)
    return replace(part, quote=quote, less_minor=part.less_minor + less)


def moved_by(quote: CallQuote) -> Money | None:
    """What a call would move; None for reads, and for what will fail or was made before."""
    effect = quote.effect
    if effect is None or effect.amount_minor is None or effect.currency is None or quote.will_fail is not None:
        return None
    if quote.duplicate_of is not None and (quote.facts.again_after is None or not effect.amount_minor):
        return None
    return Money(effect.amount_minor, effect.currency)


def totals(amounts: Iterable[Money | None]) -> tuple[Money, ...]:
    """One sum a currency, in the order of their codes: currencies are never added together."""
    sums: dict[str, int] = {}
    for money in amounts:
        if money is not None:
            sums[money.currency] = sums.get(money.currency, 0) + money.amount_minor
    return tuple(Money(amount, currency) for currency, amount in sorted(sums.items()))


def sums_in_words(total: Iterable[Money], locale: str = "") -> str:
    """Each currency's sum by itself, as in `£40.00 + $12.00`; empty for none."""
    return " + ".join(money.text(locale) for money in total)


def _sum_of_calls(total: Iterable[Money], paying: Sequence[Part], locale: str) -> str:
    """`£80.00 in 2 calls: Refund £40.00 for ORD-1; …`."""
    return f"{sums_in_words(total, locale)} in {len(paying)} calls: {'; '.join(part.summary for part in paying)}"


def _part(quote: CallQuote, held: Held | None) -> Part:
    if held is not None:
        return Part(quote, held.state, held.seats_left, held=True)
    if quote.will_fail is not None:
        return Part(quote, "fails")
    return Part(quote, "repeated" if quote.duplicate_of is not None and moved_by(quote) is None else "along")
