"""What the system says of itself: documents, metrics, traces and logs; and what one tenant sees of another."""

import json
import re
from collections import Counter
from typing import Any

import httpx
import pytest
from contracts.events import Event
from contracts.facts import CATALOGUE, HoldExpired, RunStarted, TurnHeld
from contracts.tenant_facts import TENANT_FACTS
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families
from turngate.running import RunningSystem

from .collector import Collector, Span
from .own_system import OwnSystem
from .world import DONE, Case, Run, look_up, open_case, post, refund, turn, turngate, until

pytestmark = pytest.mark.timeout(300)
SERVICES = {"gateway", "agent-runner", "tools-shop", "policy", "approvals"}
# interfaces.md; the audit and the spend come later.
CALLS = {
    "/v1/tickets": {"get", "post"},
    "/v1/tickets/{reference}": {"get"},
    "/v1/tickets/{reference}/runs": {"post"},
    "/v1/runs": {"get"},
    "/v1/runs/{run}": {"get"},
    "/v1/runs/{run}/events": {"get"},
    "/v1/runs/{run}/decisions": {"post"},
    "/v1/runs/{run}/quotes": {"post"},
    "/v1/runs/{run}/messages": {"post"},
    "/v1/runs/{run}/cancel": {"post"},
    "/v1/runs/{run}/take-over": {"post"},
    "/v1/approvals": {"get"},
    "/v1/events": {"get"},
    "/healthz": {"get"},
    "/readyz": {"get"},
    "/metrics": {"get"},
    "/asyncapi.json": {"get"},
}


