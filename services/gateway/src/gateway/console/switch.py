"""The stop switch as a page: what is stopped, stop more, lift a stop."""

from typing import Annotated

from contracts.asks import LiftStop, SetStop
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from gateway.access import may, token_of
from gateway.console import pages, words
from gateway.console.forms import understood
from gateway.ports import Ports
from gateway.problems import Problem
from gateway.routes.keys import Key

router = APIRouter(prefix="/stops", include_in_schema=False)
Stopper = Annotated[Principal, Depends(may("stop"))]
PAGE = "/stops"


@router.get("")
async def page(ports: Ports, asker: Stopper, request: Request) -> Response:
    await ports.tenancy.stops(asker.tenant)  # who has just set one here is shown it
    shell = await pages.around(ports, asker, "stops", request)
    return pages.html("stops.html", **shell, tools=await ports.tenancy.stoppable(asker.tenant))


@router.post("")
async def set_stop(
    ports: Ports,
    asker: Stopper,
    request: Request,
    key: Key,
    reason: Annotated[str, Form(min_length=1, max_length=2000)],
    tool: Annotated[str, Form(max_length=64)] = "",
    above: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    above_minor = _minor(above, ports.tenants.of(asker.tenant).currency)
    wanted = understood(SetStop, {"tool": tool or None, "above_minor": above_minor, "reason": reason})
    await ports.tenancy.set_stop(asker, token_of(request), wanted, key)
    return RedirectResponse(PAGE, 303)


@router.post("/{stop_id}/lift")
async def lift_stop(
    ports: Ports,
    asker: Stopper,
    request: Request,
    stop_id: str,
    key: Key,
    reason: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    await ports.tenancy.lift_stop(asker, token_of(request), stop_id, understood(LiftStop, {"reason": reason}), key)
    return RedirectResponse(PAGE, 303)


def _minor(typed: str, currency: str) -> int | None:
    if not typed.strip():
        return None
    if not currency:
        why = "Nothing was stopped. This shop's tenant.yaml names no currency to read the amount in: leave it empty."
        raise Problem(422, "An amount of what?", why)
    amount = words.minor(typed, currency)
    if amount is None:
        such = words.an_amount(currency)
        raise Problem(422, "Not an amount", f"Nothing was stopped. Write the amount as in {such}, or leave it empty.")
    return amount
