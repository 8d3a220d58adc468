"""What waits for a person, the longest wait first."""

from typing import Annotated

from contracts.identity import Principal
from fastapi import APIRouter, Depends

from gateway import paging, shapes
from gateway.access import may
from gateway.ports import Ports
from gateway.routes.keys import Cursor, Limit
from gateway.shown import sight
from gateway.views import total, waits_since

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


@router.get("", response_model=shapes.Approvals)
async def list_approvals(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("read"))],
    cursor: Cursor = None,
    limit: Limit = paging.LARGEST,
) -> shapes.Approvals:
    await ports.lists_are_current()
    place = paging.read(cursor)
    waiting = (await ports.overviews.fresh(asker.tenant)).overview.held
    behind = [view for view in waiting if place is None or waits_since(view) > place]
    page = await ports.desk.waiting(asker.tenant, [view.run for view in behind[:limit]])
    others = await ports.desk.histories(asker.tenant, page)
    seen = await (await sight(ports, asker)).runs(page)
    now = ports.circumstances(asker.tenant)
    return shapes.Approvals(
        approvals=[shapes.approval(view, asker, others[view.run], now) for view in seen],
        total=len(waiting),
        at_stake=list(total(moved for view in waiting for moved in view.at_stake)),
        next=paging.write(waits_since(behind[limit - 1])) if len(behind) > limit else None,
    )