def held(system: RunningSystem, tenant: str = "acme") -> tuple[Case, Run]:
    case = open_case(system, 18000, tenant=tenant)
    case.says(turn(look_up(case.orders[0])), turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    run.until(TurnHeld)
    return case, run


def released(system: RunningSystem) -> Run:
    """A run that was held, approved, and is over."""
    _, run = held(system)
    assert run.decide("sam", run.holds()[0]).status_code == 200
    run.ended()
    return run


# Documents


@pytest.fixture(scope="module")
def openapi(system: RunningSystem) -> dict[str, Any]:
    document: dict[str, Any] = httpx.get(f"{system.url}/openapi.json").json()
    return document


def test_the_openapi_document_is_valid_and_has_every_call(openapi: dict[str, Any]) -> None:
    validate(openapi)
    for path, methods in CALLS.items():
        assert methods <= openapi["paths"].get(path, {}).keys(), path


def answers(openapi: dict[str, Any], path: str, method: str, status: int) -> dict[str, Any]:
    """What the document says that an answer of this status holds, by media type."""
    responses = openapi["paths"][path][method]["responses"]
    described = responses.get(str(status)) or responses[f"{status // 100}XX"]
    content: dict[str, Any] = described["content"]
    return content


def is_as_described(openapi: dict[str, Any], path: str, method: str, answer: httpx.Response) -> None:
    kind = answer.headers["content-type"].split(";")[0]
    content = answers(openapi, path, method, answer.status_code)
    assert kind in content, f"{method} {path}: {kind}, not {list(content)}"
    if kind.endswith("json"):
        schema = {**content[kind]["schema"], "components": openapi["components"]}
        Draft202012Validator(schema).validate(answer.json())


def test_each_get_answers_as_the_document_says(system: RunningSystem, openapi: dict[str, Any]) -> None:
    case, run = held(system)
    headers = {"Authorization": f"Bearer {system.token('alex')}"}
    for path, methods in CALLS.items():
        if "get" not in methods or path == "/v1/events":
            continue
        url = f"{system.url}{path.format(reference=case.ticket, run=run.run)}"
        answer = httpx.get(url, headers=headers)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        is_as_described(openapi, path, "get", answer)
        if path.startswith("/v1"):
            is_as_described(openapi, path, "get", httpx.get(url))
    (hold,) = run.view()["holds"]
    assert (hold["effect"]["amount_minor"], hold["digest"]) == (18000, run.holds()[0]["digest"])
    assert run.decide("sam", run.holds()[0], "decline").status_code == 200


@pytest.mark.parametrize("path", ["/v1/events", "/v1/runs/{run}/events"])
def test_a_stream_is_one_as_the_document_says(system: RunningSystem, openapi: dict[str, Any], path: str) -> None:
    run = released(system)
    headers = {"Authorization": f"Bearer {system.token('alex')}", "Accept": "text/event-stream"}
    with httpx.stream("GET", f"{system.url}{path.format(run=run.run)}", headers=headers) as answer:
        is_as_described(openapi, path, "get", answer)


def test_each_post_answers_and_refuses_as_the_document_says(system: RunningSystem, openapi: dict[str, Any]) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    body = {"customer_email": "kim@mail.example", "subject": "Hello", "body": ""}
    start, runs = "/v1/tickets/{reference}/runs", "/v1/runs/{run}"
    run = Run(system, f"{case.ticket}-1")

    def is_answered(status: int, path: str, who: str, asked: Any) -> None:
        answer = post(system, who, path.format(reference=case.ticket, run=run.run), asked)
        assert answer.status_code == status, f"{path}: {answer.status_code} {answer.text}"
        is_as_described(openapi, path, "post", answer)

    is_answered(201, "/v1/tickets", "alex", body)
    is_answered(422, "/v1/tickets", "alex", {**body, "customer_email": "nobody"})
    is_answered(403, "/v1/tickets", "ari", body)
    is_answered(422, start, "alex", {"profile": "unheard-of"})
    is_answered(202, start, "alex", {})
    is_answered(200, start, "alex", {})
    (hold,) = run.holds()
    decision = {**{name: hold[name] for name in ("turn", "call_id", "digest")}, "decision": "approve"}
    is_answered(403, f"{runs}/decisions", "alex", decision)
    is_answered(404, f"{runs}/decisions", "sam", {**decision, "call_id": "another"})
    is_answered(409, f"{runs}/decisions", "sam", {**decision, "digest": "0" * 64})
    is_answered(422, f"{runs}/decisions", "sam", {**decision, "decision": "perhaps"})
    is_answered(409, f"{runs}/messages", "alex", {"text": "Hello?"})
    is_answered(413, f"{runs}/messages", "alex", {"text": "x" * 200_000})
    is_answered(200, f"{runs}/quotes", "sam", {"turn": 1, "call_id": hold["call_id"], "edited": {"amount_pence": 100}})
    is_answered(200, f"{runs}/decisions", "sam", decision)
    run.ended()
    is_answered(409, f"{runs}/cancel", "alex", {"reason": "Too late"})
    is_answered(409, f"{runs}/take-over", "alex", {})


def test_the_asyncapi_document_has_every_fact_and_real_events_are_as_it_says(system: RunningSystem) -> None:
    document = httpx.get(f"{system.url}/asyncapi.json").json()
    messages = document["components"]["messages"]
    assert document["asyncapi"] == "3.0.0"
    assert {message["name"] for message in messages.values()} == {*CATALOGUE, *TENANT_FACTS}
    for name, operation in document["operations"].items():
        channel = document["channels"][operation["channel"]["$ref"].removeprefix("#/channels/")]
        assert channel["messages"] == {name: {"$ref": f"#/components/messages/{name}"}}

    released(system)
    schemas = {
        message["payload"]["properties"]["type"]["const"]: Draft202012Validator(
            {**message["payload"], "components": document["components"]}
        )
        for message in messages.values()
    }
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema.schema)
    lines = turngate(system, "log", "export").stdout.splitlines()
    seen = Counter(event["type"] for event in map(json.loads, lines))
    assert len(seen) >= 9, seen
    for event in map(json.loads, lines):
        schemas[event["type"]].validate(event)
        assert not schemas[event["type"]].is_valid({**event, "data": {}}), "it would take anything"


# Metrics


def counted(url: str) -> dict[str, float]:
    families = text_string_to_metric_families(httpx.get(url).text)
    return {
        f"{sample.name} {' '.join(sample.labels.values())}".strip(): sample.value
        for family in families
        for sample in family.samples
    }


