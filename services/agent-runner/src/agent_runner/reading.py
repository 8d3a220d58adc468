"""What is read of an answer, event by event: nothing in it is believed before it was looked at."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from contracts.parts import Json, Usage
from contracts.strict import unique

from agent_runner import answer as answers
from agent_runner import arguments
from agent_runner.request import BYTES_PER_TOKEN, Request

LONGEST_STREAM = 2_000_000  # characters; no answer that can be kept is nearly as long
LONGEST_REASON = 64
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}
_KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


class Failed(Exception):
    """Inside of an answer the API said that it failed; `kind` is its name for that."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass
class _Block:
    start: Json
    pieces: list[str] = field(default_factory=list)
    complete: bool = False

    def whole(self) -> Json:
        joined = "".join(self.pieces)
        match self.start["type"]:
            case "text":
                return {**self.start, "text": _clean(_text(self.start.get("text")) + joined)}
            case "thinking":
                return {**self.start, "thinking": _text(self.start.get("thinking")) + joined}
            case "tool_use":
                return {**self.start, "input": self._input(joined)}
            case _:
                return self.start

    def _input(self, joined: str) -> Json:
        """The arguments: in pieces, as the API sends them, or whole at the block's start. Not some of each."""
        given = self.start.get("input")
        if given in (None, {}):
            return arguments.read(_paired(joined))
        whole = arguments.read(json.dumps(given, ensure_ascii=False))
        if joined and arguments.read(_paired(joined)) != whole:
            return arguments.unreadable("given twice, and differently", joined)
        return whole


