"""Plausible token counts, worked out from the text alone, so that the same request always costs the same."""

from typing import Any

from standin.pairs import Block
from standin.request import Request


def tokens(value: Any) -> int:
    """About four characters a token."""
    return (len(value if isinstance(value, str) else repr(value)) + 3) // 4


def usage(request: Request, output_tokens: int) -> dict[str, Any]:
    """Usage with its cache fields. What lies before the last breakpoint is written to the cache the first time that
    it is sent, and read from it after; the conversation tells which, as all but its last exchange was sent before."""
    parts: list[tuple[int, bool]] = [(_size(tool), _marked(tool)) for tool in request.tools.values()]
    system = request.system if isinstance(request.system, list) else [{"type": "text", "text": request.system}]
    parts += [(_size(block), _marked(block)) for block in system]
    sent_before = len(parts) if request.step() else 0
    for at, message in enumerate(request.messages):
        parts += [(_size(block), _marked(block)) for block in message.blocks]
        if at < len(request.messages) - 2:
            sent_before = len(parts)
    breakpoints = [at + 1 for at, (_, marked) in enumerate(parts) if marked]
    cached = len(parts) if request.caches_all else max(breakpoints, default=0)
    sizes = [size for size, _ in parts]
    read = sum(sizes[: min(sent_before, cached)])
    written = sum(sizes[:cached]) - read
    return {
        "input_tokens": max(1, sum(sizes) - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def input_tokens(request: Request) -> int:
    counted = usage(request, 0)
    return int(counted["input_tokens"] + counted["cache_creation_input_tokens"] + counted["cache_read_input_tokens"])


def _size(block: Block) -> int:
    return 3 + tokens(block)


def _marked(block: Block) -> bool:
    return bool(block.get("cache_control"))
