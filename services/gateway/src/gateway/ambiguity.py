"""Refuses requests that readers could take differently: what may be said once and stands in them twice."""

from collections import Counter
from collections.abc import Iterable
from email.message import Message as Headers

from contracts.strict import AMBIGUOUS, Ambiguous, parse_json
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.middleware import BODY
from gateway.problems import Problem, answer

# Headers that say what is done, in whose name, and how the body is read. Of two a server may take either.
ONCE = ("authorization", "content-type", "idempotency-key", "last-event-id")
# Query parameters that take several values.
LISTS = frozenset(("status",))


class Unambiguous:
    """Answers 400 to a request whose headers, query or body say one thing twice, at any depth. Behind BodyLimit."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body: bytes = scope["state"][BODY]
        if (twice := await _said_twice(scope, body)) is not None:
            detail = f"Nothing was done: {twice}. Send the request again and say it once."
            return await answer(Request(scope), Problem(400, AMBIGUOUS, detail))(scope, receive, send)
        await self._app(scope, receive, send)


async def _said_twice(scope: Scope, body: bytes) -> str | None:
    request = Request(scope)
    if (header := _repeated(name for name in request.headers if name in ONCE)) is not None:
        return f"the header {header} is there twice"
    query = _repeated(name for name, _ in request.query_params.multi_items() if name not in LISTS)
    if query is not None:
        return f"the query parameter {_shown(query)} is there twice"
    kind = content_type(request)
    if body and is_json(kind):
        try:
            parse_json(body)
        except Ambiguous as error:
            return str(error)
        except ValueError:
            return None  # no JSON at all: whoever reads it says so
    if (field := _repeated(await _fields(scope, kind, body))) is not None:
        return f"the field {_shown(field)} is there twice"
    return None


def content_type(request: Request) -> str:
    """The body's media type in lower case, empty for none."""
    if "content-type" not in request.headers:
        return ""
    headers = Headers()
    headers["content-type"] = request.headers["content-type"]
    return headers.get_content_type()


def is_json(media_type: str) -> bool:
    """Whether a body of this type is read as JSON."""
    main, _, sub = media_type.partition("/")
    return main == "application" and (sub == "json" or sub.endswith("+json"))


async def _fields(scope: Scope, kind: str, body: bytes) -> list[str]:
    """The names of a form's fields; none of what is no form, or cannot be read as one."""
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return []

    async def once() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    try:
        async with Request(scope, once).form() as form:
            return [name for name, _ in form.multi_items()]
    except (MultiPartException, HTTPException, ValueError):
        return []


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)


def _shown(name: str) -> str:
    return ascii(name[:80])
