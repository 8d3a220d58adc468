"""What a tenant's model calls cost, a day, for people who may see it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

from contracts.answers import No
from contracts.asks import AskSpend
from contracts.identity import InvalidToken, Verifier
from contracts.parts import Json
from contracts.validation import explain
from pydantic import ValidationError


@dataclass(frozen=True, slots=True)
class Day:
    """A tenant's day (UTC) in micro-dollars.

    reserved: for calls that are being made now. saved: what recorded answers that were used again would have cost, each
    once. uncertain: reserved for calls that were made, and what came of them is not known: who made them died,
    or was not answered. What is reserved, spent and uncertain counts towards a budget.
    """

    tenant: str
    day: date
    reserved_micro_usd: int
    spent_micro_usd: int
    saved_micro_usd: int
    uncertain_micro_usd: int


Days = Callable[[str, date], Awaitable[list[Day]]]


class Spending:
    """`days` gives a tenant's days since a date."""

    def __init__(self, days: Days, verifier: Verifier) -> None:
        self._days = days
        self._verifier = verifier

    async def asked(self, request: Json) -> Json:
        """{"status": 200, "days": the days with calls, the oldest first}, or why not. The tenant is the token's."""
        try:
            ask = AskSpend.model_validate(request)
            token = ask.token.get_secret_value()
            principal = await asyncio.to_thread(self._verifier.verify, token)
        except ValidationError as error:
            return No(422, "Not a question", explain(error)).on_the_wire()
        except InvalidToken as error:
            return No(403, "Not signed in", str(error)).on_the_wire()
        if not principal.may("spend"):
            why = f"The role {principal.role} may not see what model calls cost. Ask an operator."
            return No(403, "Not yours to see", why).on_the_wire()
        since = datetime.now(UTC).date() - timedelta(days=ask.days - 1)
        days = await self._days(principal.tenant, since)
        return {"status": 200, "days": [{**asdict(day), "day": day.day.isoformat()} for day in days]}
