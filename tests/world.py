"""A running system as a test uses it: tickets and orders of its own, the model's words, waits for facts, decisions."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any, TypeVar

import httpx
import psycopg
from contracts.events import Event, from_document
from contracts.facts import Fact, TurnExecuted, TurnHeld
from contracts.parts import CallResult
from psycopg.rows import dict_row
from standin.director import Director
from turngate.api import Api
from turngate.running import RunningSystem

F = TypeVar("F", bound=Fact)
T = TypeVar("T")
OPERATORS = {"acme": "alex", "globex": "gwen"}
CURRENCIES = {"acme": "GBP", "globex": "USD"}
DONE = {"text": "That is all. Kind regards"}


# What the model says


def refund(order: str, pence: int, **more: Any) -> dict[str, Any]:
    """A call that asks for money back."""
    arguments = {"order_reference": order, "amount_pence": pence, "reason": "Sent back unworn", **more}
    return {"name": "issue_refund", "input": arguments}


def look_up(order: str) -> dict[str, Any]:
    """A call that reads an order."""
    return {"name": "get_order", "input": {"order_reference": order}}


def turn(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One answer of the model's, with these calls."""
    return {"text": "One moment.", "tool_calls": list(calls), **more}


@dataclass(frozen=True)
class Model:
    """The stand-in of a running system, directed."""

    url: str

    def says(self, key: str, *answers: Any, repeat: bool = False) -> None:
        """Fixes the answers of every conversation in which `key` occurs."""
        self._direct(lambda director: director.script(key, list(answers), repeat=repeat))

    def asked(self, key: str, *, at_least: int = 0) -> int:
        """How many answers were asked for, once it is `at_least`."""
        return sum(self._direct(lambda director: director.asked(key, at_least=at_least)).values())

    def was_sent(self, key: str) -> list[dict[str, Any]]:
        """The requests of the conversations in which `key` occurs, oldest first."""
        return self._direct(lambda director: director.bodies(key))

    def open(self, gate: str) -> None:
        self._direct(lambda director: director.open(gate))

    def _direct(self, what: Callable[[Director], Any]) -> Any:
        async def direct() -> Any:
            async with Director(self.url) as director:
                return await what(director)

        return asyncio.run(direct())


def model_of(system: RunningSystem) -> Model:
    return Model(str(system.state.processes["standin"]["health"]).removesuffix("/healthz"))


# A ticket of the test's own


@dataclass(frozen=True)
class Run:
    """One run, as the people of its tenant see it."""

    system: RunningSystem
    run: str
    tenant: str = "acme"
    api: Api = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "api", self.system.api(OPERATORS[self.tenant], self.tenant))

    @property
    def path(self) -> str:
        return f"/v1/runs/{self.run}"

    def view(self) -> dict[str, Any]:
        view: dict[str, Any] = self.api.get(self.path)
        return view

    def events(self) -> list[Event]:
        return [from_document(document) for document in self.api.get(f"{self.path}/events")["events"]]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events()]

    def facts(self, kind: type[F]) -> list[F]:
        return [event.fact for event in self.events() if isinstance(event.fact, kind)]

    def until(self, kind: type[F], *, after: int = 0) -> F:
        """The first fact of a kind behind that sequence, as soon as it is there."""
        fact = self.event(kind, after=after).fact
        assert isinstance(fact, kind)
        return fact

    def event(self, *kinds: type[Fact], after: int = 0) -> Event:
        """The first event of one of these kinds behind that sequence, as soon as it is there."""
        for event in self.api.events(f"{self.path}/events", after):
            if isinstance(event.fact, kinds):
                return event
        wanted = " or ".join(kind.kind for kind in kinds)
        raise AssertionError(f"{self.run} ended without {wanted}: {self.kinds()}")

    def ended(self) -> dict[str, Any]:
        """The run's view once it has ended."""
        for _ in self.api.events(f"{self.path}/events"):
            pass
        return self.view()

    def result(self, call_id: str) -> CallResult:
        found = [r for executed in self.facts(TurnExecuted) for r in executed.results if r.call_id == call_id]
        assert len(found) == 1, f"{call_id} has {len(found)} results"
        return found[0]

    def decide(self, who: str, hold: dict[str, Any], decision: str = "approve", note: str = "") -> httpx.Response:
        """What the gateway answers to a decision on one of `holds`."""
        return self.decision(who, hold, decision, note)()

    def decision(
        self, who: str, hold: dict[str, Any], decision: str = "approve", note: str = ""
    ) -> Callable[[], httpx.Response]:
        """The same, but for the last click."""
        program = client(self.system, who, self.tenant)
        body = {name: hold[name] for name in ("turn", "call_id", "digest")} | {"decision": decision, "note": note}
        return lambda: program.post(f"{self.path}/decisions", json=body)

    def post(self, who: str, what: str, body: Any = None) -> httpx.Response:
        return post(self.system, who, f"{self.path}/{what}", body, self.tenant)

    def holds(self, *, after: int = 0) -> list[dict[str, Any]]:
        """What waits for people, once anything does, as decisions name it and in the order of the turn's calls."""
        held = self.until(TurnHeld, after=after)
        return [{"turn": held.turn, **hold.model_dump()} for hold in held.holds]


