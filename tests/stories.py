"""One story, told by its facts: a ticket whose refund a person must release; and clients that do not give up."""

import asyncio
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg
from contracts.canonical import canonical
from contracts.events import Event
from contracts.log import JetStreamLog
from contracts.subjects import RunKey
from contracts.verify import verify
from standin.director import Director
from turngate import records
from turngate.embedded.trouble import Trouble
from turngate.running import RunningSystem

from .world import Case, Model, look_up, open_case, refund, turn

PATIENCE = 90.0  # seconds; the machine that runs these may be busy with others
PAID = 18000
ORDER = 50000  # so much that it could be paid twice
REPLY = {"text": "Your refund is on its way to the card that you paid with."}


def until(condition: Callable[[], bool], within: float = PATIENCE) -> None:
    """For what no event tells: processes, and views that follow the log."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def new_case(system: RunningSystem, *paid: int, channel: str = "ticket") -> Case:
    """A ticket of its own, once the system has recovered from what was done to it before."""
    gives_up = time.monotonic() + PATIENCE
    while True:
        try:
            return open_case(system, *paid, channel=channel)
        except (Trouble, psycopg.OperationalError):
            assert time.monotonic() < gives_up, "nobody opens tickets any more"
            time.sleep(0.05)


# A client that does not give up


@dataclass(frozen=True)
class Client:
    """A person's program: what the gateway did not answer is asked again, with the same key."""

    system: RunningSystem
    who: str
    tenant: str = "acme"
    http: httpx.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.system.token(self.who, self.tenant)}"}
        object.__setattr__(self, "http", httpx.Client(base_url=self.system.url, headers=headers, timeout=3))

    def get(self, path: str) -> Any:
        return self._insist("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self._insist("POST", path, json=body)

    def _insist(self, method: str, path: str, **given: Any) -> Any:
        key = {"Idempotency-Key": uuid.uuid4().hex}
        gives_up = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self.http.request(method, path, headers=key, **given)
            except httpx.TransportError as error:
                said = repr(error)
            else:
                if answer.status_code < 500:
                    assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
                    return answer.json()
                said = f"{answer.status_code} {answer.text}"
            assert time.monotonic() < gives_up, f"{method} {path}: {said}"
            time.sleep(0.05)


# The log, past the gateway


@dataclass(frozen=True)
class Line:
    """The facts of one run as the broker has them, whatever else is down. `after` is where to begin to look."""

    system: RunningSystem
    run: str
    after: int = 0
    tenant: str = "acme"

    def until(self, *kinds: str) -> Event:
        """The first fact of one of these kinds, as soon as the log has it."""

        async def listen() -> Event:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        async with records.broker(self.system.data).connection() as client:
                            async for event in JetStreamLog(client).follow(self.after, self.tenant):
                                if event.key.run == self.run and event.kind in kinds:
                                    return event
                    except Trouble:  # the broker itself is away
                        await asyncio.sleep(0.05)

        try:
            return asyncio.run(listen())
        except TimeoutError:
            kinds_so_far = [event.kind for event in self.events()]
            raise AssertionError(f"{self.run} waits for {' or '.join(kinds)}: {kinds_so_far}") from None

    def ended(self) -> list[Event]:
        """All facts of the run, once it has ended."""
        self.until("agent.run-ended", "desk.run-cancelled", "desk.run-failed", "desk.run-taken-over")
        return self.events()

    def events(self) -> list[Event]:
        async def read() -> list[Event]:
            async with records.broker(self.system.data).connection() as client:
                return list((await JetStreamLog(client).read(RunKey(self.tenant, self.run))).events)

        return asyncio.run(read())


def last_sequence(system: RunningSystem) -> int:
    """The log's end, from where a new run is looked for."""

    async def ask() -> int:
        async with records.set_up_broker(system.data).connection() as client:
            return int((await client.jetstream().stream_info("RUNS")).state.last_seq)

    return asyncio.run(ask())


# The story


@dataclass(frozen=True)
class Told:
    """What came of a run. `facts` are its facts in order, with names and ids that differ between runs left out.

    asked: how often the model was asked for each step.
    """

    facts: list[str]
    paid: list[int]
    asked: dict[int, int]
    violations: list[str]
    statuses: tuple[str, str]


def tell(
    case: Case, model: Model, before: Callable[[], None] = lambda: None, while_held: Callable[[], None] = lambda: None
) -> Told:
    """Works the case from its start to its end: a read; a turn with a read and a refund, held and approved; a reply.
    What is to be done `before` the run starts, and `while_held`, is done then."""
    run = f"{case.ticket}-1"
    order = case.orders[0]
    model.says(case.ticket, turn(look_up(order)), turn(look_up(order), refund(order, PAID)), REPLY)
    alex, sam = Client(case.system, "alex"), Client(case.system, "sam")
    line = Line(case.system, run, last_sequence(case.system))
    before()

    assert alex.post(f"/v1/tickets/{case.ticket}/runs")["run"] == run
    line.until("policy.turn-held")
    while_held()
    [hold] = sam.get(f"/v1/runs/{run}")["holds"]
    decision = {name: hold[name] for name in ("turn", "call_id", "digest")} | {
        "decision": "approve",
        "note": "Sent back",
    }
    decided = sam.post(f"/v1/runs/{run}/decisions", decision)
    assert sam.post(f"/v1/runs/{run}/decisions", decision) == decided, "the same decision again has another answer"
    events = line.ended()
    until(lambda: alex.get(f"/v1/tickets/{case.ticket}")["status"] != "in_progress")
    return Told(
        facts=[_plain(event, case) for event in events],
        paid=[row["amount_minor"] for row in case.refunds()],
        asked=asked(model, case.ticket),
        violations=[str(violation) for violation in verify(events)],
        statuses=(alex.get(f"/v1/runs/{run}")["status"], alex.get(f"/v1/tickets/{case.ticket}")["status"]),
    )


def asked(model: Model, key: str) -> dict[int, int]:
    """How often the model was asked for each step of the conversations in which `key` occurs."""

    async def ask() -> dict[int, int]:
        async with Director(model.url) as director:
            return await director.asked(key)

    return asyncio.run(ask())


_VARYING = (
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), "id"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "digest"),
    (re.compile(r"RF-[0-9A-F]{10,64}"), "RF"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "time"),
    # Whoever is killed while it asks the model may owe for that: the run's end says so.
    (re.compile(r',"uncertain_micro_usd":\d+'), ""),
    (re.compile(r'"(refund(?:s|ed)_today_(?:of_tenant|by_profile)(?:_minor)?)":\d+'), r'"\1":n'),
)


def _plain(event: Event, case: Case) -> str:
    """The fact without what is its run's own: the names of ticket, customer and order, ids, digests, times, and what
    may be owed for calls whose caller died."""
    assert event.fact is not None
    text = canonical(event.fact.model_dump(mode="json")).decode()
    text = text.replace(case.ticket, "ticket").replace(case.customer.removeprefix("C-"), "mark")
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    calls = dict.fromkeys(re.findall(r"toolu_\w+", text))
    for number, call in enumerate(calls, start=1):
        text = text.replace(call, f"call {number}")
    return f"{event.kind} {text}"
