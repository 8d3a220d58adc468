"""An answer on the wire: one JSON message, or the server-sent events that build it up."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from standin.answer import Answer, name
from standin.request import Request
from standin.usage import usage

PIECES = 6


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event. `pace`: a reader would see a model think before it."""

    kind: str
    data: dict[str, Any]
    pace: bool = False

    def encode(self) -> bytes:
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"event: {self.kind}\ndata: {data}\n\n".encode()


def whole(answer: Answer, request: Request, seed: bytes) -> bytes:
    """The message in one piece."""
    message = _envelope(answer, request, seed)
    message["content"] = answer.blocks(seed)
    message["stop_reason"] = answer.stop_reason()
    raws: dict[str, str] = {}
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    for call, block in zip(answer.calls, calls, strict=True):
        if call.raw is not None:
            block["input"] = f"raw arguments of {block['id']}"
            raws[json.dumps(block["input"])] = call.raw
    text = json.dumps(message, ensure_ascii=False)
    for place, raw in raws.items():
        text = text.replace(place, raw)
    return text.encode()


def streamed(answer: Answer, request: Request, seed: bytes, *, in_pieces: bool = True) -> Iterator[Event]:
    """The message as the API streams it; without `in_pieces`, one delta a block."""
    message = _envelope(answer, request, seed)
    final = message["usage"]
    message["usage"] = {**final, "output_tokens": 1}
    yield _event("message_start", message=message)
    yield _event("ping")
    arguments = iter([call.arguments() for call in answer.calls])
    for index, block in enumerate(answer.blocks(seed)):
        start: dict[str, Any]
        match block["type"]:
            case "thinking":
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": part} for part in _words(block["thinking"], in_pieces)]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                start = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": part} for part in _words(block["text"], in_pieces)]
            case _:
                start = block | {"input": {}}
                deltas = [
                    {"type": "input_json_delta", "partial_json": part} for part in _parts(next(arguments), in_pieces)
                ]
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", pace=True, index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event(
        "message_delta",
        delta={"stop_reason": answer.stop_reason(), "stop_sequence": None},
        usage={key: final[key] for key in final if key != "service_tier"},
    )
    yield _event("message_stop")


def broken_off(events: list[Event]) -> list[Event]:
    """The events up to the middle of the last block's deltas: half a sentence, or half a tool's JSON."""
    last = max((event.data["index"] for event in events if event.kind == "content_block_start"), default=-1)
    deltas = [at for at, e in enumerate(events) if e.kind == "content_block_delta" and e.data["index"] == last]
    return events[: deltas[len(deltas) // 2]] if deltas else events[:1]


def failed(kind: str, message: str) -> Event:
    """The event by which the API says, inside a stream that began well, that it failed."""
    return Event("error", {"type": "error", "error": {"type": kind, "message": message}})


def _envelope(answer: Answer, request: Request, seed: bytes) -> dict[str, Any]:
    return {
        "id": name("msg", seed),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_details": None,
        "stop_sequence": None,
        "usage": usage(request, answer.output_tokens()),
    }


def _event(kind: str, *, pace: bool = False, **data: Any) -> Event:
    return Event(kind, {"type": kind, **data}, pace)


def _words(text: str, in_pieces: bool) -> list[str]:
    """The text in runs of a few words."""
    if not in_pieces:
        return [text]
    words = text.split(" ")
    runs = [" ".join(words[at : at + 4]) for at in range(0, len(words), 4)]
    return [run if at == 0 else " " + run for at, run in enumerate(runs)]


def _parts(text: str, in_pieces: bool) -> list[str]:
    """JSON text in a handful of pieces, cut anywhere, after the empty one that the API begins with."""
    size = max(1, -(-len(text) // (PIECES if in_pieces else 1)))
    return ["", *(text[at : at + size] for at in range(0, len(text), size))]
