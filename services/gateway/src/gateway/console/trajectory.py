"""A run as rows for a person: each fact opens a row or completes one, the same on the page and on the stream."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from contracts.events import Event
from contracts.facts import (
    CallDecided,
    HoldExpired,
    ReplyGiven,
    RunStarted,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.parts import CallQuote, CallResult, Hold

from gateway.console.rows import Line, Row, Strip, TurnBox, row
from gateway.console.told import told
from gateway.console.words import day, duration, ledger, moved_on, plural
from gateway.edits import in_words
from gateway.folding import evolve
from gateway.locales import LOCALE
from gateway.views import RunView

# What a carried-out write is called. A tool that is not here is named as it is.
DONE = {
    "issue_refund": ("Refund made", "Refund not made", "Refund had been made before"),
    "cancel_subscription": (
        "Subscription cancelled",
        "Subscription not cancelled",
        "Subscription was cancelled before",
    ),
    "escalate_to_human": ("Handed to a person", "Not handed to a person", "Was handed to a person before"),
}


@dataclass(slots=True)
class Trajectory:
    """The rows of one run, in order, with its days in the zone. `see` takes the next fact and tells which rows it
    opened or changed. Nothing but the facts tells what a row says: not when, or beside which others, they came."""

    zone: str = "UTC"
    rows: dict[str, Row] = field(default_factory=dict)
    _turn: str = ""
    _before: datetime | None = None
    _held: datetime | None = None
    _holds: dict[str, Hold] = field(default_factory=dict)
    _decisions: dict[str, list[str]] = field(default_factory=dict)
    _declined: dict[str, str] = field(default_factory=dict)
    _day: date | None = None
    _view: RunView | None = None  # the run before the fact that is seen

    def see(self, event: Event) -> list[Row]:
        changed = [one for row in self._changed(event) for one in self._with_its_day(row)]
        self._view = evolve(self._view, event)
        self.rows |= {one.id: one for one in changed}
        self._before = event.time
        return changed

    def see_all(self, events: Iterable[Event], after: int) -> list[Row]:
        """The rows that those of the next facts opened or changed that stand behind sequence `after`, as all leave
        them."""
        changed = [row.id for event in events for row in self.see(event) if event.sequence > after]
        return [self.rows[row_id] for row_id in dict.fromkeys(changed)]

    def _changed(self, event: Event) -> list[Row]:
        match event.fact:
            case RunStarted() as fact:
                return _started(event, fact)
            case TurnProposed() as fact:
                return [self._proposed(event, fact)]
            case TurnQuoted() | TurnForwarded() | TurnHeld() | TurnRefused() as fact:
                return self._judged(event, fact)
            case TurnExecuted() as fact:
                return self._executed(event, fact)
            case CallDecided() as fact:
                return [self._decided(event, fact)]
            case HoldExpired() as fact:
                self._declined |= dict.fromkeys(fact.call_ids, "Not decided in time")
                return [told(event)]
            case ReplyGiven() as fact:
                return [row(event, "reply", "Reply sent", says=fact.text, meta=self._since(event))]
            case _:
                return [told(event)]

    def _with_its_day(self, row: Row) -> list[Row]:
        """The row, behind one that names its day where that is a later one than the rows before have."""
        if row.id in self.rows:
            return [row]
        before, today = self._day, row.at.astimezone(ZoneInfo(self.zone)).date()
        self._day = max(today, before or today)
        if before is None or today <= before:
            return [row]
        title = day(row.at, self.zone)
        return [Row(f"{row.id}-day", row.opened, row.seq, row.at, "", title, day=True), row]

    def _since(self, event: Event) -> str:
        return duration(event.time - self._before) if self._before else ""

    def _proposed(self, event: Event, fact: TurnProposed) -> Row:
        self._turn, self._held = f"e-{event.sequence}", None
        self._holds, self._decisions, self._declined = {}, {}, {}
        lines = tuple(Line(call.call_id, call.tool, call.arguments) for call in fact.calls)
        box = TurnBox(fact.turn, words_of(fact.content), lines)
        return row(event, "turn", f"Turn {fact.turn}", turn=box, meta=self._since(event))

    def _judged(self, event: Event, fact: TurnQuoted | TurnForwarded | TurnHeld | TurnRefused) -> list[Row]:
        opened = self.rows.get(self._turn)
        if opened is None or opened.turn is None:
            return [told(event)]
        box, tone = opened.turn, opened.tone
        match fact:
            case TurnQuoted():
                box = _quoted(box, fact)
            case TurnForwarded():
                # Policy has the last word on what counted as declined.
                runs = {verdict.call_id for verdict in fact.verdicts if verdict.verdict == "run"}
                self._declined = {call_id: said for call_id, said in self._declined.items() if call_id not in runs}
                if self._held is None and not box.reads_only:
                    box = replace(box, strips=(*box.strips, _forwarded(fact)))
            case TurnHeld():
                self._held, self._holds = event.time, {hold.call_id: hold for hold in fact.holds}
                box, tone = replace(box, strips=(*box.strips, _held(fact, box))), "hold"
            case TurnRefused():
                strip = Strip("bad", "no", "Refused", f"{fact.rule}. The agent was told why and may try again.")
                lines = _with_results(box.lines, fact.results, lambda result: self._outcome(result, "Refused"))
                box = replace(box, strips=(*box.strips, strip), lines=lines)
                tone = "bad"
        judged = [replace(opened, turn=box, tone=tone, seq=event.sequence)]
        if isinstance(fact, TurnRefused) and any("approve" in said for said in self._decisions.values()):
            judged.append(_refused_after_all(event, fact, box))
        return judged

    def _executed(self, event: Event, fact: TurnExecuted) -> list[Row]:
        opened = self.rows.get(self._turn)
        if opened is None or opened.turn is None:
            return [told(event)]
        results = _with_results(opened.turn.lines, fact.results, lambda result: self._outcome(result, "Error"))
        box = replace(opened.turn, lines=results)
        lines = {line.call_id: line for line in box.lines}
        changed = [replace(opened, turn=box, seq=event.sequence)]
        for result in fact.results:
            line = lines.get(result.call_id)
            declined = result.call_id in self._declined
            if line and line.quote and line.quote.kind == "write" and not line.quote.will_fail and not declined:
                changed.append(_done(event, fact, line, result, self._since(event)))
        return changed

    def _outcome(self, result: CallResult, failed: str) -> str:
        """What a call's result is: what people did not release has not failed."""
        return self._declined.get(result.call_id) or (failed if result.is_error else "Result")

    def _decided(self, event: Event, fact: CallDecided) -> Row:
        said = self._decisions.setdefault(fact.call_id, [])
        said.append(fact.decision)
        if fact.decision == "decline":
            self._declined[fact.call_id] = "Declined"
        hold = self._holds.get(fact.call_id)
        approved = fact.decision == "approve"
        title = f"{'Approved' if approved else 'Declined'} by {fact.by.subject}"
        if approved and hold and hold.needs.people > 1:
            title += f", {said.count('approve')} of {hold.needs.people}"
        return row(
            event,
            "person",
            title,
            detail="; ".join(filter(None, (self._edited(fact), self._releases(fact)))),
            quoted=fact.note,
            meta=f"held {duration(event.time - self._held)}" if self._held else "",
            tone="ok" if approved else "bad",
        )

    def _releases(self, fact: CallDecided) -> str:
        """What it releases, all of the turn, in words; of one with changes that shows in what it is quoted as."""
        if self._view is None or fact.edited is not None:
            return ""
        release = self._view.held_turn.release(fact.call_id, fact.decision)
        if not release.text:
            return ""
        return f"releases {release.text}" if fact.decision == "approve" else f"the rest of the turn: {release.text}"

    def _edited(self, fact: CallDecided) -> str:
        """What the decision changes, in words; empty for one that changes nothing."""
        box = self.rows[self._turn].turn if self._turn in self.rows else None
        quote = next((line.quote for line in box.lines if line.call_id == fact.call_id), None) if box else None
        if fact.edited is None:
            return ""
        said = in_words(quote, fact.edited, LOCALE.get()) if quote is not None else ""
        return f"with changes: {said}" if said else "with changes"


