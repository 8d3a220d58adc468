"""A playbook is a generator: it yields the turns that it needs, is sent their results, and returns the reply."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from standin.answer import ToolCall
from standin.conversation import Conversation, Result

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """Calls to make together, and what the agent says beside them."""

    text: str
    calls: tuple[ToolCall, ...]


Part = Generator[Turn, list[Result], T]
Play = Part[str]
Playbook = Callable[[Conversation], Play]


def one_each(text: str, tool: str, argument: str, values: list[str]) -> Turn:
    """The same read of several things."""
    return Turn(text, tuple(ToolCall(tool, {argument: value}) for value in values))
