"""Who people are to a run: the same person, its customer, of a role that reaches, enough to release what is held."""

from collections.abc import Iterable

from contracts.facts import RunStarted
from contracts.identity import Principal
from contracts.parts import Customer, Needs, Person

# Who outranks whom when a hold asks for a role.
RANKS = {"approver": 1, "lead": 2}

Somebody = Person | Principal


def who(person: Somebody) -> tuple[str, str]:
    """What makes a person one and the same, whatever their role: a subject means something only to its issuer."""
    return person.issuer, person.subject


def same(one: Somebody, other: Somebody) -> bool:
    return who(one) == who(other)


def reaches(role: str, needed: str) -> bool:
    """Whether a role is the needed one or a higher one; nobody reaches a role that does not exist."""
    return needed in RANKS and RANKS.get(role, 0) >= RANKS[needed]


def is_the_customer(person: Somebody, customer: Customer, subject: str | None = None) -> bool:
    """Whether a person is this customer: by the shop's id, bare or as the embedded issuer writes it, or by e-mail.

    subject: whom a quote found in the shop, where the ticket names an address only.
    """
    if any(person.subject in (known, f"cust-{known}") for known in (customer.id, subject) if known):
        return True
    emails = (person.subject, person.email) if isinstance(person, Principal) else (person.subject,)
    return _folded(customer.email) in {_folded(email) for email in emails if email}


def may_decline(
    person: Person, needs: Needs, started: RunStarted, edited_by: Person | None = None, subject: str | None = None
) -> bool:
    """Whether a person's no counts for a hold: of the role, and neither who asked for it, nor who changed it into this,
    nor its customer. However much it is: a no is the safe word.

    subject: whom the held call is about, by the shop's id.
    """
    if same(person, started.requested_by) or (edited_by is not None and same(person, edited_by)):
        return False
    return not is_the_customer(person, started.ticket.customer, subject) and reaches(person.role, needs.role)


def may_release(
    person: Person, needs: Needs, started: RunStarted, edited_by: Person | None = None, subject: str | None = None
) -> bool:
    """Whether a person's yes counts for a hold: what a no takes, and within their own limit."""
    return may_decline(person, needs, started, edited_by, subject) and within_own_limit(person, needs)


def within_own_limit(person: Somebody, needs: Needs) -> bool:
    """Whether a person may release so much. Of what moves an unknown amount, who has a limit may release nothing."""
    if person.limit_minor is None:
        return True
    return needs.amount_minor is not None and needs.amount_minor <= person.limit_minor


def enough(needs: Needs, people: Iterable[Person]) -> bool:
    """Whether these people fill every seat: so many different ones, and one of the higher role if asked for."""
    seated: dict[tuple[str, str], Person] = {}
    for person in people:
        if reaches(person.role, needs.role):
            seated.setdefault(who(person), person)  # whoever says it again in another role has said it
    if len(seated) < needs.people:
        return False
    return needs.one_of_role is None or any(reaches(one.role, needs.one_of_role) for one in seated.values())


def _folded(email: str) -> str:
    """Letters beyond ASCII keep their case: some would fold into another person's address."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in email.strip())
