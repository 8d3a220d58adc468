"""How the console writes money, times and text that others wrote."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from contracts.currencies import exponent
from contracts.model_wait import ModelWait, in_words
from contracts.money import Money, read
from contracts.parts import CallQuote, Effect
from contracts.people import describe
from contracts.turn import HeldTurn, Part, sums_in_words

from gateway.held import HeldCall
from gateway.locales import LOCALE
from gateway.tenant_facts import Stop
from gateway.texts import excerpt, plain
from gateway.views import Moved, RunView, moves, total

NBSP = "\u00a0"
# Characters that are not seen, or that change how what stands around them is read: all but tab and newline.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

STATUS = {
    "running": "Running",
    "awaiting_approval": "Held",
    "awaiting_customer": "Customer",
    "resolved": "Resolved",
    "escalated": "Escalated",
    "budget_exhausted": "Out of budget",
    "failed": "Run failed",
    "cancelled": "Stopped",
    "taken_over": "With a person",
    "open": "Open",
    "in_progress": "In progress",
}
# Word, tone and icon say the same thing; tone alone never does.
TONE = {
    "running": "run",
    "awaiting_approval": "hold",
    "resolved": "ok",
    "escalated": "hold",
    "budget_exhausted": "hold",
    "failed": "bad",
}
ICON = {
    "running": "run",
    "awaiting_approval": "pause",
    "awaiting_customer": "clock",
    "resolved": "check",
    "escalated": "person",
    "budget_exhausted": "flag",
    "failed": "x",
    "cancelled": "flag",
    "taken_over": "person",
    "open": "inbox",
    "in_progress": "person",
}


def money(amount_minor: int, currency: str) -> str:
    """In full, as in `£1,249.00`: as the locale of the asker's tenant has it."""
    return Money(amount_minor, currency).text(LOCALE.get())


def plain_amount(amount_minor: int, currency: str) -> str:
    """As a person types it, as in `1249.00`."""
    return Money(amount_minor, currency).typed(LOCALE.get())


def minor(typed: str, currency: str) -> int | None:
    """A typed amount in minor units: `120`, `120.5`, `£1,120.00`. None for what is none, or is not clear."""
    return read(typed, currency, LOCALE.get())


def an_amount(currency: str) -> str:
    """How an amount is typed, as in `100.00`: a hundred and no part of one."""
    return plain_amount(100 * 10 ** (exponent(currency) or 0), currency)


def sums(amounts: Iterable[Moved], sign: int = 1) -> str:
    """Each currency's sum by itself, as in `£40.00 + $12.00`; empty for none."""
    return " + ".join(money(sign * one.amount_minor, one.currency) for one in amounts)


def ledger(effect: Effect | None) -> str:
    """A write's money as the shop's ledger has it: what goes to the customer is negative."""
    if effect is None or effect.amount_minor is None or effect.currency is None:
        return ""
    return money(-effect.amount_minor, effect.currency)


def spend(micro_usd: int) -> str:
    """What model calls cost: three decimals under a dollar."""
    dollars = micro_usd / 1_000_000
    return f"${dollars:,.3f}" if micro_usd < 1_000_000 else f"${dollars:,.2f}"


def age(span: timedelta) -> str:
    """How long something has waited: `8 s`, `4 min`, `1 h 06`, `2 d`."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds}{NBSP}s"
    if seconds < 3600:
        return f"{seconds // 60}{NBSP}min"
    if seconds < 86400:
        return f"{seconds // 3600}{NBSP}h{NBSP}{seconds % 3600 // 60:02d}"
    return f"{seconds // 86400}{NBSP}d"


def duration(span: timedelta) -> str:
    """How long something took: `0.8 s`, `4 min 12 s`, `1 h 06`."""
    seconds = max(0.0, span.total_seconds())
    if seconds < 59.95:
        return f"{seconds:.1f}{NBSP}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}{NBSP}min{NBSP}{whole % 60}{NBSP}s"
    return age(span)


def clock(at: datetime, zone: str) -> str:
    """The time of day in the tenant's zone, as in `14:02:11`."""
    return at.astimezone(ZoneInfo(zone)).strftime("%H:%M:%S")


def model_wait(wait: ModelWait, zone: str) -> str:
    return in_words(wait, clock(wait.since, zone))


def stamp(at: datetime, zone: str) -> str:
    """Date and time in full, as in `29 Nov 2026 14:02:11 GMT`."""
    local = at.astimezone(ZoneInfo(zone))
    return f"{local.day} {local:%b %Y %H:%M:%S %Z}"


