"""Who may say what on a held call: one rule, for the service that records the word and for the page that offers it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from contracts.money import Money
from contracts.parts import CallQuote, Customer, Hold, Needs, Person
from contracts.people import Somebody, describe, enough, is_the_customer, reaches, same, within_own_limit

Word = Literal["approve", "decline", "change"]


@dataclass(frozen=True, slots=True)
class Bar:
    """Why a word may not be said, for the person who would say it."""

    title: str
    detail: str


@dataclass(frozen=True, slots=True)
class Held:
    """A held call, and who has had a part in it.

    changed_by: who changed the call into what is held, where their approval does not carry over.
    approved_by: whose approval of it stands. locale: how the run writes amounts.
    """

    requested_by: Person
    customer: Customer
    hold: Hold
    quote: CallQuote | None = None
    changed_by: Sequence[Person] = ()
    approved_by: Sequence[Person] = ()
    locale: str = ""


def bar(held: Held, by: Somebody, word: Word) -> Bar | None:
    """Why this person may not say this; None if they may.

    A no is the safe word: it takes the role, and neither a limit that reaches nor a certain seat. A change is judged by
    what it comes to, so its limit and its seat are looked at then (`above_own_limit`).
    """
    hold, needs = held.hold, held.hold.needs
    if (part := part_in(held.requested_by, held.customer, by, held.quote)) is not None:
        return part
    if any(same(one, by) for one in ([hold.edited_by] if hold.edited_by else []) + [*held.changed_by]):
        return Bar("Not yours to decide", "You changed this call, so another person has to decide.")
    if any(same(one, by) for one in held.approved_by):
        return Bar("Decided already", "You have approved this. Another person has to decide the rest.")
    if not reaches(by.role, needs.role):
        return Bar("Above your role", f"This needs the role {needs.role}; yours is {by.role}.")
    if word != "approve":
        return None
    return above_own_limit(needs.amount_minor, held.quote, by, held.locale) or _seat(needs, held.approved_by, by)


def part_in(requested_by: Person, customer: Customer, by: Somebody, quote: CallQuote | None = None) -> Bar | None:
    """Whether somebody asked for what they would decide on, or would have it: they started the run, or it is theirs."""
    if same(by, requested_by):
        return Bar("Not yours to decide", "You started this run, so another person has to decide.")
    if is_the_customer(by, customer, quote.subject if quote else None):
        return Bar("Not yours to decide", "This is your own ticket, so another person has to decide.")
    return None


def above_own_limit(today_minor: int | None, quote: CallQuote | None, by: Somebody, locale: str = "") -> Bar | None:
    """Whether what the customer is refunded that day with this call is more than a person may release."""
    if within_own_limit(by, Needs(amount_minor=today_minor)):
        return None
    currency = (quote.effect.currency if quote and quote.effect else None) or ""
    what = "What this moves is not known"
    if today_minor is not None:
        what = f"With this it is {Money(today_minor, currency).text(locale)} to this customer today"
    limit = Money(by.limit_minor or 0, currency).text(locale)
    return Bar(
        "Above your limit",
        f"{what}; your own limit is {limit}. Somebody with a higher limit has to release it. You may decline it, or "
        "approve less.",
    )


def roles_asked(needs: Needs, approved_by: Sequence[Person] = ()) -> tuple[str, ...]:
    """The roles that the seats which are left ask for, the lower first; none where every seat is filled."""
    seated = [one for one in approved_by if reaches(one.role, needs.role)]
    left, higher = needs.people - len(seated), needs.one_of_role
    if higher is None or higher == needs.role:
        return (needs.role,) if left > 0 else ()
    of_higher = (needs.count_of_role or 1) - sum(reaches(one.role, higher) for one in seated)
    if of_higher <= 0:
        return (needs.role,) if left > 0 else ()
    return (needs.role, higher) if left > of_higher else (higher,)


def nobody_can(held: Held, known: Sequence[Person]) -> str | None:
    """Why the people who are known, all there are, cannot release this among them; None if they can."""
    needs = held.hold.needs
    able = [one for one in known if not _barred_for_good(held, one)]
    if enough(needs, [*held.approved_by, *able]):
        return None
    fit = [one.subject for one in able if not any(same(one, other) for other in held.approved_by)]
    could = f"only {' and '.join(fit)} could approve it" if fit else "nobody here could approve it"
    if held.approved_by:
        could = could.replace("could approve it", "could still approve it")
    declines = any(bar(replace(held, approved_by=()), one, "decline") is None for one in known)
    then = "It can be declined, or it will expire." if declines else "Nobody can decline it either: it will expire."
    return f"It needs {describe(needs)}, and {could}. {then}"


def _barred_for_good(held: Held, by: Person) -> bool:
    """Whether this person's approval can never count, whoever else approves."""
    alone = replace(held, approved_by=())
    return bar(alone, by, "decline") is not None or not within_own_limit(by, held.hold.needs)


def _seat(needs: Needs, approved_by: Sequence[Person], by: Somebody) -> Bar | None:
    asked = roles_asked(needs, approved_by)
    if not asked or any(reaches(by.role, role) for role in asked):
        return None
    if (count := needs.count_of_role) is not None:
        left = f"{count} of the {needs.people} have to be {asked[-1]}s, and only seats of theirs are left."
        return Bar("A lead has to", left)
    return Bar("A lead has to", f"One of the {needs.people} has to be a {asked[-1]}, and only one seat is left.")