@dataclass(frozen=True)
class Case:
    """A customer nobody else knows, their ticket, and their paid orders."""

    system: RunningSystem
    tenant: str
    ticket: str
    customer: str
    orders: tuple[str, ...]

    def says(self, *answers: Any, repeat: bool = False) -> None:
        """What the model answers in this ticket's runs, step by step."""
        model_of(self.system).says(self.ticket, *answers, repeat=repeat)

    def start(self, who: str | None = None, **asked: Any) -> Run:
        """The ticket's next run, as its operator (or `who`) starts it."""
        who = who or OPERATORS[self.tenant]
        answer = post(self.system, who, f"/v1/tickets/{self.ticket}/runs", asked, self.tenant)
        assert answer.status_code == 202, answer.text
        return Run(self.system, answer.json()["run"], self.tenant)

    def status(self) -> str:
        return str(self.system.api(OPERATORS[self.tenant]).get(f"/v1/tickets/{self.ticket}")["status"])

    def refunds(self) -> list[dict[str, Any]]:
        """What was paid to this customer, in the order of the payments."""
        return rows(
            self.system,
            "select id, order_reference, amount_minor, run, turn, call_id, released_by, again_after from shop.refunds"
            " where tenant = %s and customer_id = %s order by refunded_at, n, order_reference",
            self.tenant,
            self.customer,
        )


def open_case(
    system: RunningSystem, *paid: int, tenant: str = "acme", body: str = "Please see to it.", channel: str = "ticket"
) -> Case:
    """A new ticket of a new customer who has one delivered order for each of these amounts, in minor units.

    `{order}` in the body stands for the first one's reference.
    """
    mark = secrets.randbelow(9 * 10**8) + 10**8
    customer, email = f"C-{mark}", f"c-{mark}@mail.example"
    orders = tuple(f"ORD-{mark}{n}" for n in range(1, len(paid) + 1))
    with psycopg.connect(system.state.postgres_url) as connection:
        connection.execute("insert into shop.customers values (%s, %s, %s, %s)", [tenant, customer, "Kim Lund", email])
        for order, amount in zip(orders, paid, strict=True):
            connection.execute(
                "insert into shop.orders (tenant, reference, customer_id, currency, status, placed_at)"
                " values (%s, %s, %s, %s, 'delivered', now() - interval '5 days')",
                [tenant, order, customer, CURRENCIES[tenant]],
            )
            connection.execute(
                "insert into shop.items values (%s, %s, 1, 'BAG-1', 'Duffel bag', 1, %s)", [tenant, order, amount]
            )
            connection.execute(
                "insert into shop.payments values (%s, %s, %s, %s, 'Visa ending 0001', 'captured', now())",
                [tenant, f"PAY-{order}", order, amount],
            )
    ticket = system.api(OPERATORS[tenant], tenant).post(
        "/v1/tickets",
        {
            "customer_email": email,
            "customer_name": "Kim Lund",
            "customer_id": customer,
            "subject": "My order",
            "body": body.replace("{order}", orders[0] if orders else ""),
            "channel": channel,
        },
    )
    return Case(system, tenant, ticket["ticket"], customer, orders)


# Around it


def rows(system: RunningSystem, query: str, *values: Any) -> list[dict[str, Any]]:
    """What the database holds, seen from above every tenant."""
    with psycopg.connect(system.state.postgres_url, row_factory=dict_row) as connection:
        return connection.execute(query.encode(), values).fetchall()


def client(system: RunningSystem, who: str, tenant: str | None = None) -> httpx.Client:
    """The gateway as this person's program reaches it, over an open connection."""
    headers = {"Authorization": f"Bearer {system.token(who, tenant)}"}
    client = httpx.Client(base_url=system.url, headers=headers, timeout=60, verify=False, trust_env=False)
    client.get("/healthz").raise_for_status()
    return client


def post(system: RunningSystem, who: str, path: str, body: Any = None, tenant: str | None = None) -> httpx.Response:
    with closing(client(system, who, tenant)) as program:
        return program.post(path, json=body)


def turngate(system: RunningSystem, *words: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    """The command line, on this system."""
    command = [sys.executable, "-m", "turngate", *words, "--data", str(system.data)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)


def until(condition: Callable[[], bool], within: float = 90.0) -> None:
    """For what no event tells: files, counters, processes, and views that follow the log."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def at_once(*works: Callable[[], T]) -> list[T]:
    """All of these in the same moment, each in a thread of its own; their answers in their order."""
    together = Barrier(len(works))

    def do(work: Callable[[], T]) -> T:
        together.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(do, works))


@contextmanager
def stopped(system: RunningSystem, service: str) -> Iterator[None]:
    """While the service's process stands still, alive but deaf."""
    pid = system.pid(service)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
