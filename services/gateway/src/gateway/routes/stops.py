"""The stop switch: which writes are stopped, stop more, lift a stop."""

from typing import Annotated, Any

from contracts.asks import LiftStop, SetStop
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Request

from gateway import shapes
from gateway.access import may, token_of
from gateway.ports import Ports
from gateway.routes.keys import Key

router = APIRouter(prefix="/v1/stops", tags=["stops"])
Stopper = Annotated[Principal, Depends(may("stop"))]


@router.get("", response_model=shapes.Stops)
async def list_stops(ports: Ports, asker: Annotated[Principal, Depends(may("read"))]) -> shapes.Stops:
    tenant = ports.tenants.of(asker.tenant)
    return shapes.stops(await ports.tenancy.stops(asker.tenant), tenant.currency, tenant.locale)


@router.post("")
async def set_stop(ports: Ports, asker: Stopper, request: Request, wanted: SetStop, key: Key) -> dict[str, Any]:
    """The recorded fact. It takes effect at the tools service within a second, whatever was approved before."""
    return await ports.tenancy.set_stop(asker, token_of(request), wanted, key)


@router.post("/{stop_id}/lift")
async def lift_stop(
    ports: Ports, asker: Stopper, request: Request, stop_id: str, key: Key, wanted: LiftStop | None = None
) -> dict[str, Any]:
    """The recorded fact."""
    return await ports.tenancy.lift_stop(asker, token_of(request), stop_id, wanted or LiftStop(), key)
