"""What the tenant's model calls cost, a day."""

from datetime import date
from typing import Annotated

from contracts.asks import MOST_DAYS, SPEND, AskSpend
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, SecretStr

from gateway.access import may, token_of
from gateway.asking import ask
from gateway.ports import Ports

router = APIRouter(prefix="/v1/spend", tags=["budget"])


class Day(BaseModel):
    """A day (UTC) with model calls, in micro-dollars.

    What is reserved by calls under way, spent, and uncertain since nobody knows what came of a call, counts towards the
    budget. Saved is what recorded answers that were used again would have cost.
    """

    tenant: str
    day: date
    reserved_micro_usd: int
    spent_micro_usd: int
    saved_micro_usd: int
    uncertain_micro_usd: int


class Spend(BaseModel):
    """The oldest day first."""

    days: list[Day]


@router.get("", response_model=Spend)
async def show_spend(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("spend"))],
    request: Request,
    days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="How many days, today among them.")] = 30,
) -> Spend:
    """A day without model calls is not among them."""
    asked = AskSpend(token=SecretStr(token_of(request)), days=days)
    return Spend.model_validate(await ask(ports.bus, SPEND, asked))
