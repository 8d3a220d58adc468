"""Reads server-sent events from bytes, however the network cut them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Frame:
    """One event. `id` is the last that the stream gave, as the standard has it."""

    data: str
    event: str = "message"
    id: str = ""


class Parser:
    """`feed` takes any piece of the stream and yields the events that it completes."""

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        self._buffer = b""
        self._begun = False
        self._swallow_lf = False
        self._id, self._event = "", ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[Frame]:
        self._buffer += piece
        if not self._begun:
            if BOM.startswith(self._buffer[:3]) and len(self._buffer) < 3:
                return
            self._begun = True
            self._buffer = self._buffer.removeprefix(BOM)
        while (line := self._next_line()) is not None:
            if frame := self._take(line.decode("utf-8", errors="replace")):
                yield frame

    def _next_line(self) -> bytes | None:
        """A whole line without its end (CR, LF or both); None while it is not whole."""
        if self._swallow_lf and self._buffer:
            self._swallow_lf, self._buffer = False, self._buffer.removeprefix(b"\n")
        if (end := LINE_END.search(self._buffer)) is None:
            return None
        line, self._buffer = self._buffer[: end.start()], self._buffer[end.end() :]
        # A CR at the very end of what has come may be half of a CRLF.
        self._swallow_lf = end.group() == b"\r" and not self._buffer
        return line

    def _take(self, line: str) -> Frame | None:
        if line == "":
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)
        return None

    def _dispatch(self) -> Frame | None:
        data, self._data = self._data, []
        event, self._event = self._event, ""
        return Frame("\n".join(data), event or "message", self._id) if data else None