def day(at: datetime, zone: str) -> str:
    """The date in the tenant's zone, as in `Sunday 29 November 2026`."""
    local = at.astimezone(ZoneInfo(zone))
    return f"{local:%A} {local.day} {local:%B %Y}"


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    """The text with every hidden and direction character shown as what it is, so that none can act."""
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text.replace("\r\n", "\n"))


def label(name: str) -> str:
    """A field's name for people: `refundable_minor` reads `refundable`."""
    return name.removesuffix("_minor").replace("_", " ")


def value(name: str, item: object, currency: str | None) -> str:
    """A field of an object's state for people; `…_minor` is money."""
    if name.endswith("_minor") and isinstance(item, int):
        return money(item, currency or "")
    return plain(item)


def changes(effect: Effect | None) -> list[tuple[str, str, str]]:
    """What a write changes, field by field: name, before, after. A field that stays is left out."""
    if effect is None:
        return []
    return [
        (
            label(name),
            value(name, effect.before.get(name), effect.currency),
            value(name, effect.after.get(name), effect.currency),
        )
        for name in dict.fromkeys((*effect.before, *effect.after))
        if effect.before.get(name) != effect.after.get(name)
    ]


def initials(name: str) -> str:
    words = re.findall(r"[^\W_]+", name)
    return "".join(word[0] for word in words[:2]).upper() or "?"


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def arguments(given: dict[str, object]) -> str:
    """A call's arguments in one line: the values where they speak for themselves."""
    return ", ".join(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in given.values())


def amount(effect: Effect | None) -> str:
    """A write's money without a sign, as sentences and buttons have it; empty where none moves."""
    if effect is None or effect.amount_minor is None or effect.currency is None:
        return ""
    return money(abs(effect.amount_minor), effect.currency)


def subject(text: str) -> str:
    """A ticket's subject, or words that can be clicked where it has none."""
    return text if text.strip() else "No subject"


def decided_amount(held: Iterable[HeldCall]) -> str:
    """What held calls came to: `£180.00`, `£100.00 of £129.00 asked` once changed, `nothing of …` for what was not
    done in spite of an approval."""
    calls = [call for call in held if call.quote.effect]
    asked = sums(total(money for call in calls if (money := moves(call.asked))))
    came_to = sums(total(money for call in calls if not call.came_to_nothing and (money := moves(call.latest))))
    return _of_asked(came_to, asked)


def turn_amount(view: RunView) -> str:
    """What the held turn came to, its other calls included: as `decided_amount` has it of a call."""
    asked, came_to = sums(view.asked_for), sums(view.came_to)
    if not came_to and not any(call.approvals for call in view.held):
        return asked
    return _of_asked(came_to, asked)


def _of_asked(came_to: str, asked: str) -> str:
    if came_to == asked or not asked:
        return came_to
    return f"{came_to or 'nothing'} of {asked} asked"


def together(turn: HeldTurn) -> str:
    """What a turn that moves money in several calls moves all together, as in `£80.00 in 2 payments`; else empty."""
    paying = sum(part.money is not None for part in turn.parts)
    return f"{sums_in_words(turn.total, turn.locale)} in {plural(paying, 'payment')}" if paying > 1 else ""


def approves(turn: HeldTurn, call_id: str) -> str:
    """What the button does: `Approve £80.00`, all that the turn then moves; where another call of it still waits,
    `Approve £40.00 of £80.00`."""
    release = turn.release(call_id)
    total, part = sums_in_words(release.total, turn.locale), turn.part(call_id)
    own = sums_in_words([part.money], turn.locale) if part and part.money else ""
    return " ".join(filter(None, ("Approve", own and f"{own} of" if release.waits_for else "", total)))


def declines(turn: HeldTurn, call_id: str) -> str:
    """`Decline £40.00`."""
    part = turn.part(call_id)
    return f"Decline {sums_in_words([part.money], turn.locale)}" if part and part.money else "Decline"


def releases(turn: HeldTurn, call_id: str) -> str:
    """What an approval of it brings, as far as its button does not say so; empty where it moves this and nothing
    else."""
    release = turn.release(call_id)
    paying = release.paying
    parts = f"{plural(len(paying), 'payment')} of one turn: {'; '.join(part.summary for part in paying)}"
    if release.now:
        return f"Releases {sums_in_words(release.total, turn.locale)} in {parts}." if len(paying) > 1 else ""
    until = []
    if release.more_people:
        until.append(plural(release.more_people, "more person has approved", "more people have approved"))
    if release.waits_for:
        others = plural(len(release.waits_for), "other held call", "other held calls")
        until.append(f"{others} of this turn {'is' if len(release.waits_for) == 1 else 'are'} decided")
    whole = f" Then it releases {sums_in_words(release.total, turn.locale)}" if release.total else ""
    which = f" in {parts}" if whole and len(paying) > 1 else ""
    return f"Releases nothing before {' and '.join(until)}.{whole}{which}{'.' if whole else ''}"


