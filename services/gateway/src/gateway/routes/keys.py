"""What many routes take: the Idempotency-Key of a request, the size of a page."""

import secrets
from typing import Annotated

from fastapi import Depends, Header, Query

from gateway import paging


async def idempotency_key(
    idempotency_key: Annotated[
        str | None, Header(max_length=200, description="The same request sent again with the same key is done once.")
    ] = None,
) -> str:
    return idempotency_key or secrets.token_hex(16)


Key = Annotated[str, Depends(idempotency_key)]
Limit = Annotated[int, Query(ge=1, le=paging.LARGEST)]
