"""Structured logs: one JSON object a line on stderr, with tenant, run, turn and fact wherever there is one."""

import logging
import re
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog

from contracts.metrics import LOST_LINES

# What PostgreSQL adds to an error: the rows and keys that it was about, as they are or within a repr.
_VALUES = re.compile(r"(?:\n|\\n)(?:DETAIL|CONTEXT|QUERY):(?:(?!\n|\\n).)*")


def without_values(_: object, __: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Log lines whose errors are `unquoted`."""
    for name in ("exception", "error"):
        if isinstance(entry.get(name), str):
            entry[name] = unquoted(entry[name])
    return entry


def unquoted(error: str) -> str:
    """An error's own words, without the values of rows that a database quotes in it: those are nobody's to keep."""
    return _VALUES.sub("", error)


class Lossy:
    """A text file that takes what it can: a line that cannot be written, as on a full disk, is lost and counted, and
    breaks nothing of what wanted to write it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except OSError:
            LOST_LINES.inc()
            return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()


def configure(service: str, level: str = "info") -> None:
    """Sets structlog up for this process, and sends the standard library's records the same way."""
    output = Lossy(sys.stderr)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        without_values,
        structlog.processors.JSONRenderer(),
    ]
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level.upper()),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, output)),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *renderer,
            ],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    structlog.contextvars.bind_contextvars(service=service)
