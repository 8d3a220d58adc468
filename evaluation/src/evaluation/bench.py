"""What a turn costs: throughput, overhead, CPU and bytes, on a real system whose scripted model answers at once."""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

import httpx
import psycopg
from contracts.events import Event
from contracts.log import JetStreamLog
from turngate.records import set_up_broker
from turngate.running import RunningSystem

from evaluation.processes import cpu_seconds

TENANT = "acme"
CUSTOMER = "tom.whitfield@mail.example"
ORDER = "ORD-10042"
STARTS_AT_ONCE = 16
Say = Callable[[str], None]


@dataclass(frozen=True)
class Spread:
    """The middle and the far end of what was measured, in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median(values), quantiles(values, n=100)[98] if len(values) > 1 else values[0])


@dataclass(frozen=True)
class Batch:
    """Runs of one length, all at once or one after the other. CPU is in ms a turn, by process."""

    runs: int
    turns: int
    at_once: bool
    turns_a_second: float
    to_executed: Spread
    whole_turn: Spread
    cpu: dict[str, float]
    log_bytes: float
    wal_bytes: float


@dataclass(frozen=True)
class Report:
    throughput: Batch
    alone: Batch
    lengths: list[Batch]
    decision: Spread


class Bench:
    """One running system, and the means to start runs on it and to hear every fact."""

    def __init__(self, system: RunningSystem, http: httpx.AsyncClient, nats: Any, standin: str) -> None:
        self._system = system
        self._http = http
        self._nats = nats
        self._standin = standin
        self._log = JetStreamLog(nats)
        self._lead = {"Authorization": f"Bearer {system.token('lee', TENANT)}"}
        self._operator = {"Authorization": f"Bearer {system.token('alex', TENANT)}"}
        self._approver = {"Authorization": f"Bearer {system.token('sam', TENANT)}"}

    @classmethod
    @asynccontextmanager
    async def on(cls, system: RunningSystem) -> AsyncIterator["Bench"]:
        standin = system.environment("agent-runner")["TURNGATE_MODEL_BASE_URL"]
        async with (
            httpx.AsyncClient(base_url=system.url, timeout=120, trust_env=False) as http,
            set_up_broker(system.data).connection() as nats,
        ):
            yield cls(system, http, nats, standin)

    async def batch(self, runs: int, turns: int, *, at_once: bool) -> Batch:
        """`runs` runs of `turns` reading turns and a reply."""
        tickets = [await self._ticket(f"bench:{turns}") for _ in range(runs)]
        cpu, log, wal = self._cpu(), await self._log_bytes(), self._wal()
        begun = await self._last_sequence()
        if at_once:
            room = asyncio.Semaphore(STARTS_AT_ONCE)

            async def start(ticket: str) -> None:
                async with room:
                    await self._start(ticket, turns, self._lead)

            collected = asyncio.create_task(self._until_ended(tickets, begun))
            await asyncio.gather(*map(start, tickets))
            events = await collected
        else:
            events = []
            for ticket in tickets:
                await self._start(ticket, turns, self._lead)
                events += await self._until_ended([ticket], begun)
                begun = events[-1].sequence
        count = runs * turns
        after = self._cpu()
        to_executed, whole = overheads(events)
        # One after the other, the client's own pauses between runs are not the system's time.
        seconds = spent(events) if at_once else sum(spent(run) for run in by_run(events))
        return Batch(
            runs=runs,
            turns=turns,
            at_once=at_once,
            turns_a_second=count / seconds,
            to_executed=Spread.of(to_executed),
            whole_turn=Spread.of(whole),
            cpu={name: 1000 * (after[name] - before) / count for name, before in cpu.items()},
            log_bytes=(await self._log_bytes() - log) / count,
            wal_bytes=(self._wal() - wal) / count,
        )

    async def decision(self, times: int) -> Spread:
        """From a decision on a held call (declined, so that it can be repeated) to the agent's next fact."""
        subject = "bench: held"
        refund = {"order_reference": ORDER, "amount_pence": 18000, "reason": subject}
        script = {
            "key": subject,
            "answers": [{"tool_calls": [{"name": "issue_refund", "input": refund}]}, {"text": "It was declined."}],
        }
        async with httpx.AsyncClient(base_url=self._standin, trust_env=False) as standin:
            (await standin.put("/script", json=script)).raise_for_status()
        took = []
        for _ in range(times):
            ticket = await self._ticket(subject)
            begun = await self._last_sequence()
            run = await self._start(ticket, 2, self._operator)
            async for event in self._log.follow(begun, TENANT):
                if event.key.run == run and event.kind == "policy.turn-held":
                    break
            hold = (await self._http.get(f"/v1/runs/{run}", headers=self._operator)).json()["holds"][0]
            decision = {name: hold[name] for name in ("turn", "call_id", "digest")} | {"decision": "decline"}
            answer = await self._http.post(f"/v1/runs/{run}/decisions", json=decision, headers=self._approver)
            answer.raise_for_status()
            facts = {event.kind: event.time for event in await self._until_ended([ticket], begun, "escalated")}
            took.append(milliseconds(facts["approvals.call-decided"], facts["agent.reply-given"]))
        return Spread.of(took)

    async def _ticket(self, subject: str) -> str:
        body = {"customer_email": CUSTOMER, "subject": subject, "body": f"Please look at {ORDER}."}
        answer = await self._http.post("/v1/tickets", json=body, headers=self._operator)
        answer.raise_for_status()
        return str(answer.json()["ticket"])

    async def _start(self, ticket: str, turns: int, who: dict[str, str]) -> str:
        limits = {"max_steps": turns + 2} if who is self._lead else {}
        answer = await self._http.post(f"/v1/tickets/{ticket}/runs", json=limits, headers=who)
        answer.raise_for_status()
        return str(answer.json()["run"])

    async def _until_ended(self, tickets: Iterable[str], after: int, status: str = "resolved") -> list[Event]:
        """Every fact of the tickets' first runs, once all have ended. Raises RuntimeError where one has not so."""
        waiting = {f"{ticket}-1" for ticket in tickets}
        runs = frozenset(waiting)
        events = []
        async for event in self._log.follow(after, TENANT):
            if event.key.run in runs:
                events.append(event)
                if event.terminal:
                    waiting.discard(event.key.run)
                if not waiting:
                    break
        if any(event.terminal and getattr(event.fact, "status", "") != status for event in events):
            raise RuntimeError("A run of the benchmark did not end as it should: its figures would mean nothing.")
        return events

    async def _stream(self) -> dict[str, Any]:
        answer = await self._nats.request("$JS.API.STREAM.INFO.RUNS", b"", timeout=10)
        state: dict[str, Any] = json.loads(answer.data)["state"]
        return state

    async def _log_bytes(self) -> int:
        return int((await self._stream())["bytes"])

    async def _last_sequence(self) -> int:
        return int((await self._stream())["last_seq"])

    def _cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(int(process["pid"])) for name, process in self._system.state.processes.items()}

    def _wal(self) -> int:
        with psycopg.connect(self._system.state.postgres_url) as connection:
            row = connection.execute("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()
            return int(row[0]) if row else 0


async def measure(system: RunningSystem, say: Say, scale: float = 1.0) -> Report:
    """The whole benchmark. `scale` shrinks the numbers of runs, for a quick look."""

    def some(runs: int) -> int:
        return max(2, round(runs * scale))

    async with Bench.on(system) as bench:
        say("warming up")
        await bench.batch(some(20), 5, at_once=True)
        say(f"{some(300)} runs of 5 turns at once")
        throughput = await bench.batch(some(300), 5, at_once=True)
        say(f"{some(50)} runs of 5 turns, one after the other")
        alone = await bench.batch(some(50), 5, at_once=False)
        lengths = []
        for turns, runs in ((5, 24), (20, 6), (60, 2)):
            say(f"{runs} runs of {turns} turns, one after the other")
            lengths.append(await bench.batch(max(1, round(runs * scale)), turns, at_once=False))
        say("decisions on held turns")
        return Report(throughput, alone, lengths, await bench.decision(some(30)))


def by_run(events: Iterable[Event]) -> list[list[Event]]:
    runs: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        runs[event.key.run].append(event)
    return list(runs.values())


def overheads(events: Iterable[Event]) -> tuple[list[float], list[float]]:
    """Per turn, in ms: from proposed to executed, and from one proposal to the next fact of the agent."""
    to_executed, whole = [], []
    for run in by_run(events):
        facts = [event for event in run if event.kind in ("agent.turn-proposed", "agent.reply-given")]
        whole += [milliseconds(one.time, two.time) for one, two in pairwise(facts)]
        proposed = None
        for event in run:
            if event.kind == "agent.turn-proposed":
                proposed = event.time
            elif event.kind == "tools.turn-executed" and proposed is not None:
                to_executed.append(milliseconds(proposed, event.time))
    return to_executed, whole


def spent(events: Sequence[Event]) -> float:
    """Seconds from the first of these facts to the last."""
    times = [event.time for event in events]
    return (max(times) - min(times)).total_seconds()


def milliseconds(start: Any, end: Any) -> float:
    return float((end - start).total_seconds() * 1000)


def machine() -> str:
    """What was measured on, in a line."""
    return f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end"
