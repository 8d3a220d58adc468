"""A small HTTP port beside each service: /healthz (alive), /readyz (taking messages), /metrics (Prometheus)."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest


def nothing_more() -> list[str]:
    return []


def serve(
    name: str,
    port: int,
    ready: Callable[[], bool],
    host: str = "127.0.0.1",
    conditions: Callable[[], list[str]] = nothing_more,
) -> ThreadingHTTPServer:
    """Starts answering on a thread of its own; `shutdown()` ends it. Who is ready says its name: whoever asks may have
    come to another's port. Behind it stands, a line each, what is not as it should be though the service is ready."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, generate_latest(), CONTENT_TYPE_LATEST)
            elif path == "/healthz":
                self._answer(200, b"ok\n")
            elif path == "/readyz":
                self._answer(*((200, _lines(f"{name} is ready", *conditions())) if ready() else (503, b"not ready\n")))
            else:
                self._answer(404, b"here are /healthz, /readyz and /metrics\n")

        def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes are not worth a line."""

    server = ThreadingHTTPServer((host, port), Health)
    threading.Thread(target=server.serve_forever, daemon=True, name="health").start()
    return server


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
