"""The published contract is true: every fact is in it, and what it says is what the log holds."""

import json
import re
from typing import Any

import pytest
from contracts import asyncapi, events
from contracts.events import SOURCES
from contracts.facts import CATALOGUE
from contracts.parts import Json
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import AUTHORS

from . import golden

DOCUMENT = asyncapi.document()
every_kind = pytest.mark.parametrize("kind", sorted(golden.KINDS))


def resolve(reference: str) -> Any:
    """What a `$ref` of the document points to."""
    assert reference.startswith("#/")
    found: Any = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in references(inner)]
    return [found for inner in value for found in references(inner)] if isinstance(value, list) else []


def objections(schema: Json, value: Any, where: str = "") -> list[str]:
    """What a JSON Schema has against a value, as far as our schemas go. An unknown keyword is an objection itself."""
    found: list[str] = []
    kinds: dict[str, Any] = {
        "object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)
    }  # fmt: skip
    for keyword, says in schema.items():
        wrong = False
        match keyword:
            case "$ref":
                found += objections(resolve(says), value, where)
            case "anyOf":
                wrong = not any(objections(option, value, where) == [] for option in says)
            case "type":
                wrong = not isinstance(value, kinds[says]) or (says == "integer" and isinstance(value, bool))
            case "const":
                wrong = value != says
            case "enum":
                wrong = value not in says
            case "pattern":
                wrong = isinstance(value, str) and re.search(says, value) is None
            case "maxLength":
                wrong = isinstance(value, str) and len(value) > says
            case "minimum":
                wrong = isinstance(value, int) and value < says
            case "maximum":
                wrong = isinstance(value, int) and value > says
            case "minItems":
                wrong = isinstance(value, list) and len(value) < says
            case "maxItems":
                wrong = isinstance(value, list) and len(value) > says
            case "maxProperties":
                wrong = isinstance(value, dict) and len(value) > says
            case "required":
                wrong = isinstance(value, dict) and not set(says) <= set(value)
            case "properties" if isinstance(value, dict):
                for name in set(says) & set(value):
                    found += objections(says[name], value[name], f"{where}.{name}")
            case "additionalProperties" if isinstance(value, dict) and isinstance(says, dict):
                for name, inner in value.items():
                    found += objections(says, inner, f"{where}.{name}")
            case "items" if isinstance(value, list):
                for inner in value:
                    found += objections(says, inner, f"{where}[]")
            case "properties" | "additionalProperties" | "items":
                pass
            case "title" | "description" | "x-personal" | "default" | "format" | "$defs" | "propertyNames":
                pass
            case _:
                wrong = True
        if wrong:
            found.append(f"{where}: {keyword} {says} is not {str(value)[:60]!r}")
    return found


def payload(kind: str) -> Json:
    [channel] = [channel for channel in DOCUMENT["channels"].values() if channel["address"].endswith(f"}}.{kind}")]
    [message] = channel["messages"].values()
    schema: Json = resolve(message["$ref"])["payload"]
    return schema


def test_it_is_an_asyncapi_document() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(DOCUMENT["info"])
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT
    assert set(DOCUMENT["channels"]) == set(DOCUMENT["operations"]) == set(DOCUMENT["components"]["messages"])
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] == "send"
        assert resolve(operation["channel"]["$ref"]) in DOCUMENT["channels"].values()


def test_every_reference_resolves() -> None:
    found = references(DOCUMENT)
    assert len(found) > 2 * len(golden.KINDS)
    for reference in found:
        assert isinstance(resolve(reference), dict)


def test_every_fact_has_its_channel_and_there_is_no_other() -> None:
    addresses = {channel["address"] for channel in DOCUMENT["channels"].values()}
    runs = {f"log.run.{{tenant}}.{{run}}.{kind}" for kind in CATALOGUE}
    assert addresses == runs | {f"log.tenant.{{tenant}}.{kind}" for kind in TENANT_FACTS}
    for channel in DOCUMENT["channels"].values():
        assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel["parameters"])


@every_kind
def test_a_message_says_who_says_it(kind: str) -> None:
    [message] = [message for message in DOCUMENT["components"]["messages"].values() if message["name"] == kind]
    services = {author: service for service, author in AUTHORS.items()}
    assert services[golden.KINDS[kind].author] in message["summary"]
    assert SOURCES[golden.KINDS[kind].author].endswith(services[golden.KINDS[kind].author])


@every_kind
def test_an_example_is_a_whole_event_that_its_schema_takes(kind: str) -> None:
    [message] = [message for message in DOCUMENT["components"]["messages"].values() if message["name"] == kind]
    for example in message["examples"]:
        assert objections(message["payload"], example["payload"]) == []
        event = events.from_document(example["payload"])
        assert event.kind == kind
        assert event.fact is not None


@every_kind
def test_a_schema_takes_what_the_log_holds_and_what_a_newer_writer_adds(kind: str) -> None:
    document = golden.recorded(kind)
    assert objections(payload(kind), document) == []
    newer = document | {"newattribute": "x", "data": document["data"] | {"new": 1}}
    assert objections(payload(kind), newer) == []


@every_kind
def test_a_schema_takes_nothing_else(kind: str) -> None:
    document = golden.recorded(kind)
    others = [golden.recorded(other) for other in golden.KINDS if other != kind]
    for wrong in (*others, document | {"data": {}}, document | {"ordinal": -1}, {"data": document["data"]}):
        assert objections(payload(kind), wrong)
