"""Answers fixed beforehand by a test: what to say at each step of a conversation, when, and what goes wrong."""

from dataclasses import dataclass
from typing import Any

from standin.answer import Answer, ToolCall

ENDED = "The script has no more answers."


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong instead of, or in the middle of, an answer.

    status: an error answer of that status, with `retry_after` seconds and a message.
    error: an error event of that type inside a stream that began well.
    cut: the stream stops in the middle of its last block: `connection` drops it, `end` ends it as if complete.
    """

    status: int | None = None
    retry_after: float | None = None
    message: str = ""
    error: str | None = None
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One answer of a script. It waits for `gate` to be opened, then `delay_ms`, and `pace_ms` before each delta.

    in_pieces: a stream brings it a few words at a time, as a model does.
    """

    answer: Answer
    fault: Fault | None = None
    gate: str | None = None
    delay_ms: float = 0
    pace_ms: float | None = None
    in_pieces: bool = True


@dataclass(frozen=True, slots=True)
class Script:
    """Lines by step; a step may have several, one for each time that it is asked for. `repeat` says the last again."""

    key: str
    steps: tuple[tuple[Line, ...], ...]
    repeat: bool = False

    def line(self, step: int, time: int) -> Line:
        """The line for an answer at `step` (from 0) that is asked for the `time`th time (from 1)."""
        if step >= len(self.steps):
            if not self.repeat or not self.steps:
                return Line(Answer(text=ENDED))
            step = len(self.steps) - 1
        lines = self.steps[step]
        return lines[min(time, len(lines)) - 1]


def parse(given: Any) -> Script:
    """Reads a script. Raises ValueError that names what is wrong."""
    _fields(given, "the script", "key", "answers", "repeat")
    key, answers = given.get("key"), given.get("answers")
    if not isinstance(key, str) or not key:
        raise ValueError("the script needs a `key`: text that occurs in the conversation, such as a ticket reference")
    if not isinstance(answers, list):
        raise ValueError("the script needs `answers`: a list")
    steps = []
    for answer in answers:
        lines = answer if isinstance(answer, list) else [answer]
        if not lines:
            raise ValueError("an answer given as a list needs at least one entry")
        steps.append(tuple(map(_line, lines)))
    return Script(key, tuple(steps), bool(given.get("repeat", False)))


def _line(given: Any) -> Line:
    _fields(given, "an answer", "text", "thinking", "tool_calls", "stop_reason", "fault", "gate", "delay_ms", "pace_ms")
    calls = []
    for call in given.get("tool_calls", []):
        _fields(call, "a tool call", "name", "input", "raw")
        calls.append(ToolCall(call["name"], call.get("input", {}), call.get("raw")))
    fault = given.get("fault")
    if fault is not None:
        _fields(fault, "a fault", "status", "retry_after", "message", "error", "cut")
        if fault.get("cut") not in (None, "connection", "end"):
            raise ValueError("a fault's `cut` is `connection` or `end`")
    return Line(
        answer=Answer(given.get("text", ""), tuple(calls), given.get("thinking", ""), given.get("stop_reason")),
        fault=Fault(**fault) if fault is not None else None,
        gate=given.get("gate"),
        delay_ms=given.get("delay_ms", 0),
        pace_ms=given.get("pace_ms"),
    )


def _fields(given: Any, what: str, *names: str) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"{what} must be an object")
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(f"{what} has unknown fields: {', '.join(unknown)}; it may have {', '.join(names)}")
