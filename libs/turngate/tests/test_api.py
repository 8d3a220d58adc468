"""The gateway's client, against a server that cuts, drops and refuses."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest
from contracts import events
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.subjects import RunKey
from turngate.api import Api, Refused
from turngate.embedded.trouble import Trouble

KINDS = ["desk.run-started", "agent.turn-proposed", "tools.turn-quoted", "policy.turn-held", "agent.run-ended"]
Answer = Callable[[socket.socket, str], None]


def a_run() -> list[Event]:
    written: list[Event] = []
    for number, kind in enumerate(KINDS, 1):
        before = written[-1] if written else None
        event = events.write(RunKey("acme", "TCK-1-1"), Draft(EXAMPLES[kind], None), before, datetime.now(UTC))
        written.append(events.from_document(event.document(), number * 10, event.payload))
    return written


def frames(behind: int = 0) -> list[bytes]:
    return [
        b"id: %d\ndata: %s\n\n" % (event.sequence, event.payload) for event in a_run_once() if event.sequence > behind
    ]


_run: list[Event] = []


def a_run_once() -> list[Event]:
    if not _run:
        _run.extend(a_run())
    return _run


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """One answer a connection, with all of its request in hand."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    request = b""
                    while b"\r\n\r\n" not in request:
                        request += connection.recv(65536)
                    answer(connection, request.decode())

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def begin(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\nretry: 1\n\n")


def last_seen(request: str) -> int:
    return next(int(line.split(":")[1]) for line in request.splitlines() if line.lower().startswith("last-event-id"))


def test_a_stream_that_comes_byte_by_byte_is_read_whole() -> None:
    def answer(connection: socket.socket, request: str) -> None:
        begin(connection)
        for byte in b"".join(frames()):
            connection.send(bytes([byte]))

    with server(answer) as url:
        assert list(Api(url, "t").events("/v1/runs/TCK-1-1/events")) == a_run_once()


def test_a_stream_that_breaks_at_any_byte_goes_on_where_it_broke() -> None:
    whole = b"".join(frames())
    for cut in range(0, len(whole), 97):
        begun: list[int] = []

        def answer(connection: socket.socket, request: str, cut: int = cut, begun: list[int] = begun) -> None:
            begin(connection)
            begun.append(last_seen(request))
            connection.sendall(whole[:cut] if len(begun) == 1 else b"".join(frames(behind=last_seen(request))))

        with server(answer) as url:
            assert list(Api(url, "t").events("/v1/runs/TCK-1-1/events")) == a_run_once(), cut
        assert len(begun) == 2


def test_the_end_told_again_to_who_comes_back_behind_it_is_not_shown_twice() -> None:
    def answer(connection: socket.socket, request: str) -> None:
        begin(connection)
        connection.sendall(frames()[-1])

    with server(answer) as url:
        assert list(Api(url, "t").events("/v1/runs/TCK-1-1/events", after=a_run_once()[-1].sequence)) == []


def test_who_has_only_so_much_patience_is_told_of_a_stream_that_only_lives() -> None:
    def answer(connection: socket.socket, request: str) -> None:
        begin(connection)
        connection.sendall(frames()[0])
        while True:
            connection.sendall(b": still here\n\n")

    with server(answer) as url, pytest.raises(Trouble, match="silent for 0 s, behind event 10"):
        list(Api(url, "t").events("/v1/runs/TCK-1-1/events", patience=0.2))


def test_a_refusal_is_said_in_the_gateways_words() -> None:
    def answer(connection: socket.socket, request: str) -> None:
        body = json.dumps({"title": "May not", "status": 403, "detail": "You asked for it."}).encode()
        head = b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/problem+json\r\nconnection: close\r\n"
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)

    with server(answer) as url, pytest.raises(Refused, match=r"May not: You asked for it\."):
        Api(url, "t").post("/v1/runs/TCK-1-1/decisions", {})


def test_a_request_whose_answer_is_lost_is_sent_again_with_the_same_key() -> None:
    keys: list[str] = []

    def answer(connection: socket.socket, request: str) -> None:
        keys.append(next(line for line in request.splitlines() if line.lower().startswith("idempotency-key")))
        if len(keys) > 1:
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

    with server(answer) as url:
        assert Api(url, "t").post("/v1/tickets", {}) == {}
    assert keys[0] == keys[1]


def test_a_gateway_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Trouble, match=url):
        Api(url, "t").get("/v1/tickets")
