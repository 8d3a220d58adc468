"""A stand-in for the length of a test: it listens on a free port until the block ends."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from standin.app import app


@contextmanager
def serving(*, pace_ms: float = 0) -> Iterator[str]:
    """Serves from a thread of its own, and gives the base URL."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
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
