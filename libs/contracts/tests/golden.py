"""Every kind of fact as it is written, one file each: what has once been in a log must be read for ever.

Run as a script, it writes the files that are missing (`.venv/bin/python libs/contracts/tests/golden.py`) and changes
none that is there. A file that no longer fits shows a fact whose meaning has changed: that is a new fact, or a new
version with a reader for the old one. Only before a fact was written anywhere may its file be deleted and made anew.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from contracts import events
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES, TENANT_EXAMPLES
from contracts.facts import CATALOGUE, Fact
from contracts.parts import Json
from contracts.personal import plan_of
from contracts.sealing import KEY_BYTES, DataKey, Gone
from contracts.subjects import RunKey, TenantKey
from contracts.tenant_facts import TENANT_FACTS

FOLDER = Path(__file__).with_name("golden")
KEY = RunKey("acme", "TCK-2004-1")
TIME = datetime(2026, 11, 30, 9, 0, 0, 123456, tzinfo=UTC)
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
FIRST = "desk.run-started"
KINDS = {**CATALOGUE, **TENANT_FACTS}
DATA_KEY = DataKey(bytes(range(KEY_BYTES)))
FACTS: dict[str, Fact] = {**EXAMPLES, **TENANT_EXAMPLES}
# Facts with a field that was added later, by the file in `added/`.
STARTED = EXAMPLES["desk.run-started"]
ADDED: dict[str, Fact] = {
    FIRST: STARTED.model_copy(update={"ticket": STARTED.ticket.model_copy(update={"opened_at": TIME})}),
    "approvals.call-decided": EXAMPLES["approvals.call-decided"].model_copy(
        update={"decision": "decline", "edited": None, "hands_over": True}
    ),
    "approvals.hold-expired": EXAMPLES["approvals.hold-expired"].model_copy(update={"hands_over": True}),
}


def event(kind: str) -> Event:
    """The example of a kind as an event: one begins the run, each other is caused by that and follows it; those of the
    tenant begin its line."""
    if kind in TENANT_FACTS:
        return events.write(key(kind), Draft(FACTS[kind], None, "example"), None, TIME, TRACEPARENT)
    if kind == FIRST:
        return events.write(KEY, Draft(EXAMPLES[FIRST], None), None, TIME, TRACEPARENT)
    first = events.read(KEY.subject(FIRST), 7, event(FIRST).payload)
    return events.write(KEY, Draft(EXAMPLES[kind], first, "example"), first, TIME, TRACEPARENT)


def added_event(kind: str) -> Event:
    """The same with what was added to its kind."""
    if kind == FIRST:
        return events.write(KEY, Draft(ADDED[kind], None), None, TIME, TRACEPARENT)
    first = events.read(KEY.subject(FIRST), 7, event(FIRST).payload)
    return events.write(KEY, Draft(ADDED[kind], first, "example"), first, TIME, TRACEPARENT)


def sealed_event(kind: str, data_key: DataKey | Gone = DATA_KEY) -> Event:
    """The same with its personal data sealed, differently each time."""
    if kind == FIRST:
        return events.write(KEY, Draft(EXAMPLES[FIRST], None), None, TIME, TRACEPARENT, data_key)
    first = events.read(KEY.subject(FIRST), 7, (FOLDER / f"sealed/{FIRST}.json").read_bytes())
    return events.write(KEY, Draft(EXAMPLES[kind], first, "example"), first, TIME, TRACEPARENT, data_key)


def key(kind: str) -> RunKey:
    return TenantKey(KEY.tenant) if kind in TENANT_FACTS else KEY


def file(kind: str) -> Path:
    return FOLDER / f"{kind}.json"


def sealed_file(kind: str) -> Path:
    return FOLDER / "sealed" / f"{kind}.json"


def added_file(kind: str) -> Path:
    return FOLDER / "added" / f"{kind}.json"


def recorded(kind: str) -> Json:
    document: Json = json.loads(file(kind).read_text())
    return document


def keep(path: Path, make: Callable[[str], Event]) -> None:
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(make(path.stem).document(), indent=2, ensure_ascii=False, sort_keys=True) + "\n")
        print(f"wrote {path.relative_to(FOLDER)}")


if __name__ == "__main__":
    for kind in KINDS:
        keep(file(kind), event)
    for kind in ADDED:
        keep(added_file(kind), added_event)
    for kind in filter(plan_of, CATALOGUE):
        keep(sealed_file(kind), sealed_event)
