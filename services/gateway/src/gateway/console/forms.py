"""What the console's forms do. Each works without scripts; a script that sends one gets JSON instead of a redirect."""

from typing import Annotated, Any, TypeVar

from contracts.asks import Decide, Requote
from contracts.identity import Principal
from contracts.validation import explain
from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from gateway.access import may, token_of
from gateway.console import cards, edits, render
from gateway.ports import Gateway, Ports
from gateway.problems import Problem
from gateway.routes.keys import Key, Seen
from gateway.routes.tickets import find
from gateway.runs import StartRun

router = APIRouter(include_in_schema=False)
Text = Annotated[str, Form(min_length=1, max_length=16_000)]
Reason = Annotated[str, Form(max_length=2000)]
M = TypeVar("M", bound=BaseModel)


@router.post("/tickets/{reference}/runs")
async def start(
    seen: Seen,
    ports: Ports,
    asker: Annotated[Principal, Depends(may("run"))],
    request: Request,
    reference: str,
    key: Key,
) -> Response:
    ticket = await find(ports, asker, reference, current=False)
    started = await ports.runs.start(ticket, ports.tenants.of(asker.tenant), asker, StartRun(), key, seen)
    return _done(request, f"/tickets/{ticket.ticket}?run={started.run}", go=True)


@router.post("/runs/{run}/decisions")
async def decide(
    ports: Ports, asker: Annotated[Principal, Depends(may("decide"))], request: Request, run: str
) -> Response:
    form = await _fields(request)
    typed = {name: form.pop(name) for name in list(form) if name.startswith(edits.PREFIX)}
    wanted = understood(Decide, form)
    if typed and wanted.decision == "approve":
        _, call = await ports.runs.held(asker.tenant, run, wanted.turn, wanted.call_id)
        wanted = understood(Decide, dict(wanted) | {"edited": edits.arguments(call.quote, typed)})
        if wanted.edited == call.quote.arguments:
            raise Problem(422, "Nothing is changed", "Nothing was approved. Change something, or approve it as it is.")
    if wanted.decision == "decline" and not wanted.note.strip():
        raise Problem(
            422, "A reason is missing", "Nothing was declined. Say why: the agent reads it and answers the customer."
        )
    await ports.runs.decide(run, asker, token_of(request), wanted)
    return _done(request, await _ticket_of(ports, asker, run))


@router.post("/runs/{run}/quotes")
async def quote(
    ports: Ports, asker: Annotated[Principal, Depends(may("decide"))], request: Request, run: str
) -> Response:
    """For the script of the form with changes: what they come to, as the card shows it, and what its button says."""
    form = await _fields(request)
    typed = {name: form[name] for name in form if name.startswith(edits.PREFIX)}
    shown = understood(Requote, {name: form.get(name) for name in ("turn", "call_id")} | {"edited": {}})
    _, call = await ports.runs.held(asker.tenant, run, shown.turn, shown.call_id)
    wanted = understood(Requote, dict(shown) | {"edited": edits.arguments(call.quote, typed)})
    now = ports.circumstances(asker.tenant)
    edited = await ports.runs.quote(run, asker, token_of(request), wanted, now)
    html = render.part("card.html", "edited", edited, call)
    return JSONResponse({"html": html, "label": cards.label(edited), "can": edited.refused is None})


@router.post("/runs/{run}/messages")
async def say(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("speak", "take_over"))],
    request: Request,
    run: str,
    text: Text,
    key: Key,
) -> Response:
    await ports.runs.say(run, asker, text, key)
    return _done(request, await _ticket_of(ports, asker, run))


@router.post("/runs/{run}/cancel")
async def cancel(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("cancel"))],
    request: Request,
    run: str,
    key: Key,
    reason: Reason = "",
) -> Response:
    await ports.runs.cancel(run, asker, reason, key)
    return _done(request, await _ticket_of(ports, asker, run))


@router.post("/runs/{run}/take-over")
async def take_over(
    ports: Ports, asker: Annotated[Principal, Depends(may("take_over"))], request: Request, run: str, key: Key
) -> Response:
    await ports.runs.take_over(run, asker, "", key)
    return _done(request, await _ticket_of(ports, asker, run), go=True)


async def _fields(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def understood(model: type[M], form: dict[str, Any]) -> M:
    """The request that a form is. Raises a 422 that says what is wrong with it."""
    try:
        return model.model_validate(form, strict=False)  # a form says its numbers in words
    except ValidationError as error:
        why = f"Nothing was done. {explain(error)}. Put it right, or reload the page and try again."
        raise Problem(422, "Not understood", why) from error


async def _ticket_of(ports: Gateway, asker: Principal, run: str) -> str:
    view = await ports.runs.read(asker.tenant, run)
    return f"/tickets/{view.ticket}?run={run}"


def _done(request: Request, page: str, *, go: bool = False) -> Response:
    """For a script: whether it was done and, if `go`, the page to go to (else the stream shows it). Else: that page."""
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"go": page if go else None})
    return RedirectResponse(page, 303)
