"""An event is sealed to the one before it: what was changed shows, how it is spelled does not matter."""

import hashlib
import json
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from contracts import events
from contracts.errors import CorruptLog
from contracts.events import TRAIL_LENGTH, Draft, Event, Link, event_id
from contracts.examples import EXAMPLES
from contracts.facts import CATALOGUE, CustomerSaid
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.parts import Json
from contracts.subjects import BadToken, RunKey, parse, token
from hypothesis import example, given
from hypothesis import strategies as st

from . import golden

KEY = golden.KEY
FIRST = golden.event(golden.FIRST)
PROPOSED = golden.event("agent.turn-proposed")
SUBJECT = KEY.subject("agent.turn-proposed")
kinds = st.sampled_from(sorted(CATALOGUE))


def chain_before(kind: str) -> str:
    return "" if kind == golden.FIRST else FIRST.chain


def shuffled(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(item, dice) for item in value] if isinstance(value, list) else value


# The seal


@given(kinds)
def test_a_seal_holds_for_what_was_written(kind: str) -> None:
    event = golden.event(kind)
    assert event.follows(chain_before(kind))
    assert events.read(KEY.subject(kind), 8, event.payload).follows(chain_before(kind))


@given(kinds, st.randoms(use_true_random=False), st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_a_seal_holds_however_a_line_is_spelled(
    kind: str, dice: random.Random, indent: int | str | None, ascii_only: bool
) -> None:
    document = shuffled(golden.event(kind).document(), dice)
    line = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    for event in (events.read(KEY.subject(kind), 8, line.encode()), events.from_document(json.loads(line))):
        assert event.follows(chain_before(kind))
        assert event.fact == EXAMPLES[kind]


@given(kinds)
def test_a_seal_fits_behind_no_other_event(kind: str) -> None:
    event = golden.event(kind)
    assert not event.follows("0" * 64)
    assert not event.follows("" if kind != golden.FIRST else FIRST.chain)


def says_the_same_or_is_found(payload: bytes) -> bool:
    try:
        event = events.read(SUBJECT, 8, payload)
    except CorruptLog:
        return True
    return not event.follows(FIRST.chain) or json.loads(payload) == PROPOSED.document()


@given(st.integers(0, len(PROPOSED.payload) - 1), st.integers(0, 255))
@example(PROPOSED.payload.index(b'"chain"') + 12, ord("0"))
@example(PROPOSED.payload.index(b"agent.turn-proposed"), ord("A"))
def test_any_changed_byte_is_found(position: int, byte: int) -> None:
    payload = bytearray(PROPOSED.payload)
    payload[position] = byte
    assert says_the_same_or_is_found(bytes(payload))


@given(st.integers(0, len(PROPOSED.payload)), st.binary(min_size=1, max_size=3))
def test_any_added_byte_is_found(position: int, added: bytes) -> None:
    assert says_the_same_or_is_found(PROPOSED.payload[:position] + added + PROPOSED.payload[position:])


@given(st.integers(0, len(PROPOSED.payload) - 1), st.integers(1, 40))
def test_any_lost_byte_is_found(position: int, lost: int) -> None:
    assert says_the_same_or_is_found(PROPOSED.payload[:position] + PROPOSED.payload[position + lost :])


def numbers_and_texts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers_and_texts(item, (*path, key))]
    if isinstance(value, list):
        return [found for n, item in enumerate(value) for found in numbers_and_texts(item, (*path, n))]
    return [path]


