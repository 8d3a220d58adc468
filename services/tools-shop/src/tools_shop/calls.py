"""A turn's calls: read once, with what each came to turned into its quote, its digest or its result."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from contracts.canonical import sha256
from contracts.kill_switch import Stop
from contracts.parts import CallQuote, CallResult, Digest, Json, QuoteFacts, ToolCall

from tools_shop.caller import Caller
from tools_shop.edits import Edit, change
from tools_shop.outcomes import Arguments, Done, Found, Outcome, Refusal
from tools_shop.texts import echo, shown
from tools_shop.toolset import Read, Toolset, Write
from tools_shop.transaction import Lock, Transaction

_LONGEST_RESULT = 12_000
_ALL_RESULTS = 600_000  # bytes: well under what one fact may hold


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was read: `refusal` where its tool or its arguments are not to be used, and then no `tool`.

    `edited` where a person changed it: the digest of what was held. `change` says what they changed, for the model.
    """

    call_id: str
    name: str
    kind: Literal["read", "write"]
    tool: Read | Write | None
    arguments: Arguments
    refusal: Refusal | None = None
    edited: Digest | None = None
    change: str = ""

    @property
    def locks(self) -> frozenset[Lock]:
        return self.tool.locks(self.arguments) if isinstance(self.tool, Write) else frozenset()


def read(toolset: Toolset | None, calls: Sequence[ToolCall], edits: Mapping[str, Edit] | None = None) -> list[Call]:
    """The calls, in order, as people changed them (`edits`, by call id).

    Of those that share an id none is used: one would be judged by what the other does.
    """
    times = Counter(call.call_id for call in calls)
    return [
        _read(toolset, call, (edits or {}).get(call.call_id)) if times[call.call_id] == 1 else _one_of_several(call)
        for call in calls
    ]


def writes(calls: Sequence[Call]) -> bool:
    return any(isinstance(call.tool, Write) for call in calls)


def _read(toolset: Toolset | None, call: ToolCall, edit: Edit | None) -> Call:
    asked = _as_given(toolset, call)
    if edit is None:
        return asked
    used = _as_given(toolset, call.model_copy(update={"arguments": edit.arguments}))
    return replace(used, edited=edit.was, change=change(asked.arguments, used.arguments))


def _as_given(toolset: Toolset | None, call: ToolCall) -> Call:
    tool = toolset.tools.get(call.tool) if toolset else None
    if tool is None:
        offered = f"There are: {', '.join(toolset.tools)}." if toolset else "This run has no tools here."
        refusal = Refusal("unknown-tool", f"There is no tool {shown(call.tool)}; nothing was done. {offered}")
        return Call(call.call_id, call.tool, "read", None, {}, refusal)
    arguments = tool.read(call.arguments)
    if isinstance(arguments, Refusal):
        safe: Json = echo(call.arguments)
        return Call(call.call_id, call.tool, tool.kind, None, safe, arguments)
    return Call(call.call_id, call.tool, tool.kind, tool, arguments)


def _one_of_several(call: ToolCall) -> Call:
    text = "Several calls of this turn have the same id, so none of them was run. Give each call an id of its own."
    return Call(call.call_id, call.tool, "read", None, {}, Refusal("call-id-twice", text))


def digest(caller: Caller, call: Call, outcome: Outcome | None, states: Mapping[Lock, Json]) -> str:
    """What approval and execution hold on to: everything of the call that matters, and nothing that drifts.

    Of a write: whose, what, how much, how it comes out, and the rows that it changes as they were before the turn. Of
    a read: what was asked. Never free text, clocks or totals.
    """
    free_text = call.tool.free_text if call.tool else frozenset()
    body: Json = {
        "tenant": caller.tenant,
        "tool": call.name,
        "arguments": {name: value for name, value in call.arguments.items() if name not in free_text},
    }
    if call.kind == "write":
        body["subject"] = caller.email
        body["state"] = {f"{lock.table}/{lock.key}": states.get(lock) for lock in sorted(call.locks)}
        match outcome:
            case Done():
                body["subject"] = outcome.subject
                body["object"] = outcome.effect.object
                body["amount_minor"] = outcome.effect.amount_minor
                body["currency"] = outcome.effect.currency
                body["duplicate_of"] = outcome.duplicate_of
            case Refusal():
                body["refused"] = outcome.code
            case _:
                pass
    return sha256(body)


def quote(caller: Caller, call: Call, outcome: Outcome | None, tx: Transaction | None = None) -> CallQuote:
    """What the call would do. A read that a quote does not run (None) has no outcome yet, and will not fail."""
    base = CallQuote(
        call_id=call.call_id,
        tool=call.name[:64],
        kind=call.kind,
        arguments=call.arguments,
        digest=digest(caller, call, outcome, tx.states if tx else {}),
        edited=call.edited,
    )
    match outcome:
        case Refusal():
            return base.model_copy(update={"will_fail": outcome.text})
        case Found():
            return base.model_copy(update={"subject": outcome.subject})
        case Done():
            return base.model_copy(
                update={
                    "subject": outcome.subject,
                    "effect": outcome.effect,
                    "facts": _facts(caller, call, outcome, tx) if tx else outcome.facts,
                    "duplicate_of": outcome.duplicate_of,
                }
            )
    return base


def stopped(call: Call, outcome: Outcome | None, stops: Sequence[Stop]) -> Stop | None:
    """The stop that covers what the call would do."""
    if not isinstance(call.tool, Write) or not isinstance(outcome, Done):
        return None
    tool, effect, today = call.tool, outcome.effect, outcome.facts.refunded_today_minor
    return next((one for one in stops if one.covers(tool.name, effect, today, harmless=tool.harmless)), None)


def _facts(caller: Caller, call: Call, done: Done, tx: Transaction) -> QuoteFacts:
    """With what the shop itself says of the call: how far it goes without a person, and whether it is stopped."""
    added: Json = {}
    if isinstance(call.tool, Write) and call.tool.harmless:
        added["harmless"] = True
    if done.effect.amount_minor:
        added["decided_above_minor"] = tx.tenant["floor_minor"]
    if stop := stopped(call, done, tx.stops):
        added["stopped"] = stop.text(tx.tenant["currency"], caller.locale)
    return done.facts.model_copy(update=added)


def result(call: Call, outcome: Outcome) -> CallResult:
    """What the model is told of a call that ran."""
    text = call.change + outcome.text
    if isinstance(outcome, Refusal):
        return refused(call.call_id, text, outcome.code)
    duplicate = isinstance(outcome, Done) and outcome.duplicate_of is not None
    return CallResult(call_id=call.call_id, content=text[:_LONGEST_RESULT], data=outcome.data, duplicate=duplicate)


def fitted(results: list[CallResult]) -> list[CallResult]:
    """The results, cut short where they would not fit into one fact together: what was done can always be said."""
    share = _ALL_RESULTS // len(results)
    return [result if _size(result) <= share else _cut(result, share) for result in results]


def _size(result: CallResult) -> int:
    """In bytes, as a fact is measured: a character may be four."""
    return len(result.model_dump_json().encode())


def _cut(result: CallResult, share: int) -> CallResult:
    # A character takes six bytes at most, as an escape; the rest is for the envelope of the result.
    text = result.content[: share // 8]
    return result.model_copy(update={"content": f"{text} … (cut short)", "data": {"cut": True}})


def refused(call_id: str, text: str, code: str) -> CallResult:
    return CallResult(call_id=call_id, content=text[:_LONGEST_RESULT], data={"refused": code}, is_error=True)