def words_of(content: list[dict[str, Any]]) -> str:
    """What the model wrote beside its calls."""
    return "\n\n".join(block["text"].strip() for block in content if block.get("type") == "text" and block.get("text"))


def _started(event: Event, fact: RunStarted) -> list[Row]:
    """The run's start and the customer's message, in the order of their times."""
    who = fact.requested_by.subject
    how = f"by {who}, {fact.profile} agent, policy {fact.policy_pack}, up to {plural(fact.limits.max_steps, 'step')}"
    customer = fact.ticket.customer.name or fact.ticket.customer.email
    begun = row(event, "play", "Run started", detail=how, meta=event.key.run)
    message = row(event, "chat", customer, part="message", says=fact.ticket.body)
    message = replace(message, at=fact.ticket.opened_at or event.time)
    return sorted([begun, message], key=lambda one: one.at)


def _quoted(box: TurnBox, fact: TurnQuoted) -> TurnBox:
    quotes = {quote.call_id: quote for quote in fact.quotes}
    lines = tuple(replace(line, quote=quotes.get(line.call_id, line.quote)) for line in box.lines)
    reads = all(quote.kind == "read" for quote in fact.quotes)
    again = (Strip("", "run", "Quoted again", _what_moved(box, quotes)),) if fact.attempt > 1 else ()
    return replace(box, lines=lines, reads_only=reads, strips=(*box.strips, *again))