@given(kinds, st.data())
def test_any_changed_value_is_found(kind: str, data: st.DataObject) -> None:
    document = golden.event(kind).document()
    path = data.draw(st.sampled_from(numbers_and_texts(document)))
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    old = holder[path[-1]]
    holder[path[-1]] = old + 1 if isinstance(old, int) and not isinstance(old, bool) else f"{old}x"
    try:
        event = events.from_document(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    assert not event.follows(chain_before(kind))


@pytest.mark.parametrize(
    "addition",
    [b'"data":{"evil":true},', b'"tenant":"globex",', b'"chain":"%s",' % PROPOSED.chain.encode(), b'"type":"x",'],
)
def test_a_key_that_stands_twice_is_nobodys_word(addition: bytes) -> None:
    # Python takes the last of the two; another reader of the same line would take the first.
    with pytest.raises(CorruptLog, match="stands twice"):
        events.read(SUBJECT, 8, b"{" + addition + PROPOSED.payload[1:])
    # Also where its author has sealed both.
    cut = PROPOSED.payload.replace(b'"chain":"' + PROPOSED.chain.encode() + b'",', b"", 1)
    chain = hashlib.sha256(FIRST.chain.encode() + b"{" + addition + cut[1:]).hexdigest().encode()
    sealed = b"{" + addition + PROPOSED.payload[1:].replace(PROPOSED.chain.encode(), chain)
    with pytest.raises(CorruptLog, match="stands twice"):
        events.read(SUBJECT, 8, sealed)


def test_what_json_cannot_carry_breaks_the_seal_and_not_the_reader() -> None:
    payload = PROPOSED.payload.replace(b'"amount_pence":18000', b'"amount_pence":NaN')
    assert payload != PROPOSED.payload
    assert not events.read(SUBJECT, 8, payload).follows(FIRST.chain)
    payload = PROPOSED.payload.replace(b'"amount_pence":18000', b'"amount_pence":18000000000000000000000')
    assert not events.read(SUBJECT, 8, payload).follows(FIRST.chain)


# Ids


def test_ids_are_the_same_for_ever() -> None:
    assert event_id(KEY, None, "desk.run-started", "") == "0c50d7f2-d1b9-5923-a3ba-0087d56fc3fd"


names = st.text("ABCabc019_-", min_size=1, max_size=6)
whats = st.tuples(names, names, st.none() | st.uuids().map(str), kinds, st.text(max_size=5))


@given(whats, whats)
def test_ids_differ_where_anything_differs_and_only_there(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    def of(what: tuple[Any, ...]) -> str:
        tenant, run, cause, kind, key = what
        return event_id(RunKey(tenant, run), cause, kind, key)

    assert (of(one) == of(other)) == (one == other)


# What the body says, and where it stands


@given(kinds, kinds)
def test_a_body_under_another_kinds_subject_is_refused(kind: str, subject: str) -> None:
    payload = golden.event(kind).payload
    if kind == subject:
        assert events.read(KEY.subject(subject), 1, payload).kind == kind
    else:
        with pytest.raises(CorruptLog, match="its subject is"):
            events.read(KEY.subject(subject), 1, payload)


@pytest.mark.parametrize("key", [RunKey("globex", "TCK-2004-1"), RunKey("acme", "TCK-2004-2")])
def test_a_body_of_another_run_is_refused(key: RunKey) -> None:
    with pytest.raises(CorruptLog, match="its subject is"):
        events.read(key.subject("agent.turn-proposed"), 1, PROPOSED.payload)


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "run",
        "run.acme.TCK-2004-1.agent",
        "run.acme.TCK-2004-1.agent.turn-proposed.x",
        "log.acme.TCK-2004-1.agent.turn-proposed",
        "run..TCK-2004-1.agent.turn-proposed",
        "run.acme.TCK 2004.agent.turn-proposed",
    ],
)
def test_what_is_no_subject_of_a_fact_is_refused(subject: str) -> None:
    with pytest.raises(BadToken):
        parse(subject)
    with pytest.raises(CorruptLog):
        events.read(subject, 1, PROPOSED.payload)


@pytest.mark.parametrize("kind", ["tools.gift-wrapped", "courier.parcel-sent"])
def test_an_unknown_kind_is_read_without_its_fact(kind: str) -> None:
    document = PROPOSED.document() | {"type": f"turngate.{kind}.v1"}
    event = events.read(KEY.subject(kind), 1, json.dumps(document).encode())
    assert (event.kind, event.fact, event.terminal) == (kind, None, False)
    assert event.document() == document