def rest(turn: HeldTurn, call_id: str) -> str:
    """What a decline of it releases all the same, as a turn runs without what was declined; empty for no money."""
    release = turn.release(call_id, "decline")
    if not release.total:
        return ""
    paying = "; ".join(part.summary for part in release.paying)
    when = "" if release.now else f", once {'it is' if len(release.waits_for) == 1 else 'they are'} decided,"
    return f"The rest of the turn still runs{when} and pays {sums_in_words(release.total, turn.locale)}: {paying}."


def stands(part: Part) -> str:
    """How another call of the turn stands, beside the one that is decided."""
    return {
        "waits": "It is held as well, and decided by itself.",
        "approved": "It is approved, and runs with this.",
        "declined": "It was declined, and does not run.",
        "expired": "Nobody decided it in time, and it does not run.",
        "along": "Nobody is asked about it: it runs with this." if part.quote.kind == "write" else "It waits along.",
        "fails": "It will not work.",
        "repeated": "It had been made before; nothing more would be paid.",
    }[part.state]


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a before and after; `was` is empty for what is new, `now` for what is gone."""

    name: str
    was: str
    now: str


def moved_on(was: CallQuote, now: CallQuote) -> list[Change]:
    """What a call would do now that is not what it would have done, line by line; nothing for the same effect."""
    one, other = was.effect, now.effect
    if now.will_fail is not None and was.will_fail is None:
        return [Change("Would do", one.summary if one else was.tool, "nothing: it would fail")]
    lines = [Change("Would do", one.summary if one else was.tool, other.summary if other else now.tool)]
    if now.will_fail != was.will_fail:
        lines.append(Change("Would fail", was.will_fail or "no", now.will_fail or "no"))
    lines.append(Change("Amount", amount(one), amount(other)))
    before, after = (one.before if one else {}), (other.before if other else {})
    currency = (other and other.currency) or (one and one.currency) or None
    for name in dict.fromkeys((*before, *after)):
        lines.append(
            Change(
                f"{label(name).capitalize()} before it",
                value(name, before[name], currency) if name in before else "",
                value(name, after[name], currency) if name in after else "",
            )
        )
    return [line for line in lines if line.was != line.now]


def arguments_moved(was: CallQuote, now: CallQuote) -> list[Change]:
    """The texts among a call's arguments that are not what they were; amounts and references show in the effect."""
    names = dict.fromkeys((*was.arguments, *now.arguments))
    pairs = {name: (was.arguments.get(name), now.arguments.get(name)) for name in names}
    return [
        Change(label(name).capitalize(), excerpt(value(name, one, None), 160), excerpt(value(name, other, None), 160))
        for name, (one, other) in pairs.items()
        if one != other and (isinstance(one, str) or isinstance(other, str))
    ]


def capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def seats_left(call: HeldCall) -> str:
    """Who may still release it, as in `needs 2 people, one of them a lead; sam has approved`."""
    seated = call.approvals
    text = f"needs {describe(call.hold.needs)}"
    if seated:
        names = " and ".join(dict.fromkeys(seat.by.subject for seat in seated))
        text += f"; {names} {'has' if len(seated) == 1 else 'have'} approved"
    return text


def awaited(call: HeldCall) -> str:
    """For whom a call waits, in a word or two: `An approver`, `A lead`, `2 people`, `1 more person`."""
    needs, seated = call.hold.needs, len(call.approvals)
    if needs.people > 1:
        return plural(needs.people - seated, "more person", "more people") if seated else f"{needs.people} people"
    return capitalize_first(article(call.escalated_to or needs.one_of_role or needs.role))


def stopped(stop: Stop, currency: str) -> str:
    """What a stop covers, as in `issue_refund above £100.00 to one customer in a day is stopped`."""
    what = stop.tool or "Everything that changes something"
    if stop.above_minor is not None:
        what = f"{stop.tool or 'Everything'} above {money(stop.above_minor, currency)} to one customer in a day"
    return f"{what} is stopped"


def article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"
