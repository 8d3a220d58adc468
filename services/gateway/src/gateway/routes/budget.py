"""What the tenant's model calls may cost a day: show it, set it."""

from typing import Annotated, Any

from contracts.asks import SetBudget
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from gateway.access import may, token_of
from gateway.ports import Ports
from gateway.routes.keys import Key

router = APIRouter(prefix="/v1/budget", tags=["budget"])


class Budget(BaseModel):
    """In micro-dollars a day (UTC); null: no limit."""

    day_micro_usd: int | None


@router.get("", response_model=Budget)
async def show_budget(ports: Ports, asker: Annotated[Principal, Depends(may("spend"))]) -> Budget:
    return Budget(day_micro_usd=await ports.tenancy.budget(asker.tenant))


@router.put("")
async def set_budget(
    ports: Ports, asker: Annotated[Principal, Depends(may("stop"))], request: Request, wanted: SetBudget, key: Key
) -> dict[str, Any]:
    """The recorded fact. From then on no model call begins that could take the day's cost (UTC) above it."""
    return await ports.tenancy.set_budget(asker, token_of(request), wanted, key)
