"""A collector of traces on loopback: what services send over OTLP/HTTP, kept for tests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str]


@dataclass
class Collector:
    """The spans that have come so far; `bodies` are they as they were sent."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    _spans: list[Span] = field(default_factory=list)
    _come: threading.Condition = field(default_factory=threading.Condition)

    def take(self, body: bytes) -> None:
        with self._come:
            self.bodies.append(body)
            self._spans += read(body)
            self._come.notify_all()

    def until(self, enough: Callable[[list[Span]], bool], within: float = 60.0) -> list[Span]:
        """The spans, once they are enough."""
        with self._come:
            assert self._come.wait_for(lambda: enough(self._spans), within), f"{len(self._spans)} spans are not enough"
            return list(self._spans)


def read(body: bytes) -> Iterator[Span]:
    for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _plain(sent.resource.attributes)["service.name"]
        for scope in sent.scope_spans:
            for span in scope.spans:
                yield Span(
                    service,
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    _plain(span.attributes),
                )


def _plain(attributes: Any) -> dict[str, str]:
    return {attribute.key: attribute.value.string_value for attribute in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens until it is left."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Not worth a line."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
