"""The gateway as the command line knows it: requests, refusals as messages, and streams that go on where they broke."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httpx
from contracts.events import Event, from_document
from contracts.validation import repeated

from turngate.embedded.trouble import Trouble
from turngate.sse import Frame, Parser

GIVE_UP_AFTER = 60.0  # seconds without a connection
SILENT_AT_MOST = 15.0  # the gateway sends a heartbeat every 5 s


class Refused(Trouble):
    """The gateway said no, and why. name: what there is not, where it said so."""

    def __init__(self, status: int, title: str, detail: str, name: str | None = None) -> None:
        what = f"{title} as {repeated(name)}" if name else title
        super().__init__(f"{what}: {detail}" if detail else what)
        self.status, self.title, self.detail, self.name = status, title, detail, name

    def document(self) -> dict[str, object]:
        named = {"name": self.name} if self.name else {}
        return {"title": self.title, "detail": self.detail, "status": self.status, **named}


class Api:
    """One person's view of one gateway."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(30.0)
        )

    def get(self, path: str, **params: Any) -> Any:
        return self._ask("GET", path, params={name: value for name, value in params.items() if value is not None})

    def post(self, path: str, body: Any = None) -> Any:
        """Sent with a key of its own, so that a repetition after a lost answer does nothing twice."""
        return _content(self.send(path, body))

    def send(self, path: str, body: Any = None) -> httpx.Response:
        """As `post`: the whole answer, for what its headers say."""
        return self._answer("POST", path, json=body, headers={"Idempotency-Key": uuid.uuid4().hex})

    def put(self, path: str, body: Any) -> Any:
        """As `post`."""
        return self._ask("PUT", path, json=body, headers={"Idempotency-Key": uuid.uuid4().hex})

    def download(self, path: str, accept: str, **params: Any) -> Iterator[str]:
        """What the path has in a form of its own, in pieces as they come."""
        given = {name: value for name, value in params.items() if value is not None}
        try:
            with self._client.stream("GET", path, params=given, headers={"Accept": accept}) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise refusal(answer)
                yield from answer.iter_text()
        except httpx.TransportError as error:
            raise Trouble(f"The connection to {self.url} was lost ({error}). What was printed is not all.") from None

    def pages(self, path: str, items: str, **params: Any) -> Iterator[Any]:
        """Every item of a paged list."""
        cursor = None
        while True:
            page = self.get(path, cursor=cursor, **params)
            yield from page[items]
            cursor = page.get("next")
            if not cursor:
                return

    def events(
        self,
        path: str,
        after: int = 0,
        patience: float = float("inf"),
        quiet: Callable[[], None] | None = None,
    ) -> Iterator[Event]:
        """The stream's events behind `after`, each once, across lost connections, until the reader has enough or the
        stream has ended with a terminal event. `quiet` is called where the stream says something that is no event.
        Raises Trouble where none comes for `patience` seconds."""
        patience_ends = time.monotonic() + GIVE_UP_AFTER
        heard = time.monotonic()
        ended = fresh = False
        while not ended:
            parser = Parser()
            try:
                for frame in self._frames(path, after, parser):
                    patience_ends = time.monotonic() + GIVE_UP_AFTER
                    if frame is None:
                        if quiet is not None and not fresh:
                            quiet()
                        fresh = False
                        if time.monotonic() - heard > patience:
                            raise Trouble(
                                f"{path} has been silent for {patience:.0f} s, behind event {after}. Nothing was "
                                "stopped. `turngate status` shows what runs, and where its logs are."
                            )
                        continue
                    fresh = True
                    event = event_of(frame)
                    ended = ended or event.terminal
                    if event.sequence > after:
                        heard = time.monotonic()
                        after = event.sequence
                        yield event
            except httpx.TransportError:
                if time.monotonic() > patience_ends:
                    raise Trouble(
                        f"The connection to {self.url} is lost and did not come back. The run goes on without us; "
                        "the same command shows the rest."
                    ) from None
            if not ended:
                time.sleep((parser.retry_ms or 1000) / 1000)

    def _frames(self, path: str, after: int, parser: Parser) -> Iterator[Frame | None]:
        """The frames as they come, and None after each piece of the stream, heartbeats included."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        timeout = httpx.Timeout(30.0, read=SILENT_AT_MOST)
        with self._client.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if answer.status_code >= 500:
                raise httpx.RemoteProtocolError(f"status {answer.status_code}")
            if answer.status_code >= 400:
                answer.read()
                raise refusal(answer)
            for piece in answer.iter_bytes():
                yield from parser.feed(piece)
                yield None

    def _ask(self, method: str, path: str, **rest: Any) -> Any:
        return _content(self._answer(method, path, **rest))

    def _answer(self, method: str, path: str, **rest: Any) -> httpx.Response:
        try:
            answer = self._client.request(method, path, **rest)
        except httpx.TransportError:
            try:  # once more: the key of a POST makes that safe
                answer = self._client.request(method, path, **rest)
            except httpx.TransportError as error:
                raise Trouble(
                    f"Nothing answers at {self.url} ({error}). Whether the request arrived is not known. "
                    "`turngate status` shows what runs."
                ) from None
        if answer.status_code >= 400:
            raise refusal(answer)
        return answer


def _content(answer: httpx.Response) -> Any:
    return answer.json() if answer.content else None


def _asked_for(url: httpx.URL) -> str | None:
    """What a path such as /v1/runs/TCK-2004-1/cancel names, or a filter such as /v1/audit?run=TCK-2004-1."""
    _, _, _, *names = unquote(url.raw_path.decode().partition("?")[0]).split("/")
    return names[0] if names else url.params.get("run")


def event_of(frame: Frame) -> Event:
    return from_document(json.loads(frame.data), int(frame.id or 0), frame.data.encode())


def refusal(answer: httpx.Response) -> Refused:
    try:
        problem = answer.json()
        # The gateway's words are the same whatever was asked for, so that they say nothing of other tenants.
        name = _asked_for(answer.request.url) if answer.status_code == HTTPStatus.NOT_FOUND else None
        return Refused(answer.status_code, str(problem["title"]), str(problem.get("detail", "")), name)
    except (ValueError, KeyError, TypeError):
        return Refused(answer.status_code, f"The gateway answered {answer.status_code}", answer.text[:500])
