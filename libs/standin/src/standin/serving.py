"""A stand-in for the length of a test: it listens on a free port until the block ends."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from standin.app import app


def listener(host: str, port: int) -> socket.socket:
    """A listening socket whose connections send each piece at once.

    The event loop sets that option only on sockets that it made itself; without it every streamed answer waits 40 ms
    for an acknowledgement that the other side delays.
    """
    listening = socket.create_server((host, port), backlog=512)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


@contextmanager
def serving(*, pace_ms: float = 0) -> Iterator[str]:
    """Serves from a thread of its own, and gives the base URL."""
    listening = listener("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(app(pace_ms=pace_ms), access_log=False, log_level="critical", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        # The socket listens already: a caller who is early waits in its backlog.
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
