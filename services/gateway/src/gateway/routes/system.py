"""What this system is made of, for people and programs that have to know whether it is real."""

from typing import Annotated, Literal

from contracts.identity import Principal
from contracts.unreal import ModelIs, ShopIs
from fastapi import APIRouter, Depends
from pydantic import BaseModel

from gateway.access import may
from gateway.ports import Ports

router = APIRouter(prefix="/v1/system", tags=["system"])


class System(BaseModel):
    """`unknown` is what whoever composed the system has not said (TURNGATE_MODEL_IS, TURNGATE_SHOP_IS). `notice` is
    what the console says of it on every page; null where both are real."""

    model: ModelIs | Literal["unknown"]
    shop: ShopIs | Literal["unknown"]
    notice: str | None


@router.get("", response_model=System)
async def show_system(ports: Ports, _: Annotated[Principal, Depends(may("read"))]) -> System:
    settings = ports.settings
    notice = settings.unreal
    return System(
        model=settings.model_is or "unknown",
        shop=settings.shop_is or "unknown",
        notice=f"{notice.title} {notice.detail}" if notice else None,
    )
