"""Who people are to a run: the same person, its customer, of a role that reaches, enough to release what is held."""

from collections.abc import Iterable

from contracts.addresses import same_mailbox
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
    return any(same_mailbox(customer.email, email) for email in emails)


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
    """Whether these people fill every seat: so many different ones, and as many of the higher role as are asked for."""
    seated: dict[tuple[str, str], Person] = {}
    for person in people:
        if reaches(person.role, needs.role):
            seated.setdefault(who(person), person)  # whoever says it again in another role has said it
    if len(seated) < needs.people:
        return False
    return sum(reaches(one.role, needs.one_of_role or needs.role) for one in seated.values()) >= _of_role(needs)


def stricter(one: Needs, other: Needs) -> Needs:
    """What both ask for and no more, for the amount of the first: the people who meet it meet each, and the other way
    round."""
    unknown = [needs for needs in (one, other) if needs.one_of_role not in (None, *RANKS)]
    if unknown:  # nobody can meet that, nor anything with it
        return unknown[0].model_copy(update={"amount_minor": one.amount_minor})
    people, leads = (max(pair) for pair in zip(_quota(one), _quota(other), strict=True))
    for needs in (one, other):
        if _quota(needs) == (people, leads):
            return needs.model_copy(update={"amount_minor": one.amount_minor})
    some = 0 < leads < people
    return Needs(
        role="lead" if leads == people else "approver",
        people=people,
        one_of_role="lead" if some else None,
        count_of_role=leads if some and leads > 1 else None,
        amount_minor=one.amount_minor,
    )


def describe(needs: Needs) -> str:
    """Who is asked for: `an approver`, `2 leads`, `2 people, approvers or above`, `2 people, one of them a lead`."""
    higher = needs.one_of_role if needs.one_of_role != needs.role else None
    if needs.people == 1:
        role = higher or needs.role
        return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"
    if higher is None:
        return f"{needs.people} people, {needs.role}s or above" if needs.role != "lead" else f"{needs.people} leads"
    of_role = _of_role(needs)
    which = f"one of them a {higher}" if of_role == 1 else f"{of_role} of them {higher}s"
    return f"{needs.people} people, {which}"


def _of_role(needs: Needs) -> int:
    """How many have to be of the higher role; of the role itself where no higher one is named."""
    return (needs.count_of_role or 1) if needs.one_of_role is not None else needs.people


def _quota(needs: Needs) -> tuple[int, int]:
    """How many people are needed in all, and how many of them have to be leads."""
    people = max(needs.people, _of_role(needs))
    if needs.role == "lead":
        return people, people
    return people, _of_role(needs) if needs.one_of_role == "lead" else 0
