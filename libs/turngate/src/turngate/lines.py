"""A fact as one line of text, for a person who watches a run in a terminal."""

import unicodedata
from collections.abc import Callable
from typing import Any

from contracts import facts as f
from contracts import parts
from contracts.events import Event
from contracts.money import Money
from contracts.refused_decisions import attempt
from contracts.turn import sums_in_words

WIDTH = 160


# Of the columns before what a fact says, in characters: the longest author and nearly the longest name.
COLUMNS = (8, 9, 17)


def columns(event: Event) -> tuple[str, str, str, str]:
    """Time, author, fact, and what it says."""
    return f"{event.time:%H:%M:%S}", event.author, event.name, says(event)


def line(event: Event) -> str:
    """The same as one line of text."""
    *cells, last = columns(event)
    return "  ".join([*(f"{cell:<{width}}" for cell, width in zip(cells, COLUMNS, strict=True)), last]).rstrip()


def says(event: Event) -> str:
    """What the fact says, on one line and at most so long."""
    how = SAYINGS.get(type(event.fact)) if event.fact else None
    return plain(how(event.fact)) if how else ""


def plain(text: str, width: int = WIDTH) -> str:
    """Without line ends and what would steer a terminal, and cut where it is too long: the texts are strangers'."""
    words = " ".join(text.split())
    safe = "".join("�" if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character for character in words)
    return safe if len(safe) <= width else f"{safe[: width - 1]}…"


def money(effect: parts.Effect | None, locale: str = "") -> str:
    if effect is None or effect.amount_minor is None or effect.currency is None:
        return ""
    return Money(effect.amount_minor, effect.currency).text(locale)


def sums(total: list[dict[str, Any]], locale: str = "") -> str:
    """Each currency's sum by itself, as in `£40.00 + $12.00`."""
    return sums_in_words((Money(one["amount_minor"], one["currency"]) for one in total), locale)


def _call(call: parts.ToolCall) -> str:
    given = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return f"{call.tool}({given})"


def _quote(quote: parts.CallQuote) -> str:
    if quote.will_fail:
        return f"{quote.tool} will not do: {quote.will_fail}"
    if quote.effect:
        return f"{quote.tool} would: {quote.effect.summary}"
    return f"{quote.tool} (reads)"


def _needs(needs: parts.Needs) -> str:
    text = f"{needs.people} {needs.role}" + ("s" if needs.people > 1 else "")
    if needs.count_of_role:
        return f"{text}, {needs.count_of_role} of them {needs.one_of_role}s"
    return f"{text}, one of them a {needs.one_of_role}" if needs.one_of_role else text


def _held(held: f.TurnHeld) -> str:
    holds = "; ".join(f"{hold.reason} Needs {_needs(hold.needs)}" for hold in held.holds)
    return f"nothing runs before a person decides. {holds}."


def _forwarded(forwarded: f.TurnForwarded) -> str:
    declined = [verdict.call_id for verdict in forwarded.verdicts if verdict.verdict == "declined"]
    runs = len(forwarded.verdicts) - len(declined)
    text = f"turn {forwarded.turn}: {runs} call{'s' * (runs != 1)} may run"
    return f"{text}; declined: {', '.join(declined)}" if declined else text


def _executed(executed: f.TurnExecuted) -> str:
    def one(result: parts.CallResult) -> str:
        people = " and ".join(executed.approved_by.get(result.call_id, []))
        return (f"released by {people}: " if people else "") + (result.content or "done")

    return "; ".join(one(result) for result in executed.results)


def _decided(decided: f.CallDecided) -> str:
    verb = {"approve": "approves", "decline": "declines"}[decided.decision]
    note = f": {decided.note}" if decided.note else ""
    return f"{decided.by.subject} ({decided.by.role}) {verb} {decided.call_id}{note}"


def _started(started: f.RunStarted) -> str:
    ticket = started.ticket
    who = f"{started.requested_by.subject} ({started.requested_by.role})"
    return f"{who} asks for {ticket.reference} to be worked: {ticket.subject}"


def _ended(ended: f.RunEnded) -> str:
    steps = f"{ended.steps} step{'s' * (ended.steps != 1)}"
    return f"{ended.status} after {steps}: {ended.reason}"


def _refused(refused: f.TurnRefused) -> str:
    return f"turn {refused.turn} does not run: " + "; ".join(result.content for result in refused.results)


SAYINGS: dict[type[f.Fact], Callable[[Any], str]] = {
    f.RunStarted: _started,
    f.CustomerSaid: lambda fact: f"“{fact.text}”{f' (typed by {fact.by.subject})' if fact.by else ''}",
    f.RunCancelled: lambda fact: f"{fact.by.subject} stopped the run. {fact.reason}",
    f.RunFailed: lambda fact: fact.reason,
    f.RunTakenOver: lambda fact: f"{fact.by.subject} answers from here on. {fact.reason}",
    f.PersonSaid: lambda fact: f"{fact.by.subject}: “{fact.text}”",
    f.RunErased: lambda fact: f"{fact.by.subject} had the customer erased: what was personal here is lost",
    f.TurnProposed: lambda fact: f"turn {fact.turn}: " + "; ".join(_call(call) for call in fact.calls),
    f.HandedOver: lambda fact: f"{fact.from_agent} hands over to {fact.to_agent}",
    f.AnswerUnfinished: lambda fact: f"the model stopped at {fact.stop_reason}; next: {fact.next}",
    f.ReplyGiven: lambda fact: f"“{fact.text}”",
    f.RunEnded: _ended,
    f.TurnQuoted: lambda fact: "; ".join(_quote(quote) for quote in fact.quotes),
    f.TurnExecuted: _executed,
    f.OutcomeUnknown: lambda fact: f"the provider did not answer for {fact.call_id}",
    f.OutcomeSettled: lambda fact: f"{fact.call_id}: {fact.outcome}, found out by {fact.by}",
    f.TurnForwarded: _forwarded,
    f.TurnHeld: _held,
    f.TurnRefused: _refused,
    f.CallDecided: _decided,
    f.DecisionRefused: lambda fact: f"{fact.by.subject} {attempt(fact, fact.call_id)}: {fact.reason}",
    f.ReminderSent: lambda fact: f"still undecided: {', '.join(fact.call_ids)}",
    f.HoldEscalated: lambda fact: f"now a {fact.role} may decide on {', '.join(fact.call_ids)}",
    f.HoldExpired: lambda fact: f"nobody decided in time on {', '.join(fact.call_ids)}: declined",
}
