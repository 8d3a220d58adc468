"""Refusals over HTTP: RFC 9457 problems that say what happened, what did not, and what to do."""

from typing import Any

from contracts.answers import no_such
from fastapi import Request
from fastapi.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """What the asker is told instead of an answer."""

    def __init__(self, status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} {title}")
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = headers or {}

    def document(self) -> dict[str, Any]:
        return {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}


def not_found(what: str) -> Problem:
    no = no_such(what)
    return Problem(no.status, no.title, no.detail)


def outage() -> Problem:
    return Problem(
        503,
        "Not now",
        "Something that this needs is away at the moment. Try again in a few seconds; with the same Idempotency-Key "
        "it is not done twice.",
        {"Retry-After": "2"},
    )


def answer(_: Request, problem: Problem) -> JSONResponse:
    return JSONResponse(problem.document(), problem.status, problem.headers, MEDIA_TYPE)
