"""One trace a run: a fact's `traceparent` hangs it under what led to it, through all five services."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from contracts.events import Event

_propagator = TraceContextTextMapPropagator()
_enabled = False


def configure(service: str, endpoint: str | None) -> None:
    """Sends spans to an OTLP/HTTP endpoint; without one, facts still carry their run's trace id."""
    global _enabled  # one provider a process, set once at start
    if not endpoint:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    _enabled = True


@contextmanager
def span(name: str, event: Event | None) -> Iterator[None]:
    """Everything inside happens because of `event`."""
    if not _enabled:
        yield
        return
    parent = _propagator.extract({"traceparent": event.traceparent}) if event and event.traceparent else None
    attributes = {"turngate.tenant": event.key.tenant, "turngate.run": event.key.run} if event else {}
    with trace.get_tracer("turngate").start_as_current_span(name, context=parent, attributes=attributes):
        yield


def traceparent_behind(cause: Event | None) -> str:
    """The `traceparent` for a fact: of the span that we are in, else its cause's, else a new trace."""
    carrier: dict[str, str] = {}
    if _enabled:
        _propagator.inject(carrier)
    if "traceparent" in carrier:
        return carrier["traceparent"]
    if cause is not None and cause.traceparent:
        return cause.traceparent
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
