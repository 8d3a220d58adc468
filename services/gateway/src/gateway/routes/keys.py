"""What many routes take: the Idempotency-Key of a request, the moment when it came, the size of a page."""

import secrets
from typing import Annotated

from fastapi import Depends, Header, Query, Request

from gateway import paging
from gateway.ports import Gateway


async def idempotency_key(
    idempotency_key: Annotated[
        str | None, Header(max_length=200, description="The same request sent again with the same key is done once.")
    ] = None,
) -> str:
    return idempotency_key or secrets.token_hex(16)


async def seen(request: Request) -> int:
    """The log's last sequence that was known here when the request came. Named first by who takes it."""
    gateway: Gateway = request.app.state.gateway
    return max(gateway.feed.last, gateway.runs.shown)


Key = Annotated[str, Depends(idempotency_key)]
Limit = Annotated[int, Query(ge=1, le=paging.LARGEST)]
Cursor = Annotated[str | None, Query(max_length=paging.LONGEST_CURSOR)]
Seen = Annotated[int, Depends(seen)]
