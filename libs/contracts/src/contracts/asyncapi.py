"""The published contract of the log: an AsyncAPI 3.0 document, made from the facts themselves."""

from datetime import UTC, datetime
from typing import Any

from contracts import events
from contracts.events import Draft
from contracts.examples import EXAMPLES, TENANT_EXAMPLES
from contracts.facts import CATALOGUE
from contracts.parts import Json
from contracts.subjects import RunKey, TenantKey
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import AUTHORS

VERSION = "1.0.0"

_ENVELOPE: dict[str, Any] = {
    "specversion": {"type": "string", "const": "1.0"},
    "id": {"type": "string", "format": "uuid"},
    "source": {"type": "string"},
    "type": {"type": "string"},
    "subject": {"type": "string", "description": "The run; of a tenant's own fact, the tenant."},
    "time": {"type": "string", "format": "date-time"},
    "datacontenttype": {"type": "string", "const": "application/json"},
    "tenant": {"type": "string"},
    "ordinal": {"type": "integer", "minimum": 0, "description": "Position in its line."},
    "cause": {"type": "string", "description": "Id of the event that led to this one."},
    "trail": {"type": "string", "description": "`sequence:kind` of the up to 32 events of the line before this one."},
    "chain": {"type": "string", "description": "SHA-256 over the previous event's chain and this event without it."},
    "traceparent": {"type": "string"},
}
_OPTIONAL = ("cause", "traceparent")
_RUN = RunKey("acme", "TCK-2004-1")
_TIME = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def document() -> Json:
    """The AsyncAPI document: one channel a fact, received by whoever may read `log.run.<tenant>.>`, and of those about
    the tenant itself `log.tenant.<tenant>.>`."""
    services = {author: service for service, author in AUTHORS.items()}
    channels: Json = {}
    operations: Json = {}
    messages: Json = {}
    for kind, fact in sorted((CATALOGUE | TENANT_FACTS).items()):
        name = kind.replace(".", "_").replace("-", "_")
        channels[name] = {
            **_address(kind),
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        }
        operations[name] = {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}
        messages[name] = {
            "name": kind,
            "title": fact.__name__,
            "summary": f"Said by {services[fact.author]}.",
            "contentType": "application/cloudevents+json",
            "payload": {
                "type": "object",
                "required": ["data", *(key for key in _ENVELOPE if key not in _OPTIONAL)],
                "properties": {
                    **_ENVELOPE,
                    "type": {"type": "string", "const": f"turngate.{kind}.v1"},
                    "data": _open(
                        fact.model_json_schema(ref_template=f"#/components/messages/{name}/payload/$defs/{{model}}")
                    ),
                },
            },
            "examples": [{"name": kind, "payload": _example(kind)}],
        }
        schema = messages[name]["payload"]
        schema["$defs"] = schema["properties"]["data"].pop("$defs", {})
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Turngate's facts",
            "version": VERSION,
            "description": "Every accepted fact of every run, once, in the order of the log. Fields with `x-personal` "
            "hold placeholders here; `data.sealed` is what they stand for, under a key that only the services have.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/cloudevents+json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


def _address(kind: str) -> Json:
    tenant = {"tenant": {"description": "The tenant."}}
    if kind in TENANT_FACTS:
        return {"address": f"log.tenant.{{tenant}}.{kind}", "parameters": tenant}
    return {
        "address": f"log.run.{{tenant}}.{{run}}.{kind}",
        "parameters": {**tenant, "run": {"description": "`<ticket>-<n>`."}},
    }


def _open(schema: Any) -> Any:
    """The schema for readers, to whom a newer fact may say more: only writers are held to the known fields."""
    if isinstance(schema, dict):
        return {
            name: _open(inner)
            for name, inner in schema.items()
            if not (name == "additionalProperties" and inner is False)
        }
    return [_open(inner) for inner in schema] if isinstance(schema, list) else schema


def _example(kind: str) -> Json:
    """A whole CloudEvent: the first fact of a run, or one that it caused; or of a tenant's own line."""
    if kind in TENANT_FACTS:
        return events.write(TenantKey(_RUN.tenant), Draft(TENANT_EXAMPLES[kind], None), None, _TIME).document()
    first = events.write(_RUN, Draft(EXAMPLES["desk.run-started"], None), None, _TIME)
    if kind == first.kind:
        return first.document()
    first = events.read(_RUN.subject(first.kind), 1, first.payload)
    return events.write(_RUN, Draft(EXAMPLES[kind], first), first, _TIME).document()