def metrics_of(system: RunningSystem) -> dict[str, dict[str, float]]:
    """What each service counts, at its own health port."""
    health = {service: str(system.state.processes[service]["health"]) for service in SERVICES}
    return {service: counted(url.replace("/readyz", "/metrics")) for service, url in health.items()}


def test_every_service_counts_what_it_hears_and_says(system: RunningSystem) -> None:
    moves = {
        "gateway": "turngate_facts_appended_total desk.run-started",
        "agent-runner": "turngate_messages_handled_total desk.run-started done",
        "tools-shop": "turngate_facts_appended_total tools.turn-executed",
        "policy": "turngate_messages_handled_total tools.turn-quoted done",
        "approvals": "turngate_facts_appended_total approvals.call-decided",
    }
    before = metrics_of(system)
    released(system)

    # One run of two turns, both of which policy was shown. A counter follows its fact, if only just.
    least = {"gateway": 1, "agent-runner": 1, "tools-shop": 2, "policy": 2, "approvals": 1}

    def moved(service: str) -> float:
        counter = moves[service]
        return metrics_of(system)[service].get(counter, 0) - before[service].get(counter, 0)

    until(lambda: all(moved(service) >= times for service, times in least.items()))
    at_the_door = counted(f"{system.url}/metrics")
    assert at_the_door["turngate_http_requests_total POST /v1/tickets/{reference}/runs 202"] >= 1


@pytest.fixture(scope="module")
def expired(own_system: OwnSystem) -> Run:
    """A run whose hold ran out."""
    _, run = held(own_system, "globex")
    run.until(HoldExpired)
    run.ended()
    return run


def test_no_series_is_about_one_run_not_even_of_what_its_timers_bring(own_system: OwnSystem, expired: Run) -> None:
    until(lambda: "turngate_messages_handled_total timer.due done" in metrics_of(own_system)["approvals"])
    series = [name for counters in metrics_of(own_system).values() for name in counters]
    assert [name for name in series if expired.run.rpartition("-")[0] in name] == []


# Traces


def in_trace(spans: list[Span], trace: str) -> list[Span]:
    return [span for span in spans if span.trace == trace]


def trace_of(events: list[Event]) -> str:
    """The one trace id that all facts of a run carry."""
    (trace,) = {str(event.traceparent).split("-")[1] for event in events}
    return trace


def test_a_run_is_one_trace_through_all_five_services(own_system: OwnSystem, collector: Collector) -> None:
    run = released(own_system)
    events = run.events()
    trace = trace_of(events)
    said_in = {str(event.traceparent).split("-")[2] for event in events}

    def complete(spans: list[Span]) -> bool:
        ours = in_trace(spans, trace)
        ids = {span.id for span in ours}
        one_root = sum(span.parent not in ids for span in ours) == 1
        return {span.service for span in ours} == SERVICES and one_root and said_in <= ids

    spans = collector.until(complete)
    ours = in_trace(spans, trace)
    (root,) = [span for span in ours if span.parent not in {other.id for other in ours}]
    assert (root.service, root.name) == ("gateway", "POST /v1/tickets/{reference}/runs")
    of_the_run = [span for span in spans if span.attributes.get("turngate.run") == run.run]
    assert {span.trace for span in of_the_run} == {trace}
    names = {span.name for span in ours}
    for heard in ("agent-runner hears desk.run-started", "policy hears approvals.call-decided"):
        assert heard in names
    assert "approvals answers ask.approvals.decide" in names
    # Each fact hangs under the span in which it was said.
    assert said_in <= {span.id for span in ours}


def test_what_a_timer_brings_is_in_the_trace_of_its_run(expired: Run, collector: Collector) -> None:
    trace = trace_of(expired.events())
    collector.until(
        lambda spans: (
            {"approvals hears timer.due", "policy hears approvals.hold-expired"}
            <= {span.name for span in in_trace(spans, trace)}
        )
    )


# Logs


