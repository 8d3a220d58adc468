"""Idempotency-Keys: each belongs to one request of one person, whichever call it was."""

import hashlib
import hmac
from dataclasses import dataclass

import psycopg
import structlog
from contracts.canonical import canonical
from contracts.identity import Principal
from contracts.strict import parse_json
from psycopg_pool import AsyncConnectionPool
from starlette.requests import Request

from gateway.ambiguity import content_type, is_json
from gateway.database import Connection, one, work_for
from gateway.domain import KEY_TAKEN
from gateway.middleware import BODY
from gateway.problems import Problem

logger = structlog.get_logger()
HEADER = "idempotency-key"
KEPT_DAYS = 7
WAIT_SECONDS = 2.0
_CLAIM = """
insert into desk.request_keys (tenant, key, request) values (%s, %s, %s)
on conflict (tenant, key) do update
set uses = request_keys.uses + (request_keys.request = excluded.request)::integer
returning request, uses
"""
_PRUNE = "delete from desk.request_keys where claimed_at < now() - make_interval(days => %s)"
_RELEASE = "delete from desk.request_keys where key = %s and uses = 1"


@dataclass(frozen=True, slots=True)
class Claim:
    """A key that a request was the first to use. Released where the request changed nothing."""

    keys: "RequestKeys"
    tenant: str
    key: str

    async def release(self) -> None:
        await self.keys.release(self)


class RequestKeys:
    """Each call has its own way of doing a request once; this only sees that a key is not used for two."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool

    async def claim(self, request: Request, caller: Principal) -> Claim | None:
        """The claim where the request brings a key that is new. Raises a 422 for a key that belongs to another request.

        Where the database is away the request goes on: a stop has to work then, and is still set once.
        """
        sent = request.headers.get(HEADER)
        if not sent:
            return None
        claim = Claim(
            self, caller.tenant, hashlib.sha256(f"{caller.issuer} {caller.subject} {sent}".encode()).hexdigest()
        )
        digest = _digest(request, sent)
        try:
            async with self._pool.connection(WAIT_SECONDS) as connection, connection.transaction():
                await work_for(connection, caller.tenant)
                await connection.execute(_PRUNE, [KEPT_DAYS])
                row = await one(await connection.execute(_CLAIM, [claim.tenant, claim.key, digest]))
        except psycopg.OperationalError as error:
            logger.warning("key not looked up", error=repr(error))
            return None
        if row["request"] != digest:
            raise Problem(KEY_TAKEN.status, KEY_TAKEN.title, KEY_TAKEN.detail)
        return claim if row["uses"] == 1 else None

    async def release(self, claim: Claim) -> None:
        """The key is free again, unless the same request came with it meanwhile."""
        try:
            async with self._pool.connection(WAIT_SECONDS) as connection, connection.transaction():
                await work_for(connection, claim.tenant)
                await connection.execute(_RELEASE, [claim.key])
        except psycopg.OperationalError as error:
            logger.warning("key not released", error=repr(error))


def _digest(request: Request, key: str) -> str:
    said = f"{request.method} {request.url.path}\n".encode() + _meaning(request)
    return hmac.new(key.encode(), said, hashlib.sha256).hexdigest()


def _meaning(request: Request) -> bytes:
    """The body, whatever the order and spelling of JSON; none is the empty object."""
    body: bytes = getattr(request.state, BODY)
    if not body:
        return b"{}"
    if is_json(content_type(request)):
        try:
            return canonical(parse_json(body))
        except ValueError:
            pass
    return body
