"""An answer as it comes over HTTP: the data of its server-sent events, or a body that is one message."""

from collections.abc import AsyncGenerator, AsyncIterator

LARGEST = 8_000_000  # bytes of a whole answer with its events; none that can be kept is nearly as long


class TooLarge(Exception):
    """More has come than any answer that could be kept."""


async def data_of(pieces: AsyncIterator[bytes], *, streamed: bool) -> AsyncGenerator[bytes]:
    """The data of each event; of a body that is no stream, all of it. A last event without its blank line counts too.

    Raises TooLarge.
    """
    # Added to in place: a long line in many small pieces costs no more than one in few.
    rest, size = bytearray(), 0
    data: list[bytes] = []
    async for piece in pieces:
        size += len(piece)
        if size > LARGEST:
            raise TooLarge
        rest += piece
        if not streamed or b"\n" not in piece:
            continue
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if told := _data(line):
                data.append(told)
            elif data and not line.rstrip(b"\r"):
                yield b"\n".join(data)
                data = []
    if streamed:
        data += filter(None, [_data(rest)])
    elif rest:
        data = [bytes(rest)]
    if data:
        yield b"\n".join(data)


def _data(line: bytearray) -> bytes:
    return bytes(line[5:].strip()) if line.startswith(b"data:") else b""