def test_a_run_can_be_followed_by_its_id_through_the_logs_of_all_five_services(own_system: OwnSystem) -> None:
    run = released(own_system)

    def lines() -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for service in sorted(SERVICES)
            for line in own_system.log_of(service).splitlines()
            if re.search(rf"\b{run.run}\b", line)
        ]

    def said() -> list[str]:
        """The facts as the services logged them, in the order of the run."""
        found = [line for line in lines() if line["event"] == "said"]
        return [line["fact"] for line in sorted(found, key=lambda line: int(line["ordinal"]))]

    until(lambda: said() == run.kinds())
    assert {line["service"] for line in lines()} == SERVICES
    for line in lines():
        assert (line.get("tenant"), line.get("run")) == ("acme", run.run), line
        assert "fact" in line, line
        assert line["fact"] in CATALOGUE


# Tenants


def test_nobody_sees_or_touches_anything_of_another_tenant(system: RunningSystem) -> None:
    case, run = held(system)
    (hold,) = run.holds()
    gwen, gail = system.api("gwen"), f"Bearer {system.token('gail')}"
    for path, items in (("/v1/tickets", "tickets"), ("/v1/runs", "runs")):
        assert [one for one in gwen.pages(path, items) if case.ticket in (one["ticket"], one.get("run"))] == []
    assert run.run not in [waiting["run"] for waiting in gwen.get("/v1/approvals")["approvals"]]

    unknown = httpx.get(f"{system.url}/v1/runs/TCK-0-1", headers={"Authorization": gail})
    for path in (run.path, f"{run.path}/events"):
        for accept in ("application/json", "text/event-stream"):
            headers = {"Authorization": gail, "Accept": accept, "Last-Event-ID": str(run.view()["sequence"])}
            answer = httpx.get(f"{system.url}{path}", headers=headers)
            assert (answer.status_code, answer.json()) == (404, unknown.json())
    assert httpx.get(f"{system.url}/v1/tickets/{case.ticket}", headers={"Authorization": gail}).status_code == 404

    before = run.view()["sequence"]
    decision = {**{name: hold[name] for name in ("turn", "call_id", "digest")}, "decision": "approve"}
    for who, path, body in (
        ("gail", f"{run.path}/decisions", decision),
        ("gwen", f"{run.path}/messages", {"text": "Hello"}),
        ("gwen", f"{run.path}/cancel", None),
        ("gwen", f"{run.path}/take-over", None),
        ("gwen", f"/v1/tickets/{case.ticket}/runs", None),
    ):
        assert post(system, who, path, body).status_code == 404, path
    assert run.view()["sequence"] == before
    assert run.decide("sam", hold, "decline").status_code == 200


def test_a_stream_from_another_tenants_event_on_holds_nothing_of_that_tenant(own_system: OwnSystem) -> None:
    """Both tenants have a TCK-2004, and so a run of the same name."""
    gwen, gwens = own_system.api("gwen"), {"Authorization": f"Bearer {own_system.token('gwen')}"}
    assert post(own_system, "alex", "/v1/tickets/TCK-2004/runs").status_code == 202
    run = Run(own_system, "TCK-2004-1")
    run.until(TurnHeld)
    ours = run.event(RunStarted).sequence  # more of acme's lies behind it
    assert httpx.get(f"{own_system.url}/v1/runs/TCK-2004-1", headers=gwens).status_code == 404
    assert post(own_system, "gwen", "/v1/tickets/TCK-2004/runs").status_code == 202
    theirs = Run(own_system, "TCK-2004-1", "globex")
    theirs.ended()

    for path in ("/v1/events", "/v1/runs/TCK-2004-1/events"):
        stream = {**gwens, "Accept": "text/event-stream"}
        foreign, unknown = (
            httpx.get(f"{own_system.url}{path}", headers={**stream, "Last-Event-ID": str(place)})
            for place in (ours, 10**9)
        )
        assert foreign.status_code == 400
        assert foreign.json() == unknown.json(), "it tells which numbers another tenant has"

        seen = []
        for event in gwen.events(f"{path}?after={ours}"):
            seen.append(event)
            if event.key.run == theirs.run and event.terminal:
                break
        assert {event.key.tenant for event in seen} == {"globex"}
        assert [event.kind for event in seen if event.key.run == theirs.run] == theirs.kinds()
