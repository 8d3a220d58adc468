"""Personal data is sealed under the run's key: read with it, unreadable without, lost with it, and the chain holds."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from contracts import events
from contracts.errors import CorruptLog
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.facts import CATALOGUE, CallDecided, CustomerSaid, DecisionRefused, Fact, RunStarted, TurnQuoted
from contracts.memory import MemoryLog
from contracts.personal import SEALED, plan_of, put_back, take_out
from contracts.sealing import ERASED, KEY_BYTES, DataKey, Unsealable, place
from contracts.subjects import RunKey
from contracts.tenant_facts import TENANT_FACTS
from contracts.verify import verify_run
from hypothesis import given
from hypothesis import strategies as st

from . import golden
from .stories import FAIR, SAM, Story

KEY = golden.KEY
DATA_KEY = golden.DATA_KEY
OTHER = DataKey(bytes(KEY_BYTES))
FIRST = events.read(KEY.subject(golden.FIRST), 7, golden.sealed_file(golden.FIRST).read_bytes())
kinds = st.sampled_from(sorted(CATALOGUE))
# What could only have come from an example's personal fields.
PRIVATE = ("tom@example.com", "Tom Whitfield", "I sent the jacket back", "Return of a jacket", "returned unworn",
           "Any news", "seen the photos", "I will refund", "is on its way", "I have taken this over")  # fmt: skip


def as_read(event: Event, data_key: Any = None) -> Event:
    return events.read(KEY.subject(event.kind), event.sequence or 8, event.payload, lambda _: data_key)


# With the key, without it, and once it is gone


@given(kinds)
def test_what_was_sealed_is_read_with_the_key(kind: str) -> None:
    event = golden.sealed_event(kind)
    assert event.fact == as_read(event, DATA_KEY).fact == EXAMPLES[kind]
    shown = as_read(event, DATA_KEY).opened_document()["data"]
    shown.pop("opened", None)
    assert shown == EXAMPLES[kind].model_dump(mode="json")


@given(kinds)
def test_nothing_personal_stands_in_what_is_published(kind: str) -> None:
    payload = golden.sealed_event(kind).payload.decode()
    assert not [word for word in PRIVATE if word in payload]


@given(kinds)
def test_without_the_key_a_fact_is_there_and_says_that_it_is_sealed(kind: str) -> None:
    event = as_read(golden.sealed_event(kind))
    assert isinstance(event.fact, CATALOGUE[kind])
    if plan_of(kind) and event.personal != "clear":
        assert event.personal == "sealed"
        assert event.opened_document() == event.document()


def test_placeholders_are_of_the_type_that_they_stand_for() -> None:
    started = as_read(golden.sealed_event("desk.run-started")).fact
    assert isinstance(started, RunStarted)
    assert (started.ticket.customer.email, started.ticket.body) == (SEALED, SEALED)
    # Ids, amounts and digests are what everyone judges by.
    assert started.ticket.customer.id == "cust-1004"
    quoted = as_read(golden.sealed_event("tools.turn-quoted")).fact
    assert isinstance(quoted, TurnQuoted)
    [quote] = quoted.quotes
    [whole] = EXAMPLES["tools.turn-quoted"].quotes  # type: ignore[attr-defined]
    assert quote.effect is not None
    assert (quote.arguments, quote.effect.summary, quote.effect.before) == ({}, SEALED, {})
    assert (quote.digest, quote.subject, quote.effect.object) == (whole.digest, whole.subject, whole.effect.object)
    assert (quote.effect.amount_minor, quote.facts) == (whole.effect.amount_minor, whole.facts)


def test_whether_something_was_said_shows_and_not_what() -> None:
    edited = EXAMPLES["approvals.call-decided"].model_copy(update={"edited": {"amount_pence": 1}, "note": ""})
    first = golden.sealed_event(golden.FIRST)
    event = as_read(events.write(KEY, Draft(edited, first), first, golden.TIME, data_key=DATA_KEY))
    assert isinstance(event.fact, CallDecided)
    assert event.fact.edited is not None
    assert event.fact.note == ""


@given(kinds)
def test_once_the_key_is_gone_a_fact_says_so(kind: str) -> None:
    event = golden.sealed_event(kind)
    gone = as_read(event, ERASED)
    assert gone.personal in ("clear", "erased")
    if gone.personal == "erased":
        text = json.dumps(gone.opened_document()["data"] | {"opened": ""})
        assert SEALED not in text
        assert not [word for word in PRIVATE if word in text]
    assert gone.follows("" if kind == golden.FIRST else FIRST.chain)


def test_what_is_said_after_the_key_is_gone_is_said_without_personal_data() -> None:
    first = golden.sealed_event(golden.FIRST)
    said = CustomerSaid(text="I live at 1 High Street", message_id="m-1")
    event = events.write(KEY, Draft(said, first), first, golden.TIME, data_key=ERASED)
    assert b"High Street" not in event.payload
    for read in (event, as_read(event), as_read(event, ERASED), as_read(event, DATA_KEY)):
        assert read.personal == "erased"
        assert read.fact == CustomerSaid(text="[erased]", message_id="m-1")


def test_a_fact_without_personal_data_is_written_as_ever() -> None:
    for kind in ("approvals.hold-expired", "policy.turn-held"):
        event = golden.sealed_event(kind)
        assert event.personal == "clear"
        assert "sealed" not in event.document()["data"]


# Bound to its place


def test_a_sealed_text_opens_at_its_own_place_only() -> None:
    here = place(KEY, 3, "agent.reply-given")
    text = DATA_KEY.seal(b"hello", here)
    assert DATA_KEY.open(text, here) == b"hello"
    for elsewhere in (
        place(KEY, 4, "agent.reply-given"),
        place(KEY, 3, "agent.turn-proposed"),
        place(RunKey("acme", "TCK-2004-2"), 3, "agent.reply-given"),
        place(RunKey("globex", "TCK-2004-1"), 3, "agent.reply-given"),
    ):
        with pytest.raises(Unsealable):
            DATA_KEY.open(text, elsewhere)
    with pytest.raises(Unsealable):
        OTHER.open(text, here)


def test_the_same_text_is_never_sealed_the_same_way() -> None:
    assert DATA_KEY.seal(b"hello", b"") != DATA_KEY.seal(b"hello", b"")


@pytest.mark.parametrize("text", ["", "x", "AAAA", "é", "A" * 40])
def test_what_is_no_sealed_text_is_refused(text: str) -> None:
    with pytest.raises(Unsealable):
        DATA_KEY.open(text, b"")


def test_another_key_makes_the_event_corrupt_and_quotes_nothing() -> None:
    event = golden.sealed_event("desk.run-started")
    with pytest.raises(CorruptLog):
        as_read(event, OTHER)
    with pytest.raises(CorruptLog):
        events.opened(as_read(event), OTHER)


def test_a_fact_that_does_not_fit_is_not_quoted_in_the_error() -> None:
    event = golden.sealed_event("desk.customer-said")
    document = event.document()
    taken = {"text": ["Tom Whitfield"]}
    document["data"]["sealed"] = DATA_KEY.seal(json.dumps(taken).encode(), place(KEY, event.ordinal, event.kind))
    with pytest.raises(CorruptLog) as refused:
        events.read(KEY.subject(event.kind), 8, json.dumps(document).encode(), lambda _: DATA_KEY)
    assert "Whitfield" not in str(refused.value)


def test_what_is_sealed_cannot_change_what_is_not() -> None:
    data = EXAMPLES["tools.turn-quoted"].model_dump(mode="json")
    plan = plan_of("tools.turn-quoted")
    taken = take_out(plan, data)
    taken["turn"] = 99
    taken["quotes"][0] |= {"digest": "0" * 64, "subject": "cust-1"}
    taken["quotes"][0]["effect"]["amount_minor"] = 1
    put_back(plan, data, taken)
    assert data == EXAMPLES["tools.turn-quoted"].model_dump(mode="json")


# Documents that were opened for somebody


@given(kinds)
def test_who_gets_an_opened_document_can_check_its_chain(kind: str) -> None:
    event = golden.sealed_event(kind)
    opened = events.from_document(as_read(event, DATA_KEY).opened_document(), 8)
    assert opened.fact == EXAMPLES[kind]
    assert opened.payload == event.payload
    again = events.from_document(event.document(), 8)
    assert (again.payload, again.fact) == (event.payload, as_read(event).fact)


@given(kinds)
def test_an_event_that_is_opened_is_no_more_recent_than_it_was(kind: str) -> None:
    sealed = as_read(golden.sealed_event(kind))
    assert events.opened(sealed, DATA_KEY).recent
    assert not events.opened(replace(sealed, recent=False), DATA_KEY).recent


def test_a_value_that_stands_where_a_placeholder_was_is_shown_to_nobody_who_has_the_key() -> None:
    document = golden.sealed_event("desk.customer-said").document()
    document["data"]["text"] = "Pay me."
    payload = json.dumps(document).encode()
    assert not events.read(KEY.subject("desk.customer-said"), 8, payload).follows(FIRST.chain)
    assert not events.from_document(document).follows(FIRST.chain)
    assert as_read(events.from_document(document), DATA_KEY).fact == EXAMPLES["desk.customer-said"]


# A whole run


@pytest.mark.parametrize("name", FAIR)
def test_a_sealed_run_keeps_every_rule_for_who_has_no_key(name: str) -> None:
    log = told(FAIR[name])
    assert verify_run(log.accepted) == []
    assert verify_run([as_read(event) for event in log.accepted]) == []
    assert verify_run([events.from_document(event.opened_document()) for event in log.accepted]) == []


def test_an_erased_run_keeps_every_rule_and_can_still_be_added_to() -> None:
    log = told(FAIR["a held write that is released"])
    log.erase(KEY)
    history = log.history(KEY)
    log.say(history, Draft(DecisionRefused(turn=1, call_id="c", by=SAM, decision="approve", reason="late"), None))
    assert verify_run(log.accepted) == []
    assert {event.personal for event in log.accepted} == {"clear", "erased"}
    assert history.started is not None
    assert history.started.ticket.body == "[erased]"


def told(story: Story) -> MemoryLog:
    now = golden.TIME
    log = MemoryLog(lambda: now, sealed=True)
    for step in story:
        if isinstance(step, timedelta):
            now += step
            continue
        history = log.history(KEY)
        log.say(history, Draft(step, history.head))
        now += timedelta(minutes=1)
    return log


# What was once sealed is read for ever


@pytest.mark.parametrize("kind", [kind for kind in CATALOGUE if plan_of(kind)])
def test_every_kind_is_read_as_it_was_once_sealed(kind: str) -> None:
    document = json.loads(golden.sealed_file(kind).read_text())
    for payload in (None, json.dumps(document).encode()):
        event = events.from_document(json.loads(json.dumps(document)), 8, payload)
        assert event.follows("" if kind == golden.FIRST else FIRST.chain)
        assert events.opened(event, DATA_KEY).fact == EXAMPLES[kind]


# Marks


def test_every_free_text_of_a_run_is_marked_or_known_to_be_harmless() -> None:
    harmless = {
        # Written by policy and approvals from rules, ids and amounts.
        "policy.turn-forwarded": {"verdicts.reason", "would_have"},
        "policy.turn-held": {"holds.reason", "would_have"},
        "approvals.decision-refused": {"reason"},
        # One of our own sentences.
        "desk.run-failed": {"reason"},
        # What a person said of a stop, about a tool.
        "tools.turn-quoted": {"quotes.facts.stopped"},
    }
    for kind, fact in CATALOGUE.items():
        assert unmarked(fact) == harmless.get(kind, set()), kind


def test_every_free_text_of_a_tenants_line_is_known_to_be_read_by_everybody_and_kept() -> None:
    # Nobody's data key seals this line. The pages where people write these say that everybody there reads them.
    in_clear = {
        "approvals.stop-set": {"reason"},
        "approvals.stop-lifted": {"reason"},
        "approvals.policy-promoted": {"text", "report", "warnings"},
    }
    for kind, fact in TENANT_FACTS.items():
        assert unmarked(fact) == in_clear.get(kind, set()), kind


def unmarked(fact: type[Fact]) -> set[str]:
    """Paths of the schema's long texts and free objects that nothing marks as personal."""
    schema = fact.model_json_schema()
    found: set[str] = set()

    def look(node: Any, path: str) -> None:
        if isinstance(node, list):
            for item in node:
                look(item, path)
        elif isinstance(node, dict):
            if node.get("x-personal"):
                return
            if "$ref" in node:
                look(schema["$defs"][node["$ref"].rpartition("/")[2]], path)
            if node.get("maxLength") == 64_000 or (node.get("additionalProperties") is True):
                found.add(path)
            for name, inner in node.get("properties", {}).items():
                look(inner, f"{path}.{name}" if path else name)
            for name in ("anyOf", "items"):
                look(node.get(name), path)

    look(schema, "")
    return found
