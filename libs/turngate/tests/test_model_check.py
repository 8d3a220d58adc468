"""What the model's API says when the system is started: asked for real, over HTTP, and said in plain words."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from contracts.models import DEFAULT_MODEL
from standin.serving import serving
from turngate.model_check import Endpoint, check, configured


@contextmanager
def api(status: int, body: Any) -> Iterator[str]:
    """An API that answers everything so."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def models(*names: str) -> Any:
    return {"data": [{"type": "model", "id": name} for name in names], "has_more": False}


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, models("a-model"), "takes the key and knows the model a-model"),
        (200, models("a-model-20260101"), "takes the key and knows the model a-model"),
        (200, models("b", "c"), "does not list the model a-model: runs may fail. It lists b, c. Set TURNGATE_MODEL"),
        (200, models(), "It lists none"),
        (401, {}, "refused the key (401): every run will fail. Set ANTHROPIC_API_KEY"),
        (403, {}, "refused the key (403)"),
        (404, {}, "no list of models (404)"),
        (529, {}, "answers 529 for now. Runs wait"),
        (200, b"<html>", "with no list of models"),
        (200, {"data": [1]}, "with no list of models"),
    ],
)
def test_what_came_of_the_question_is_said_and_what_to_do(status: int, body: Any, says: str) -> None:
    with api(status, body) as url:
        assert says in check(Endpoint(url, "key-quokka", "a-model"))


def test_an_api_that_is_not_there_is_said_to_be_away() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        said = check(Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}", "key-quokka", "a-model"))
    assert "cannot be reached" in said
    assert "quokka" not in said


@pytest.mark.parametrize("url", ["http://[::1", "nowhere", "http://\x00"])
def test_an_address_that_is_none_is_no_exception(url: str) -> None:
    assert "cannot be reached" in check(Endpoint(url, "key", "a-model"))


def test_a_name_of_a_model_can_move_no_cursor() -> None:
    with api(200, models("\x1b[2Jevil\nline")) as url:
        said = check(Endpoint(url, "key", "a-model"))
    assert "\x1b" not in said
    assert "\n" not in said


def test_the_stand_in_answers_for_itself() -> None:
    with serving() as url:
        assert check(configured({}, url)) == "The stand-in answers."
        assert "refused the key (401)" in check(Endpoint(url, "invalid-key", "any"))


def test_what_is_asked_is_what_the_runner_is_told() -> None:
    given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://models.example", "TURNGATE_MODEL": "m"}
    assert configured(given, None) == Endpoint("https://models.example", "k", "m")
    assert configured({"ANTHROPIC_API_KEY": "k"}, None) == Endpoint("https://api.anthropic.com", "k", DEFAULT_MODEL)
