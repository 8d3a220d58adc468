"""The HTTP application: routes, refusals, and what surrounds them."""

from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files

import psycopg
import structlog
from contracts import tracing, validation
from contracts.errors import Outage
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from gateway import problems
from gateway.ambiguity import Unambiguous
from gateway.console import auditing, door, forms, pages, streams, switch
from gateway.middleware import Around, BodyLimit
from gateway.ports import Gateway
from gateway.problems import Problem
from gateway.public_url import PublicUrl
from gateway.routes import approvals, audit, budget, events, health, policy, runs, spend, stops, system, tickets

logger = structlog.get_logger()
PLAIN = health.router
ROUTERS = (
    tickets.router,
    runs.router,
    approvals.router,
    events.router,
    stops.router,
    policy.router,
    budget.router,
    spend.router,
    audit.router,
    system.router,
)
UNTRACED = "/healthz,/readyz,/metrics,/static"
CONSOLE = (door.router, pages.router, forms.router, streams.router, switch.router, auditing.router)


class ProblemDocument(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


def application(gateway: Gateway) -> FastAPI:
    app = FastAPI(
        title="Turngate",
        version=version("turngate-gateway"),
        summary="Tickets, runs, approvals and the facts behind them.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.gateway = gateway
    problem = {"schema": ProblemDocument.model_json_schema()}
    refusal = {"description": "Why not, and what to do", "content": {problems.MEDIA_TYPE: problem}}
    too_many = refusal | {
        "description": "Too many calls in a minute, or too many streams",
        "headers": {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}},
    }
    for router in ROUTERS:
        app.include_router(router, responses={"429": too_many, "4XX": refusal, "5XX": refusal})
    app.include_router(PLAIN, responses={"5XX": refusal})
    for router in CONSOLE:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=str(files("gateway.console") / "static")), "static")
    _refusals(app)
    app.add_middleware(Unambiguous)
    app.add_middleware(BodyLimit, most=gateway.settings.max_body_bytes, long=gateway.settings.max_long_body_bytes)
    app.add_middleware(Around)
    app.add_middleware(PublicUrl, url=gateway.settings.public_url)
    if tracing.enabled():
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

        FastAPIInstrumentor.instrument_app(app, excluded_urls=UNTRACED, exclude_spans=["receive", "send"])
    return app


def _refusals(app: FastAPI) -> None:
    def on(kind: type[Exception], problem: Callable[[Exception], Problem]) -> None:
        async def handle(request: Request, error: Exception) -> Response:
            return _answer(request, problem(error))

        app.add_exception_handler(kind, handle)

    on(Problem, lambda error: error if isinstance(error, Problem) else _ours(error))
    on(RequestValidationError, lambda error: Problem(422, "Not understood", _explained(error)))
    on(HTTPException, lambda error: _plain(error) if isinstance(error, HTTPException) else _ours(error))
    on(psycopg.DataError, _not_storable)
    for kind in (Outage, psycopg.OperationalError):
        on(kind, lambda error: _away(error))
    on(Exception, _ours)


def _answer(request: Request, problem: Problem) -> Response:
    """A page for a person who looks at the console, a document for everyone else."""
    accepts = request.headers.get("accept", "*/*")
    # A plain client that takes anything is shown what a browser would be; a page's own fetches want the bare refusal.
    plain = request.method == "GET" and "*/*" in accepts and "sec-fetch-mode" not in request.headers
    wants_page = "text/html" in accepts or plain
    if wants_page and not request.url.path.startswith(("/v1", "/console")):
        return pages.problem_page(request, problem)
    return problems.answer(request, problem)


def _away(error: Exception) -> Problem:
    logger.warning("outage", error=repr(error))
    return problems.outage()


def _not_storable(error: Exception) -> Problem:
    """What the types of the API allow and a column does not take: a NUL in a text."""
    logger.warning("not storable", error=str(error))
    return Problem(
        422, "Not understood", "Nothing was done: a text has a character that cannot be stored (NUL). Leave it out."
    )


def _ours(error: Exception) -> Problem:
    """A bug. What went wrong stays in the log file."""
    logger.error("request failed", exc_info=error)
    return Problem(500, "Our fault", "Something went wrong here. Look whether it was done before you try again.")


def _plain(error: HTTPException) -> Problem:
    if error.status_code == 404:
        return Problem(404, "No such page", "There is nothing at this address. /openapi.json lists what there is.")
    if error.status_code == 405:
        return Problem(405, "Not like this", "This address does not take that method.", dict(error.headers or {}))
    return Problem(error.status_code, "Not done", str(error.detail), dict(error.headers or {}))


def _explained(error: Exception) -> str:
    """Which fields, in words, without what was sent."""
    if not isinstance(error, RequestValidationError):
        return "The request is not as the API's description asks."
    wrong = validation.sentences((_field(one["loc"]), validation.words(one)) for one in error.errors())
    return f"Nothing was done. {wrong}."


def _field(location: tuple[str | int, ...]) -> str:
    """The field's name: of a query or a header without its place in a list of one, of the body its path."""
    source, *names = location
    if source != "body":
        names = [name for name in names if isinstance(name, str)]
    return validation.path(names) or str(source)
