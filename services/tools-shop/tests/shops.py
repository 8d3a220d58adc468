"""A shop that a test has opened, and how it turns calls into quotes and executions."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from contracts.facts import CallDecided, RunStarted
from contracts.parts import CallQuote, CallResult, Customer, Guard, Limits, Person, Ticket, ToolCall, Verdict
from contracts.subjects import RunKey
from contracts.testing import PATIENCE
from psycopg.rows import dict_row
from tools_shop import calls
from tools_shop.authority import Record
from tools_shop.caller import Caller
from tools_shop.toolset import Toolset
from tools_shop.turn import Changed, Ended, Executed, Order, Turn
from tools_shop.turns import Turns

TENANTS = Path(__file__).parents[3] / "deploy" / "tenants"
OPERATOR = Person(subject="alex", issuer="https://issuer.test", role="operator")


def started_for(email: str, reference: str = "TCK-1") -> RunStarted:
    return RunStarted(
        ticket=Ticket(reference=reference, customer=Customer(email=email), subject="Help", body="Please help."),
        profile="support",
        requested_by=OPERATOR,
        limits=Limits(max_steps=12, max_cost_micro_usd=500_000),
        model="a-model",
        prompt_version="support/1",
        policy_pack="acme",
        toolset="shop",
    )


@dataclass
class Shop:
    """One tenant's shop. `decisions` are what the log would say of them, `over` whether the run has ended."""

    tenant: str
    owner: psycopg.Connection[Any]
    turns: Turns
    toolset: Toolset
    email: str = "tom.whitfield@mail.example"
    decisions: list[tuple[CallDecided, datetime]] = field(default_factory=list)
    over: bool = False

    def turn(
        self,
        *asked: tuple[str, dict[str, Any]],
        run: str = "TCK-1-1",
        turn: int = 1,
        proposal_id: str = "",
        ids: Sequence[str] = (),
    ) -> Turn:
        """Calls c0, c1 … (or as `ids` names them) of the customer whose address is `email`."""
        names = ids or [f"c{n}" for n in range(len(asked))]
        proposed = [
            ToolCall.model_construct(call_id=name, tool=tool, arguments=a)
            for name, (tool, a) in zip(names, asked, strict=True)
        ]
        started = started_for(self.email, run.rpartition("-")[0])
        caller = Caller.of(RunKey(self.tenant, run), started, turn)
        proposal = proposal_id or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.tenant}/{run}/{turn}"))
        return Turn(caller, self.toolset, calls.read(self.toolset, proposed), proposal)

    async def quote(self, turn: Turn) -> list[CallQuote]:
        return await self.turns.quote(turn)

    async def execute(
        self,
        turn: Turn,
        quotes: list[CallQuote],
        *,
        declined: str = "",
        expired: bool = False,
        guards: list[Guard] | None = None,
        ended: Callable[[], Awaitable[bool]] | None = None,
    ) -> Executed | Changed | Ended:
        """Runs what was quoted, as a policy that forwards everything would have it; what was `declined` by a person, or
        because nobody decided in time (`expired`)."""
        verdicts = {
            q.call_id: Verdict(
                call_id=q.call_id, verdict="declined" if q.call_id == declined else "run", digest=q.digest, rule="test"
            )
            for q in quotes
        }

        notes = {declined: ""} if declined and not expired else {}

        async def record() -> Record:
            return Record(started_for(self.email), self.decisions)

        async def over() -> bool:
            return self.over

        order = Order(1, verdicts, {quote.call_id: quote for quote in quotes}, guards or [], notes)
        return await self.turns.execute(turn, order, record, ended or over)

    @asynccontextmanager
    async def about_to_commit(self, turn: Turn) -> AsyncIterator[asyncio.Task[Executed | Changed | Ended]]:
        """An execution that has done all but the commit, which comes when the block ends."""
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def over() -> bool:
            reached.set()
            await go_on.wait()
            return False

        execution = asyncio.create_task(self.execute(turn, await self.quote(turn), ended=over))
        try:
            await asyncio.wait_for(reached.wait(), PATIENCE)
            yield execution
        finally:
            go_on.set()
            await execution

    async def waits(self, task: asyncio.Task[Any]) -> None:
        """Returns once somebody waits for a lock; until then, and then, the task is not done."""
        while not self.rows("select 1 from pg_locks where not granted"):
            await asyncio.wait([task], timeout=0.02)
            assert not task.done(), task
        assert not task.done(), task

    async def run(self, *asked: tuple[str, dict[str, Any]], **where: Any) -> list[CallResult]:
        """Quotes and executes a turn; its results."""
        turn = self.turn(*asked, **where)
        executed = await self.execute(turn, await self.quote(turn))
        assert isinstance(executed, Executed), executed
        return list(executed.results)

    def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """As the owner, in a transaction of its own that sees this tenant."""
        with self.owner.transaction():
            self.owner.execute("select set_config('turngate.tenant', %s, true)", [self.tenant])
            cursor = self.owner.cursor(row_factory=dict_row).execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def refunds(self) -> list[int]:
        found = self.rows("select amount_minor from shop.refunds where run is not null order by refunded_at, n")
        return [row["amount_minor"] for row in found]
