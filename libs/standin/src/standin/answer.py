"""What the stand-in says: text, tool calls, and why it stopped."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from standin.signature import signed
from standin.usage import tokens


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call. `raw` is the argument text as a model might misspell it; it is sent as it stands."""

    name: str
    input: dict[str, Any] = field(default_factory=dict)
    raw: str | None = None

    def arguments(self) -> str:
        return self.raw if self.raw is not None else json.dumps(self.input, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Answer:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    stop: str | None = None

    def stop_reason(self) -> str:
        return self.stop or ("tool_use" if self.calls else "end_turn")

    def output_tokens(self) -> int:
        """Never nought: the API counts a few tokens even for an empty answer."""
        said = tokens(self.text) + tokens(self.thinking)
        return 3 + said + sum(12 + tokens(call.name) + tokens(call.arguments()) for call in self.calls)

    def within(self, max_tokens: int) -> "Answer":
        """The answer as far as the caller's limit lets it get. A call that does not fit is not begun."""
        if self.output_tokens() <= max_tokens:
            return self
        return Answer(text=self.text[: 4 * max_tokens], stop="max_tokens")

    def blocks(self, seed: bytes) -> list[dict[str, Any]]:
        """Content blocks; the same seed gives the same call ids."""
        blocks: list[dict[str, Any]] = []
        if self.thinking:
            blocks.append({"type": "thinking", "thinking": self.thinking, "signature": signed(self.thinking)})
        if self.text:
            blocks.append({"type": "text", "text": self.text})
        for at, call in enumerate(self.calls):
            blocks.append(
                {"type": "tool_use", "id": name("toolu", seed, at), "name": call.name, "input": call.input},
            )
        return blocks


def name(kind: str, seed: bytes, at: int = 0) -> str:
    """An id as the API writes them: `toolu_01…`."""
    digest = hashlib.blake2b(seed + at.to_bytes(2, "big") + kind.encode(), digest_size=11).hexdigest()
    return f"{kind}_01{digest}"