def _what_moved(box: TurnBox, quotes: dict[str, CallQuote]) -> str:
    """What the calls would do now that is not what they would have done before."""
    changed = [
        f"{change.name.lower()} was {change.was or 'nothing'}, is {change.now or 'nothing'}"
        for line in box.lines
        if line.quote and line.call_id in quotes
        for change in moved_on(line.quote, quotes[line.call_id])
    ]
    return "; ".join(changed) or "the effect is the same"


def _forwarded(fact: TurnForwarded) -> Strip:
    reasons = dict.fromkeys(verdict.reason or verdict.rule for verdict in fact.verdicts)
    return Strip("", "fwd", "Forwarded", "; ".join(reason for reason in reasons if reason))


def _held(fact: TurnHeld, box: TurnBox) -> Strip:
    count = len(box.lines)
    which = {1: "Held", 2: "Held, both calls"}.get(count, f"Held, all {count} calls")
    rules = dict.fromkeys(f"{hold.rule}: {hold.reason}" for hold in fact.holds)
    return Strip("hold", "pause", which, "; ".join(rules))


def _refused_after_all(event: Event, fact: TurnRefused, box: TurnBox) -> Row:
    """Of an approved turn, a row of its own: who approved it looks behind their approval."""
    moves = any(ledger(line.quote.effect) for line in box.lines if line.quote)
    nothing = "no money moved" if moves else "nothing was done"
    detail = f"{fact.rule}: {nothing}, in spite of the approval"
    return row(event, "no", "Refused", part="refused", detail=detail, tone="bad")


def _with_results(
    lines: tuple[Line, ...], results: list[CallResult], outcome: Callable[[CallResult], str]
) -> tuple[Line, ...]:
    by_call = {result.call_id: result for result in results}
    return tuple(
        replace(line, result=found.content, outcome=outcome(found)) if (found := by_call.get(line.call_id)) else line
        for line in lines
    )


def _done(event: Event, fact: TurnExecuted, line: Line, result: CallResult, took: str) -> Row:
    made, unmade, before = DONE.get(
        line.tool, (f"{line.tool} done", f"{line.tool} not done", f"{line.tool} done before")
    )
    effect = line.quote.effect if line.quote else None
    if result.is_error:
        return row(event, "x", unmade, part=line.call_id, says=result.content, meta=took, tone="bad")
    if result.duplicate:
        return row(event, "check", before, part=line.call_id, says=result.content, meta=took)
    where = [effect.object] if effect else []
    receipt = [f"receipt {fact.receipt_id[:13]}"] if fact.receipt_id else []
    detail = ", ".join(where + receipt)
    return row(event, "check", made, part=line.call_id, detail=detail, amount=ledger(effect), meta=took, tone="ok")
