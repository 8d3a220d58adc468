"""The policy pack in force, and putting another in its place."""

from typing import Annotated, Any

from contracts.asks import Promote
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Request

from gateway import shapes
from gateway.access import may, token_of
from gateway.ports import Ports
from gateway.routes.keys import Key

router = APIRouter(prefix="/v1/policy", tags=["policy"])


@router.get("", response_model=shapes.Policy)
async def show_policy(ports: Ports, asker: Annotated[Principal, Depends(may("read"))]) -> shapes.Policy:
    """`pack`, `by` and `at` are null while the pack that the tenant was set up with is in force."""
    text, view = await ports.tenancy.policy(asker.tenant)
    return shapes.policy(text, view.policy)


@router.post("")
async def promote_policy(
    ports: Ports, asker: Annotated[Principal, Depends(may("policy"))], request: Request, wanted: Promote, key: Key
) -> dict[str, Any]:
    """The recorded fact, or a 422 with the line that policy cannot read: then the pack in force stays in force."""
    return await ports.tenancy.promote(asker, token_of(request), wanted, key)