@pytest.mark.parametrize("type_", ["turngate.agent.turn-proposed.v2", "other.agent.turn-proposed.v1", "", "a.b", 7])
def test_another_version_or_vendor_is_not_guessed_at(type_: Any) -> None:
    document = PROPOSED.document() | {"type": type_}
    with pytest.raises(CorruptLog):
        events.read(SUBJECT, 1, json.dumps(document).encode())


# The envelope


def test_the_envelope_is_a_cloud_event() -> None:
    document = PROPOSED.document()
    assert document["specversion"] == "1.0"
    assert document["source"] == "/turngate/agent-runner"
    assert document["type"] == "turngate.agent.turn-proposed.v1"
    assert document["subject"] == "TCK-2004-1"
    assert document["tenant"] == "acme"
    assert document["datacontenttype"] == "application/json"
    assert document["cause"] == FIRST.id
    for name, value in document.items():  # names of attributes are lower-case letters and digits; values are simple
        assert name.isascii()
        assert name.isalnum()
        assert name == name.lower()
        assert name == "data" or isinstance(value, str | int)


def test_times_are_utc_whatever_zone_the_clock_is_in() -> None:
    there = datetime(2026, 7, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    event = events.write(KEY, Draft(EXAMPLES[golden.FIRST], None), None, there)
    assert event.document()["time"] == "2026-06-30T22:30:00.000000Z"
    assert events.read(KEY.subject(golden.FIRST), 1, event.payload).time == event.time
    assert event.time.astimezone(UTC).day == 30


def test_a_trail_names_the_last_thirty_two() -> None:
    log = MemoryLog()
    run: list[Event] = []
    for number in range(50):
        fact = EXAMPLES[golden.FIRST] if not number else CustomerSaid(text=str(number), message_id=str(number))
        run.append(log.say(log.history(KEY), Draft(fact, None, str(number))))
    for event in run:
        earlier = run[max(0, event.ordinal - TRAIL_LENGTH) : event.ordinal]
        assert event.trail == tuple(Link(one.sequence, one.kind) for one in earlier)
        assert events.read(KEY.subject(event.kind), event.sequence, event.payload) == event


def test_a_history_knows_what_was_known_when_something_was_said() -> None:
    log = MemoryLog()
    said = [
        log.say(log.history(KEY), Draft(CustomerSaid(text=text, message_id=text), None, text))
        for text in ("a", "b", "c")
    ]
    then = log.history(KEY).behind(said[1])
    assert then.events == tuple(said[:2])
    assert then.head == said[1]
    assert [fact.text for fact in then.all(CustomerSaid)] == ["a", "b"]
    assert then.first(CustomerSaid) == said[0].fact
    assert then.last(CustomerSaid) == said[1].fact
    assert History(KEY).last(CustomerSaid) is None


# Tokens


@pytest.mark.parametrize("name", ["a", "TCK-2004-1", "_", "x" * 64])
def test_a_name_may_stand_in_a_subject(name: str) -> None:
    assert token(name) == name


@pytest.mark.parametrize("name", ["", "x" * 65, "a.b", "*", ">", "a b", "a\n", "\na", "é", "a\x00", "１", "a/b"])
def test_what_could_mean_something_else_in_a_subject_is_no_name(name: str) -> None:
    with pytest.raises(BadToken):
        token(name)
    for tenant, run in ((name, "run"), ("tenant", name)):
        with pytest.raises(BadToken):
            RunKey(tenant, run)


def test_a_document_without_a_field_is_no_event() -> None:
    for name in set(PROPOSED.document()) - {"cause", "traceparent", "specversion", "source", "time", "datacontenttype"}:
        document: Json = PROPOSED.document()
        del document[name]
        with pytest.raises(CorruptLog):
            events.read(SUBJECT, 1, json.dumps(document).encode())
