"""Facts are strict when written, forgiving when read, and bounded; each has its golden file."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, get_args

import pytest
from contracts import events
from contracts.events import LARGEST, Draft
from contracts.examples import EXAMPLES
from contracts.facts import CATALOGUE, TERMINAL_STATUSES, Fact, RunEnded, Status
from contracts.parts import Author, Json
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import AUTHORS
from pydantic import BaseModel, ValidationError

from . import golden

every_kind = pytest.mark.parametrize("kind", sorted(golden.KINDS))
BROKER_TAKES = 1024 * 1024


# Golden files


@every_kind
def test_a_fact_is_written_as_it_was_always_written(kind: str) -> None:
    assert golden.file(kind).exists(), f"{kind} has no golden file; {golden.__file__} says how to write it."
    assert golden.event(kind).document() == golden.recorded(kind)


@every_kind
def test_what_was_once_written_is_read(kind: str) -> None:
    event = events.from_document(golden.recorded(kind))
    assert event.fact == golden.FACTS[kind]
    alone = kind == golden.FIRST or kind in TENANT_FACTS
    assert event.follows("" if alone else golden.recorded(golden.FIRST)["chain"])


@pytest.mark.parametrize("kind", sorted(golden.ADDED))
def test_a_field_that_was_added_is_written_and_read_as_it_was_then(kind: str) -> None:
    recorded = json.loads(golden.added_file(kind).read_text())
    assert golden.added_event(kind).document() == recorded
    assert events.from_document(recorded).fact == golden.ADDED[kind]


def test_there_is_no_golden_file_without_a_fact() -> None:
    assert {file.stem for file in golden.FOLDER.glob("*.json")} == set(golden.KINDS) == set(golden.FACTS)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("agent.run-ended", {"uncertain_micro_usd": 91_000}), ("agent.reply-given", {"usage": {"estimated": True}})],
)
def test_what_was_added_to_a_fact_is_read_where_it_was_written(kind: str, fields: dict[str, Any]) -> None:
    recorded = json.loads((golden.FOLDER / f"added/{kind}.json").read_bytes())
    fact = events.from_document(recorded).fact
    assert fact is not None
    said = fact.model_dump(mode="json")
    assert said == recorded["data"]
    assert all(said[name] == value or value.items() <= said[name].items() for name, value in fields.items())


# The catalogue


def test_each_author_is_one_service() -> None:
    assert set(AUTHORS.values()) == set(get_args(Author)) == {fact.author for fact in CATALOGUE.values()}
    assert set(events.SOURCES) == set(AUTHORS.values())


def test_only_the_desk_and_the_agent_end_a_run() -> None:
    assert {kind for kind, fact in CATALOGUE.items() if fact.terminal} == {
        "agent.run-ended",
        "desk.run-cancelled",
        "desk.run-failed",
        "desk.run-taken-over",
    }


def test_every_status_that_an_end_can_have_is_terminal() -> None:
    ends = set(get_args(RunEnded.model_fields["status"].annotation))
    assert ends <= TERMINAL_STATUSES < set(get_args(Status))


@every_kind
def test_a_class_is_named_for_its_fact(kind: str) -> None:
    name = golden.KINDS[kind].name
    assert golden.KINDS[kind].__name__ == "".join(word.capitalize() for word in name.split("-"))


# Strict when written, forgiving when read


def parts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where in a dumped fact its models stand: the fact itself and each part in it, but no free JSON."""
    if isinstance(value, BaseModel):
        yield path
        for name in type(value).model_fields:
            yield from parts(getattr(value, name), (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from parts(item, (*path, number))


def with_extras(fact: Fact, path: tuple[str | int, ...]) -> Json:
    dumped: Any = fact.model_dump(mode="json")
    part = dumped
    for step in path:
        part = part[step]
    part["since_next_year"] = {"any": "thing"}
    return dict(dumped)


@every_kind
def test_a_field_that_is_not_the_facts_is_refused_when_written(kind: str) -> None:
    for path in parts(golden.FACTS[kind]):
        with pytest.raises(ValidationError, match="since_next_year"):
            golden.KINDS[kind].model_validate(with_extras(golden.FACTS[kind], path))


@every_kind
def test_an_older_reader_reads_a_newer_fact(kind: str) -> None:
    for path in parts(golden.FACTS[kind]):
        document = golden.recorded(kind) | {"data": with_extras(golden.FACTS[kind], path), "newattribute": "x"}
        event = events.read(golden.key(kind).subject(kind), 9, json.dumps(document).encode())
        assert event.fact == golden.FACTS[kind]


@every_kind
def test_a_fact_is_frozen(kind: str) -> None:
    field = next(iter(golden.KINDS[kind].model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(golden.FACTS[kind], field, None)


# Bounds


def schemas(schema: Any, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema of a type in a schema, with where it is."""
    if isinstance(schema, dict):
        if "type" in schema and isinstance(schema["type"], str):
            yield path, schema
        for name, inner in schema.items():
            if name not in ("default", "enum", "const", "examples"):
                yield from schemas(inner, f"{path}/{name}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from schemas(inner, f"{path}/{number}")


@every_kind
def test_every_field_of_a_fact_is_bounded(kind: str) -> None:
    for path, schema in schemas(golden.KINDS[kind].model_json_schema()):
        bounds = {
            "string": bool({"maxLength", "pattern", "enum", "const", "format"} & set(schema)),
            "integer": {"minimum", "maximum"} <= set(schema),
            "array": "maxItems" in schema or path.endswith("/content"),  # the model's own blocks
            "number": False,
        }
        assert bounds.get(schema["type"], True), f"{kind}{path} has no bounds: {schema}"
        if path.endswith("digest"):
            assert schema.get("pattern") == "^[0-9a-f]{64}$"


@pytest.mark.parametrize("bad", ["", "0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n", " " + "0" * 63, "٠" * 64, "g" * 64])
def test_a_digest_is_sixty_four_lower_case_hex_digits(bad: str) -> None:
    with pytest.raises(ValidationError):
        type(EXAMPLES["policy.turn-forwarded"]).model_validate(
            EXAMPLES["policy.turn-forwarded"].model_dump() | {"pack": {"name": "acme", "version": 1, "digest": bad}}
        )


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("desk.run-started", {"limits": {"max_steps": 0, "max_cost_micro_usd": 1}}),
        ("desk.run-started", {"limits": {"max_steps": 1, "max_cost_micro_usd": -1}}),
        ("agent.turn-proposed", {"turn": 0}),
        ("agent.turn-proposed", {"calls": []}),
        ("agent.turn-proposed", {"cost_micro_usd": -1}),
        ("agent.turn-proposed", {"usage": {"input": -1}}),
        ("agent.run-ended", {"status": "cancelled"}),
        ("agent.run-ended", {"steps": -1}),
        ("tools.turn-quoted", {"attempt": 0}),
        ("tools.turn-quoted", {"attempt": 5}),
        ("tools.turn-quoted", {"quotes": []}),
        ("tools.turn-executed", {"attempt": 4}),
        ("policy.turn-forwarded", {"attempt": 4}),
        ("policy.turn-forwarded", {"verdicts": []}),
        ("policy.turn-held", {"holds": []}),
        ("policy.turn-held", {"attempt": 4}),
        ("policy.turn-held", {"expires_at": "2026-11-30T12:00:00"}),
        ("approvals.call-decided", {"decision": "perhaps"}),
    ],
)
def test_a_fact_that_cannot_be_is_refused(kind: str, change: Json) -> None:
    with pytest.raises(ValidationError):
        golden.KINDS[kind].model_validate(golden.FACTS[kind].model_dump() | change)


@pytest.mark.parametrize("people", [0, 6])
def test_a_hold_asks_for_one_to_five_people(people: int) -> None:
    dumped = EXAMPLES["policy.turn-held"].model_dump()
    dumped["holds"][0]["needs"] = {"role": "approver", "people": people}
    with pytest.raises(ValidationError, match="people"):
        CATALOGUE["policy.turn-held"].model_validate(dumped)


def largest(schema: Json, root: Json) -> Any:
    """As much as a schema lets anyone write; where it is open, more than a broker takes."""
    if "$ref" in schema:
        return largest(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "anyOf" in schema:
        return largest(schema["anyOf"][0], root)
    for fixed in ("const", "enum"):
        if fixed in schema:
            return schema[fixed] if fixed == "const" else max(schema[fixed], key=len)
    if "pattern" in schema:
        return "GBP" if "A-Z" in schema["pattern"] else "f" * 64
    if schema.get("format") == "date-time":
        return "2026-11-30T12:00:00.000000Z"
    match schema["type"]:
        case "string":
            return "\x01" * schema["maxLength"]  # six bytes each
        case "integer":
            return schema["maximum"]
        case "boolean":
            return False
        case "array":
            return [largest(schema["items"], root)] * schema.get("maxItems", 1)
        case "object" if "properties" in schema:
            return {name: largest(inner, root) for name, inner in schema["properties"].items()}
        case "object" if isinstance(schema["additionalProperties"], dict):
            inner = largest(schema["additionalProperties"], root)
            return {f"{number:0512}": inner for number in range(schema["maxProperties"])}
        case "object":
            return {"free": "x" * 100}
    raise AssertionError(schema)


@every_kind
def test_the_largest_fact_that_can_be_written_fits_into_a_message(kind: str) -> None:
    schema = golden.KINDS[kind].model_json_schema()
    fact = golden.KINDS[kind].model_validate(largest(schema, schema))
    with suppress(ValueError):  # refused for its size
        event = events.write(golden.KEY, Draft(fact, None), None, golden.TIME)
        assert len(event.payload) < BROKER_TAKES - 1024


def test_a_fact_that_is_too_large_is_refused_with_its_size() -> None:
    reply = EXAMPLES["agent.reply-given"]
    content = [{"type": "text", "text": "x" * LARGEST}]
    fact = type(reply).model_validate(reply.model_dump() | {"content": content})
    with pytest.raises(ValueError, match=r"agent\.reply-given of TCK-2004-1 has 900,\d+ bytes"):
        events.write(golden.KEY, Draft(fact, None), None, golden.TIME)


@pytest.mark.parametrize("bad", [float("nan"), 10**20, "\ud800", 1e20])
def test_a_fact_that_json_cannot_carry_is_refused(bad: object) -> None:
    handed = EXAMPLES["agent.handed-over"]
    fact = type(handed).model_validate(handed.model_dump() | {"note": {"deep": [bad]}})
    with pytest.raises(ValueError, match=r".+"):
        events.write(golden.KEY, Draft(fact, None), None, golden.TIME)
