"""Which of a pack's needs nobody could meet: said when it is promoted, as holds by them only expire or are declined."""

from collections.abc import Iterator, Sequence

from contracts.money import Money
from contracts.parts import Needs, Person
from contracts.people import describe, enough, reaches, stricter, within_own_limit

from policy.pack import PolicyPack

LEAD = Needs(role="lead")


def unmet(pack: PolicyPack, known: Sequence[Person]) -> list[str]:
    """A sentence for each; `known` are all who decide there. Nobody is counted who asks for a run themselves: that is
    known of each run only."""
    found = [_unmet(what, needs, known) for what, needs in _needs(pack)]
    return [why for why in found if why is not None]


def _needs(pack: PolicyPack) -> Iterator[tuple[str, Needs]]:
    """Every need that the pack may ask for, and of what, each with the most that it may be asked for."""
    limits = pack.limits
    asking = [limits.customer_day, limits.cooling_off, limits.refund_window, *limits.profile_day.values()]
    by_lead = any(limit is not None and limit.then == "hold" and limit.role == "lead" for limit in asking)
    for tier in pack.refund.tiers:
        needs = tier.needs.model_copy(update={"amount_minor": tier.up_to})
        what = f"refunds of up to {Money(tier.up_to, pack.currency).text()} to one customer in a day"
        yield what, needs
        if by_lead and stricter(needs, LEAD) != needs:
            yield f"{what}, where a limit asks for a lead as well", stricter(needs, LEAD)
    yield "a tool that the pack does not name", LEAD.model_copy(update={"amount_minor": 0})


def _unmet(what: str, needs: Needs, known: Sequence[Person]) -> str | None:
    fit = [one for one in known if reaches(one.role, needs.role) and within_own_limit(one, needs)]
    if enough(needs, fit):
        return None
    names = " and ".join(f"{one.subject} ({one.role})" for one in fit)
    there = f"the only one is {names}" if len(fit) == 1 else f"there are only {names}" if fit else "there is nobody"
    return (
        f"Nobody can release {what}: that needs {describe(needs)}, and of those who may release so much {there}. "
        "Such a hold can only be declined, or expires."
    )