class Reading:
    """The answer to `request` as far as it has been read: blocks as the API gave them, usage, why it stopped.

    `begun`: something of it has come. `over`: it has come to its end.
    """

    def __init__(self, request: Request) -> None:
        self.begun = False
        self.over = False
        self.detail = ""
        self.size = 0
        self.trouble = ""
        self._request = request
        self._events = 0
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._counted = False
        self._stop_reason: object = None

    def take(self, data: bytes) -> str:
        """Takes the data of one event; gives the text that it added, if any. Raises Failed.

        What cannot be read makes the answer unreadable, and no exception: it is paid for all the same.
        """
        if self.over:
            return ""
        self._events += 1
        try:
            return self._take(_parse(data))
        except Failed:
            raise
        except Exception as error:  # whatever an endpoint may send
            self.begun = True
            # Not what came: it may be a customer's words, and a log file is not erased.
            self.trouble = self.trouble or f"{type(error).__name__} in event {self._events}"
            return ""

    def fail(self, trouble: str) -> None:
        """Nothing of what came can be made use of."""
        self.begun, self.trouble = True, self.trouble or trouble

    def _take(self, event: Json) -> str:
        kind = event["type"]
        if kind == "error":
            raise Failed(_text((event.get("error") or {}).get("type")))
        self.begun = self.begun or kind != "ping"
        match kind:
            case "message_start":
                self._count(event["message"].get("usage"))
            case "content_block_start":
                index, start = event["index"], event["content_block"]
                if type(index) is not int or index in self._blocks or not isinstance(start["type"], str):
                    raise ValueError("no block")
                self._blocks[index] = _Block(start)
                return self._shown(start)
            case "content_block_delta":
                return self._add(self._blocks[event["index"]], event["delta"])
            case "content_block_stop":
                self._blocks[event["index"]].complete = True
            case "message_delta":
                self._stop(event["delta"])
                self._counted = self._count(event.get("usage"))
            case "message_stop":
                self.over = True
            case "message":
                self._whole(event)
        return ""

    def _whole(self, message: Json) -> None:
        """A message in one piece, from an endpoint that does not stream."""
        self._blocks = {index: _Block(block, complete=True) for index, block in enumerate(message["content"])}
        self.size += sum(len(json.dumps(block.start)) for block in self._blocks.values())
        self._stop(message)
        self._counted = self._count(message.get("usage"))
        self.over = True

    def _stop(self, delta: Json) -> None:
        self._stop_reason = delta.get("stop_reason")
        self.detail = _clean(_text((delta.get("stop_details") or {}).get("category")))[:LONGEST_REASON]

    def _shown(self, start: Json) -> str:
        text = _text(start.get("text")) if start["type"] == "text" else ""
        self.size += len(text)
        return text

    def _add(self, block: _Block, delta: Json) -> str:
        kind = delta["type"]
        if block.complete or _DELTAS.get(kind, block.start["type"]) != block.start["type"]:
            raise ValueError("a piece of another block")
        match kind:
            case "text_delta":
                piece = _text(delta["text"])
            case "input_json_delta":
                piece = _text(delta["partial_json"])
            case "thinking_delta":
                piece = _text(delta["thinking"])
            case "signature_delta":
                block.start = {**block.start, "signature": delta["signature"]}
                return ""
            case "citations_delta":
                block.start = {**block.start, "citations": [*(block.start.get("citations") or []), delta["citation"]]}
                return ""
            case _:
                return ""
        block.pieces.append(piece)
        self.size += len(piece)
        return piece if kind == "text_delta" else ""

    # What is paid for

    def _count(self, usage: object) -> bool:
        """Whether the output is counted. Counts are cumulative; one that is left out, or that no such request can have,
        stays as it was."""
        if not isinstance(usage, dict):
            return False
        most = {"output": self._request.max_tokens}
        given = {
            name: count
            for name, theirs in _KINDS.items()
            if type(count := usage.get(theirs)) is int and 0 <= count <= most.get(name, self._request.prompt_bytes)
        }
        self._usage |= given
        return "output" in given

    def paid(self) -> Usage:
        """What is paid for. How long the answer became is told behind it: of one that broke off, or that nobody can
        read, nobody knows how much was made of it, so it counts as all of it. What an endpoint leaves out is estimated
        from what was sent and what came, at few bytes a token, and so rather too high."""
        usage = dict(self._usage)
        prompt = self._request.prompt_bytes
        estimated = "input" not in usage or sum(usage.get(name, 0) for name in _KINDS if name != "output") > prompt
        if estimated:
            usage = {"input": -(-prompt // BYTES_PER_TOKEN)}
        if self._counted:
            usage["output"] = self._usage["output"]
        else:
            whole = self.over and not self.trouble
            usage["output"] = min(self._made(), self._request.max_tokens) if whole else self._request.max_tokens
        return Usage(**usage, estimated=True if estimated or not self._counted else None)

    def _made(self) -> int:
        """Tokens of what came, by its size."""
        content = [block.start for block in self._blocks.values()]
        pieces = [piece for block in self._blocks.values() for piece in block.pieces]
        size = len(json.dumps(content, ensure_ascii=False).encode(errors="replace"))
        return -(-(size + sum(len(piece.encode(errors="replace")) for piece in pieces)) // BYTES_PER_TOKEN)

    # What is kept

    def kept(self) -> tuple[list[Json], str]:
        """The content that may be kept, and why the answer stopped."""
        if self.size > LONGEST_STREAM:
            return [], answers.TOO_LONG
        if self.trouble:
            return [], answers.UNREADABLE
        if not self.over:
            return [], answers.CUT_OFF
        reason = self._stop_reason
        try:
            if not isinstance(reason, str) or not reason.isprintable() or not 0 < len(reason) <= LONGEST_REASON:
                raise ValueError("no stop reason")
            if not all(block.complete for block in self._blocks.values()):
                raise ValueError("half a block")
            return answers.usable([block.whole() for _, block in sorted(self._blocks.items())], reason)
        except Exception as error:  # whatever an endpoint may send
            self.trouble = f"{type(error).__name__} in the answer's blocks"
            return [], answers.UNREADABLE


def _parse(data: bytes) -> Json:
    text = data.decode()
    # Arguments that come whole are read as strictly as those that come in pieces: no key is there twice.
    strict = '"input"' in text
    event: Any = json.loads(text, object_pairs_hook=unique) if strict else json.loads(text)
    if not isinstance(event, dict) or not isinstance(event["type"], str):
        raise ValueError("no event")
    return event


def _text(given: object) -> str:
    """A text that may be left out. Raises ValueError for what is none."""
    if given is None:
        return ""
    if not isinstance(given, str):
        raise ValueError("no text")
    return given


def _paired(text: str) -> str:
    """Text in which a pair of surrogates that came in two pieces is one character again."""
    with suppress(UnicodeEncodeError):
        text.encode()
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _clean(text: str) -> str:
    """Text that UTF-8 can carry: half a character becomes U+FFFD."""
    return _paired(text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
