"""Kills at random, for minutes, under load: `python -m tests.chaos --minutes 10` (`make chaos MINUTES=10`).

Eight targets: the five services, NATS, Postgres, the supervisor. Runs of five scenarios go on meanwhile, and people
decide on what is held. In the end the refunds of the log, of the shop's rows and of the scenarios are held against one
another, and the log against its rules. Prints kills, runs, refunds and how long recovery took; exit 1 on a difference.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import httpx
import psycopg
from contracts.events import from_document
from contracts.facts import TurnExecuted
from contracts.verify import verify
from rich.console import Console
from rich.table import Table
from turngate import records, testing
from turngate.api import Refused
from turngate.embedded.trouble import Trouble
from turngate.running import NO_MODEL

from .own_system import OwnSystem
from .world import Case, open_case, rows

T = TypeVar("T")
AUTHORS = {
    "agent-runner": "agent",
    "tools-shop": "tools",
    "policy": "policy",
    "approvals": "approvals",
    "gateway": "desk",
}
TARGETS = (*AUTHORS, "nats", "postgres", "supervisor")
WORKERS = 4
# Seconds. Once the killing is over, every run has to come to its end within this.
SETTLES_WITHIN = 180.0
TRIED_EVERY = 0.25
ON_THEIR_WAY = timedelta(seconds=0.5)


@dataclass(frozen=True)
class Scenario:
    """What a customer asks for, what people say to it, and what has to be paid in the end, in minor units."""

    name: str
    price: int
    body: str
    decision: str | None
    paid: int


SCENARIOS = (
    Scenario("question", 2000, "Where is my order {order}? It has not arrived.", None, 0),
    Scenario("small", 1200, "My order {order} arrived broken. Please refund me £12.00.", None, 1200),
    Scenario("held", 18000, "I sent back {order} unworn. Please refund my £180.00.", "approve", 18000),
    Scenario("declined", 18000, "I sent back {order} unworn. Please refund my £180.00.", "decline", 0),
    Scenario("middle", 9000, "My order {order} arrived broken. Please refund me £90.00.", "approve", 9000),
)


@dataclass(frozen=True)
class Worked:
    scenario: Scenario
    run: str
    status: str


@dataclass(frozen=True)
class Kill:
    target: str
    at: datetime


@dataclass
class Recovery:
    """Seconds from each kill to the next accepted fact of anybody, and of the killed service itself."""

    any_fact: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    own_fact: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class Report:
    kills: Sequence[Kill]
    worked: Sequence[Worked]
    refunds_by_log: int
    refunds_by_rows: int
    refunds_by_scenario: int
    recovery: Recovery
    differences: Sequence[str]


def chaos(minutes: float, seed: int, say: Callable[[str], object]) -> Report:
    chance = random.Random(seed)
    with standing_system() as system:
        end = time.monotonic() + minutes * 60
        worked: list[Worked] = []
        with ThreadPoolExecutor(WORKERS) as pool:
            loads = [pool.submit(work, system, end, random.Random(seed + n), worked) for n in range(1, WORKERS + 1)]
            kills = list(kill_until(system, end, chance, say))
            for load in loads:
                load.result()
        say(f"{len(kills)} kills, {len(worked)} runs; waiting for what is left to end")
        return judge(system, kills, worked)


@contextmanager
def standing_system() -> Iterator[OwnSystem]:
    """One that this process starts again when its supervisor was killed."""
    with testing.directory() as place:
        environ = NO_MODEL | {"TURNGATE_STANDIN_PACE_MS": "0"}
        system = OwnSystem(place / "data", environ)
        with system.running():
            yield system


# The load


def work(system: OwnSystem, end: float, chance: random.Random, worked: list[Worked]) -> None:
    """Opens tickets and works them, one after the other, until `end`."""
    while time.monotonic() < end:
        worked.append(work_one(system, chance.choice(SCENARIOS)))


def work_one(system: OwnSystem, scenario: Scenario) -> Worked:
    case = patiently(lambda: open_case(system, scenario.price, body=scenario.body))
    run = patiently(lambda: start(system, case))
    return Worked(scenario, run, patiently(lambda: see_to(system, run, scenario)))


def start(system: OwnSystem, case: Case) -> str:
    answer: dict[str, str] = system.api("alex").post(f"/v1/tickets/{case.ticket}/runs", {})
    return answer["run"]


def see_to(system: OwnSystem, run: str, scenario: Scenario) -> str:
    """The run's status once it has ended; whatever it holds on the way is decided as the scenario says."""
    while not (view := system.api("alex").get(f"/v1/runs/{run}"))["ended_at"]:
        for hold in view["holds"]:
            decision = {name: hold[name] for name in ("turn", "call_id", "digest")} | {"decision": scenario.decision}
            try:
                system.api("sam").post(f"/v1/runs/{run}/decisions", decision)
            except Refused as refused:
                if refused.status >= 500:
                    raise
        time.sleep(TRIED_EVERY)
    return str(view["status"])


def patiently(do: Callable[[], T], within: float = SETTLES_WITHIN) -> T:
    """What `do` gives, tried again while something that it needs is away."""
    deadline = time.monotonic() + within
    while True:
        try:
            return do()
        except (Trouble, OSError, httpx.HTTPError, psycopg.OperationalError) as error:
            away = not isinstance(error, Refused) or error.status >= 500
            if not away or time.monotonic() > deadline:
                raise
            time.sleep(TRIED_EVERY)


# The killing


