"""One trace a run: a fact's `traceparent` hangs it under what led to it, through all five services."""

import secrets
from collections.abc import Iterator, Mapping
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


def enabled() -> bool:
    """Whether spans are sent anywhere."""
    return _enabled


@contextmanager
def span(name: str, event: Event | None = None, came_with: Mapping[str, str] | None = None) -> Iterator[None]:
    """Everything inside happens because of `event`, or of the message that came with these headers; without either, of
    what we are in the midst of."""
    if not _enabled:
        yield
        return
    given = event.traceparent if event else (came_with or {}).get("traceparent")
    around = trace.get_current_span().get_span_context()
    # An exception is named and not quoted: traces go to a house of somebody else's, where nobody could erase it.
    with trace.get_tracer("turngate").start_as_current_span(
        name,
        record_exception=False,
        set_status_on_exception=False,
        context=_propagator.extract({"traceparent": given}) if given else None,
        links=[trace.Link(around)] if given and around.is_valid else [],
        attributes={"turngate.tenant": event.key.tenant, "turngate.run": event.key.run} if event else {},
    ) as here:
        try:
            yield
        except Exception as error:
            here.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise


def headers() -> dict[str, str]:
    """What a message takes along, so that whoever hears it goes on in our trace."""
    carrier: dict[str, str] = {}
    if _enabled:
        _propagator.inject(carrier)
    return carrier


def traceparent_behind(cause: Event | None, before: Event | None) -> str:
    """The `traceparent` for a fact behind `before`: of the span that we are in, unless that is of another trace than
    the run's; else its cause's, or that of the fact before; else a new one."""
    known = (cause and cause.traceparent) or (before and before.traceparent)
    here = headers().get("traceparent")
    if here and (not known or _trace_id(here) == _trace_id(known)):
        return here
    return known or f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-{int(_enabled):02}"


def _trace_id(traceparent: str) -> str:
    return traceparent[3:35]
