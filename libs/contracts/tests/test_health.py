"""A service says from outside whether it lives, whether it takes messages, and what it has counted."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from contracts import health
from contracts.metrics import APPENDED


@contextmanager
def served(ready: Callable[[], bool] = lambda: True) -> Iterator[str]:
    server = health.serve("policy", 0, ready)
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_it_lives_even_when_it_is_not_ready() -> None:
    with served(lambda: False) as url:
        assert get(f"{url}/healthz") == (200, "ok\n")
        assert get(f"{url}/readyz") == (503, "not ready\n")


def test_it_is_ready_as_soon_as_it_is() -> None:
    answers = [False, True]
    with served(lambda: answers.pop(0)) as url:
        assert get(f"{url}/readyz")[0] == 503
        assert get(f"{url}/readyz?from=a-probe") == (200, "policy is ready\n")


def test_what_is_not_as_it_should_be_is_said_and_it_is_ready_all_the_same() -> None:
    server = health.serve("policy", 0, lambda: True, conditions=lambda: ["The model is away (529)", "and more"])
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert get(f"{url}/readyz") == (200, "policy is ready\nThe model is away (529)\nand more\n")
    finally:
        server.shutdown()
        server.server_close()


def test_what_it_counted_is_read_by_prometheus() -> None:
    APPENDED.labels("test.fact-counted").inc(3)
    with served() as url:
        status, text = get(f"{url}/metrics")
    assert status == 200
    assert 'turngate_facts_appended_total{kind="test.fact-counted"} 3.0' in text


@pytest.mark.parametrize("path", ["/", "/healthz/x", "/../etc/passwd"])
def test_there_is_nothing_else(path: str) -> None:
    with served() as url:
        assert get(url + path)[0] == 404
