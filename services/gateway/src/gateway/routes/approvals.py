"""What waits for a person, the longest wait first."""

from typing import Annotated

from contracts.identity import Principal
from fastapi import APIRouter, Depends

from gateway import shapes
from gateway.access import may
from gateway.desk import Desk
from gateway.ports import Ports
from gateway.shown import sight
from gateway.views import RunView

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


@router.get("", response_model=shapes.Approvals)
async def list_approvals(ports: Ports, asker: Annotated[Principal, Depends(may("read"))]) -> shapes.Approvals:
    await ports.lists_are_current()
    waiting = [view for view in await ports.desk.held(asker.tenant) if view.holds]
    others = await earlier(ports.desk, asker.tenant, waiting)
    seen = await (await sight(ports, asker)).runs(waiting)
    return shapes.Approvals(approvals=[shapes.approval(view, asker, others[view.run]) for view in seen])


async def earlier(desk: Desk, tenant: str, views: list[RunView]) -> dict[str, list[RunView]]:
    """By run: its customer's other runs, the newest first."""
    known = await desk.of_customers(tenant, {view.customer.email for view in views}) if views else {}
    return {view.run: [one for one in known[view.customer.email] if one.run != view.run] for view in views}