def kill_until(system: OwnSystem, end: float, chance: random.Random, say: Callable[[str], object]) -> Iterator[Kill]:
    """Kills a target every few seconds, each as often as the others, and starts the supervisor again."""
    left: list[str] = []
    while time.monotonic() < end:
        time.sleep(min(chance.uniform(2, 9), max(0.0, end - time.monotonic())))
        if not left:
            left = chance.sample(TARGETS, len(TARGETS))
        target = left.pop()
        try:
            pid = system.state.pid if target == "supervisor" else system.pid(target)
            os.kill(pid, signal.SIGKILL)
        except (Trouble, ProcessLookupError, KeyError, TypeError):
            continue  # it is on its way up
        yield (kill := Kill(target, datetime.now(UTC)))
        say(f"{kill.at:%H:%M:%S} {target}")
        if target == "supervisor":
            system.up()


# The judgement


def judge(system: OwnSystem, kills: Sequence[Kill], worked: Sequence[Worked]) -> Report:
    events = patiently(lambda: records.everything(records.broker(system.data), "acme"))
    by_log = {one.run: patiently(partial(paid_in, system, one.run)) for one in worked}
    by_rows = refunds_by_run(system)
    return Report(
        kills=kills,
        worked=worked,
        refunds_by_log=sum(map(bool, by_log.values())),
        refunds_by_rows=sum(map(len, by_rows.values())),
        refunds_by_scenario=sum(bool(one.scenario.paid) for one in worked),
        recovery=recovery(kills, [(event.time, event.author) for event in events]),
        differences=[*map(str, verify(events)), *differences(worked, by_log, by_rows)],
    )


def refunds_by_run(system: OwnSystem) -> dict[str, list[int]]:
    """What the shop's rows say that acme's runs paid back, in minor units."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows(system, "select run, amount_minor from shop.refunds where tenant = 'acme' and run is not null"):
        found[row["run"]].append(row["amount_minor"])
    return found


def differences(
    worked: Sequence[Worked], by_log: Mapping[str, int], by_rows: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """Where what a run was to pay, what its facts say and what the shop's rows hold are not the same amount, once.

    by_log: minor units by run. by_rows: the amounts of each run's refunds.
    """
    for one in worked:
        paid = by_rows.get(one.run, [])
        if len({by_log[one.run], sum(paid), one.scenario.paid}) > 1 or len(paid) > 1:
            yield (
                f"{one.run} ({one.scenario.name}, {one.status}): {by_log[one.run]} by the log, {list(paid)} by the "
                f"rows, {one.scenario.paid} by the scenario"
            )
    known = {one.run for one in worked}
    yield from (f"{run}: {list(paid)} was paid for no scenario" for run, paid in by_rows.items() if run not in known)


def paid_in(system: OwnSystem, run: str) -> int:
    """What the run's facts say that it paid back, in minor units; a refund that had been made before pays nothing."""
    events = [from_document(one) for one in system.api("alex").get(f"/v1/runs/{run}/events")["events"]]
    results = [result for event in events if isinstance(event.fact, TurnExecuted) for result in event.fact.results]
    return sum(int(result.data["amount_minor"]) for result in results if "refund" in result.data)


def recovery(kills: Iterable[Kill], facts: Sequence[tuple[datetime, str]]) -> Recovery:
    """From each kill to what came behind it. facts: time and author of each, in the order of the log."""
    found = Recovery()
    for kill in kills:
        # The last facts of what was killed may have been on their way.
        since = kill.at + (ON_THEIR_WAY if kill.target == "supervisor" else timedelta(0))
        behind = [(at, author) for at, author in facts if at > since]
        own = [at for at, author in behind if author == AUTHORS.get(kill.target)]
        if behind:
            found.any_fact[kill.target].append((min(at for at, _ in behind) - kill.at).total_seconds())
        if own:
            found.own_fact[kill.target].append((min(own) - kill.at).total_seconds())
    return found


# On the command line


def show(report: Report, console: Console) -> None:
    table = Table("target", "kills", "next fact: median", "p95", "most", "its own: median", "most", box=None)
    for target in TARGETS:
        any_fact, own = report.recovery.any_fact[target], report.recovery.own_fact[target]
        table.add_row(
            target,
            str(sum(kill.target == target for kill in report.kills)),
            *(f"{figure:.1f} s" for figure in figures(any_fact)),
            *(f"{figure:.1f} s" for figure in figures(own)[::2]),
        )
    console.print(table)
    statuses = ", ".join(f"{count} {status}" for status, count in Counter(one.status for one in report.worked).items())
    console.print(f"{len(report.kills)} kills, {len(report.worked)} runs ({statuses})")
    console.print(
        f"refunds: {report.refunds_by_log} by the log, {report.refunds_by_rows} by the shop's rows, "
        f"{report.refunds_by_scenario} by the scenarios"
    )
    for difference in report.differences:
        console.print(difference, markup=False)
    console.print(f"{len(report.differences)} differences")


def figures(seconds: Sequence[float]) -> tuple[float, ...]:
    """Median, 95th percentile, maximum; nothing of nothing."""
    if not seconds:
        return ()
    ordered = sorted(seconds)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], ordered[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    progress = Console(stderr=True, highlight=False)
    progress.print(f"{asked.minutes:g} minutes, seed {asked.seed}")
    report = chaos(asked.minutes, asked.seed, progress.print)
    show(report, Console(highlight=False))
    sys.exit(1 if report.differences else 0)


if __name__ == "__main__":
    main()
