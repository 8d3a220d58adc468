"""What waits for a person, the longest wait first."""

from typing import Annotated

from contracts.identity import Principal
from fastapi import APIRouter, Depends

from gateway import shapes
from gateway.access import may
from gateway.ports import Gateway, Ports
from gateway.views import RunView

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


@router.get("", response_model=shapes.Approvals)
async def list_approvals(ports: Ports, asker: Annotated[Principal, Depends(may("read"))]) -> shapes.Approvals:
    await ports.lists_are_current()
    waiting = [view for view in await ports.desk.held(asker.tenant) if view.holds]
    return shapes.Approvals(approvals=[shapes.approval(view, asker, await earlier(ports, view)) for view in waiting])


async def earlier(ports: Gateway, view: RunView) -> list[RunView]:
    """The customer's other runs, the newest first."""
    return [run for run in await ports.desk.of_customer(view.tenant, view.customer.email) if run.run != view.run]
