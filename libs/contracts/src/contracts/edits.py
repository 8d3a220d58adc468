"""What becomes of an approval whose giver changed the call: when it also stands for what the change came to."""

from contracts.facts import CallQuote


def carries_over(was: CallQuote, now: CallQuote) -> bool:
    """Whether who approved `was` with changes has approved `now`: the same tool on the same object for the same person,
    and less money or as much, but some. Anything else is another call, which is held anew."""
    if now.edited != was.digest or was.will_fail is not None or now.will_fail is not None:
        return False
    if was.effect is None or now.effect is None or was.kind != "write":
        return False
    if (was.call_id, was.tool, was.kind, was.subject) != (now.call_id, now.tool, now.kind, now.subject):
        return False
    if (was.effect.object, was.effect.currency) != (now.effect.object, now.effect.currency):
        return False
    before, after = was.effect.amount_minor, now.effect.amount_minor
    return before is not None and after is not None and 0 < after <= before
