"""Every line of a service's log is one JSON object on standard error, whoever wrote it."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
from contracts.logs import Lossy, without_values
from contracts.metrics import LOST_LINES

WRITE = """
import logging, structlog
from contracts import logs
logs.configure("policy", "info")
structlog.contextvars.bind_contextvars(tenant="acme", run="TCK-1-1", turn=2, fact="tools.turn-quoted")
logger = structlog.get_logger()
logger.debug("too fine")
logger.info("decided", verdict="held")
logging.getLogger("a.library").warning("over %s\\nlines", "two")
logging.getLogger("a.library").info("too fine")
try:
    raise ValueError("what went wrong")
except ValueError:
    logger.exception("handler failed")
"""


def test_lines_are_json_with_the_run_on_each() -> None:
    process = subprocess.run([sys.executable, "-c", WRITE], capture_output=True, text=True, timeout=60, check=True)
    decided, library, failed = (json.loads(line) for line in process.stderr.splitlines())
    about = {"service": "policy", "tenant": "acme", "run": "TCK-1-1", "turn": 2, "fact": "tools.turn-quoted"}
    assert about.items() <= decided.items()
    assert about.items() <= library.items()
    assert (decided["event"], decided["verdict"], decided["level"]) == ("decided", "held", "info")
    assert (library["event"], library["level"]) == ("over two\nlines", "warning")
    assert "ValueError: what went wrong" in failed["exception"]
    assert process.stdout == ""


@pytest.mark.parametrize("name", ["exception", "error"])
@pytest.mark.parametrize("spelled", [str, repr])
def test_an_error_of_the_database_is_logged_without_the_row_that_it_quotes(
    name: str, spelled: Callable[[str], str]
) -> None:
    said = spelled('duplicate key violates "customers_email"\nDETAIL:  Key (email)=(kim@mail.example) exists.\nLater')
    told = without_values(None, "error", {name: said})[name]
    assert "kim@mail.example" not in told
    assert "customers_email" in told
    assert "Later" in told


GO_ON = """
import logging, sys, structlog
from contracts import logs
logs.configure("policy", "info")
for number in range(2000):
    structlog.get_logger().info("decided", number=number)
    logging.getLogger("a.library").warning("over")
print("done")
"""


def test_a_line_that_cannot_be_written_breaks_nothing_of_what_wanted_to_write_it() -> None:
    with open("/dev/full", "w") as full:  # where every write finds the disk full
        process = subprocess.run([sys.executable, "-c", GO_ON], stdout=subprocess.PIPE, stderr=full, timeout=60)

    assert process.stdout == b"done\n"


def test_a_line_that_cannot_be_written_is_counted() -> None:
    before = LOST_LINES._value.get()
    with suppress(OSError), open("/dev/full", "w", buffering=1) as full:
        Lossy(full).write("a line\n")

    assert LOST_LINES._value.get() == before + 1
