"""An approval with changes: what a call may be changed into, and when the approval stands for what that came to."""

from contracts.money import Money
from contracts.parts import CallQuote, Effect


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


def day_total(held: int | None, was: CallQuote, now: CallQuote) -> int | None:
    """What the customer is refunded that day all together: what the hold of `was` says, with the one amount for the
    other. As far as that is not known, what `now` moves."""
    before, after = (quote.effect.amount_minor if quote.effect else None for quote in (was, now))
    return after if held is None or before is None or after is None else held - before + after


def objection(was: CallQuote, now: CallQuote, locale: str = "") -> str | None:
    """Why a held call may not be approved as changed into `now`; None if it may. Both are quotes of the same call."""
    if now.digest == was.digest or now.arguments == was.arguments:
        return "Nothing was changed. Approve it as it is instead."
    if now.will_fail is not None:
        return f"So changed it would fail: {now.will_fail}"
    if now.facts.stopped is not None:
        return now.facts.stopped
    if (now.call_id, now.tool, now.kind) != (was.call_id, was.tool, was.kind):
        return "That is another call. Decline this one and have the agent ask again."
    if now.duplicate_of is not None and was.duplicate_of is None:
        return "So changed it would repeat what was done already, and do nothing."
    if was.effect is None or now.effect is None:
        return "What it would do so changed is not known. Approve it as it is, or decline it."
    if now.subject != was.subject or now.effect.object != was.effect.object:
        return f"So changed it would be about {now.effect.object}, not {was.effect.object}. Decline it instead."
    return _moves_too_much(was.effect, now.effect, locale)


def _moves_too_much(was: Effect, now: Effect, locale: str) -> str | None:
    if now.currency != was.currency:
        return f"So changed it would move {now.currency or 'no currency'}, not {was.currency or 'none'}."
    before, after = was.amount_minor, now.amount_minor
    if before is None and after is None:
        return None
    if before is None or after is None:
        return "So changed it would move another kind of amount than was asked for."
    if after <= 0:
        return "So changed it would move nothing. Decline it instead."
    if after > before:
        more, asked = (Money(minor, was.currency or "").text(locale) for minor in (after, before))
        return f"So changed it would move {more}, more than the {asked} that was asked for."
    return None
