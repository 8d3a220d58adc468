"""What a service's NKey is good for at the broker, beyond what the service does."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from itertools import product
from typing import Any

import nats.errors
from contracts.bus import Bus
from contracts.connection import settle
from contracts.errors import Forbidden
from contracts.facts import CATALOGUE
from contracts.requests import Requests
from contracts.settings import ServiceSettings
from contracts.subjects import DEAD, KEYS, RUNS, TENANTS, TIMERS
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import ANSWERS, AUTHORS, BESIDE, HEARS, HEARS_DEAD, HEARS_TENANTS, HEARS_TIMERS, permissions
from nats.aio.client import Client
from turngate import records
from turngate.running import RunningSystem

from .attempts import ASK, BE_THE_LOG, LISTEN, MANAGE, REPLY, SAY, TAKE, Attempt

SERVICES = tuple(AUTHORS)
STREAMS = (RUNS, TENANTS, DEAD, TIMERS, KEYS)
CONSUMERS = ((RUNS, HEARS), (TIMERS, HEARS_TIMERS), (DEAD, HEARS_DEAD), (TENANTS, HEARS_TENANTS))
ASKS = tuple(subject for subjects in ANSWERS.values() for subject in subjects)
SOON = 30.0
CONTROL = "attack.control"  # a subject on which nothing but the attack's own control is said


def others_subjects(service: str, run: str) -> Iterable[tuple[str, str]]:
    """What is tried, and each subject that it is tried on; whatever its permissions should say is left out by name."""
    author, lines = AUTHORS[service], {service, *BESIDE.get(service, ())}
    every = [*SERVICES, *(line for names in BESIDE.values() for line in names)]
    for kind, fact in CATALOGUE.items():
        if fact.author != author:
            yield SAY, f"run.acme.{run}.{kind}"
    for kind, fact in TENANT_FACTS.items():
        if fact.author != author:
            yield SAY, f"tenant.acme.{kind}"
    yield SAY, f"run.acme.{run}.{author}.no-such-fact"
    yield BE_THE_LOG, f"log.run.acme.{run}.policy.turn-forwarded"
    yield BE_THE_LOG, "log.tenant.acme.approvals.stop-lifted"
    for line in every:
        yield BE_THE_LOG, f"deliver.{line}"
        yield BE_THE_LOG, f"deliver.timer.{line}"
        yield BE_THE_LOG, f"timer.due.{line}.x"
        if line not in lines:
            yield BE_THE_LOG, f"timer.set.{line}.x"
            yield BE_THE_LOG, f"dead.{line}"
            yield BE_THE_LOG, f"_INBOX_{line}.x"
    if service != "agent-runner":
        yield BE_THE_LOG, f"live.acme.{run}"
    asks = {subject for subject in ASKS if subject not in permissions(service)["publish"]}
    for subject in sorted(asks):
        yield ASK, subject
    for stream, hearers in CONSUMERS:
        for consumer in (*hearers, "subscriber-crm"):
            yield TAKE, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
            if consumer not in lines:
                yield TAKE, f"$JS.ACK.{stream}.{consumer}.1.1.1.1.0"
            for verb in ("CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "RESET", "INFO"):
                yield MANAGE, f"$JS.API.CONSUMER.{verb}.{stream}.{consumer}"
    for stream in STREAMS:
        if not _may_publish(service, f"$JS.API.DIRECT.GET.{stream}"):
            yield TAKE, f"$JS.API.DIRECT.GET.{stream}"
    if not _may_publish(service, "keys.acme.stolen-1"):
        yield BE_THE_LOG, "keys.acme.stolen-1"
    yield BE_THE_LOG, "$KV.KEYS.acme"
    yield BE_THE_LOG, "$O.STORE.C.x"
    for stream in STREAMS:
        for verb in ("UPDATE", "DELETE", "PURGE", "INFO", "SNAPSHOT", "MSG.GET", "MSG.DELETE", "LEADER.STEPDOWN"):
            yield MANAGE, f"$JS.API.STREAM.{verb}.{stream}"
        for verb in ("LIST", "NAMES", "CREATE"):
            yield MANAGE, f"$JS.API.CONSUMER.{verb}.{stream}"
        for verb in ("CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "RESET", "INFO"):
            yield MANAGE, f"$JS.API.CONSUMER.{verb}.{stream}.{service}"
    for subject in ("STREAM.CREATE.MINE", "STREAM.LIST", "STREAM.NAMES", "INFO", "ACCOUNT.PURGE.LOG"):
        yield MANAGE, f"$JS.API.{subject}"
    yield MANAGE, "$SYS.REQ.SERVER.PING"


def others_ears(service: str) -> Iterable[str]:
    """Where it tries to listen."""
    may = permissions(service)["subscribe"]
    lines = {service, *BESIDE.get(service, ())}
    yield from ("run.>", "run.acme.>", "tenant.>", "keys.>", "timer.>", "dead.>", ">", "*.>", "$JS.>", "$JS.ACK.>")
    yield from ("$SYS.>", "_INBOX.>", "ask.>", "deliver.>", "_R_.>", "log.>", "$JS.API.>")
    yield from (subject for subject in (*ASKS, "log.run.>", "log.run.acme.>", "log.tenant.>", "live.>")
                if not any(_covers(allowed, subject) for allowed in may))  # fmt: skip
    for line in {*SERVICES, *(line for names in BESIDE.values() for line in names)} - lines:
        yield from (f"deliver.{line}", f"deliver.timer.{line}", f"deliver.dead.{line}", f"deliver.tenant.{line}")
        yield f"_INBOX_{line}.>"


def _covers(allowed: str, subject: str) -> bool:
    return allowed == subject or (allowed.endswith(".>") and subject.startswith(allowed[:-1]))


def _may_publish(service: str, subject: str) -> bool:
    words = subject.split(".")

    def matches(allowed: list[str]) -> bool:
        return len(allowed) == len(words) and all(one in ("*", word) for one, word in zip(allowed, words, strict=True))

    may = permissions(service)["publish"]
    return any(_covers(allowed, subject) or matches(allowed.split(".")) for allowed in may)


async def at_the_broker(system: RunningSystem, run: str) -> list[Attempt]:
    found: list[Attempt] = []
    async with AsyncExitStack() as stack:
        root = await stack.enter_async_context(records.set_up_broker(system.data).connection())
        for service in SERVICES:
            told = system.environment(service)
            bus = await Bus.connect(
                ServiceSettings.model_validate(
                    {"nats_url": told["TURNGATE_NATS_URL"], "nats_nkey": told["TURNGATE_NATS_NKEY"]}
                ),
                service,
            )
            stack.push_async_callback(bus.close, 0)
            found += await _publishing(bus, run)
            found += await _listening(bus)
            found += await _answered_elsewhere(bus, root, run)
    return found


async def _publishing(bus: Bus, run: str) -> list[Attempt]:
    requests = Requests(bus.nc)
    bus.on_error.append(requests.on_error)

    async def one(what: str, subject: str) -> Attempt:
        try:
            reply = await requests.ask(subject, b'{"seq":1}', timeout=SOON)
        except Forbidden as error:
            return Attempt(bus.service, what, f"publish {subject}", str(error))
        except nats.errors.Error as error:  # it left: nobody was there, or nobody answered
            return Attempt(bus.service, what, f"publish {subject}: {error!r}", None)
        return Attempt(bus.service, what, f"publish {subject}: {reply.data[:80]!r}", None)

    return await asyncio.gather(*(one(what, subject) for what, subject in others_subjects(bus.service, run)))


async def _listening(bus: Bus) -> list[Attempt]:
    told: list[str] = []
    bus.on_error.append(lambda error: told.append(str(error).lower()))
    tried = [(subject, queue) for subject in others_ears(bus.service) for queue in ("", "thief")]
    for subject, queue in tried:
        await bus.nc.subscribe(subject, queue=queue)
    await settle(bus.nc)
    return [
        Attempt(bus.service, LISTEN, f"subscribe {subject} {queue}".rstrip(), how_refused(told, subject.lower(), queue))
        for subject, queue in tried
    ]


def how_refused(told: list[str], subject: str, queue: str) -> str | None:
    """The broker's words on this subject, alone or with this queue: each is refused for itself."""
    words = f'subscription to "{subject}"'
    in_a_queue = f'{words} using queue "{queue}"'
    if queue:
        return next((one for one in told if in_a_queue in one), None)
    return next((one for one in told if words in one and "using queue" not in one), None)


async def _answered_elsewhere(bus: Bus, root: Client, run: str) -> list[Attempt]:
    """Whoever is answered names the subject of the answer: here another's, or a command to the streams."""
    asked: list[tuple[str, bytes, dict[str, str] | None]] = [("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', None)]
    for subject in permissions(bus.service)["publish"]:
        if subject.startswith("run."):  # never taken: the broker answers with an error
            behind = {"Nats-Expected-Last-Subject-Sequence": "999999999"}
            asked.append((subject.replace("*.*", f"acme.{run}"), b"{}", behind))
        elif subject.startswith("ask."):
            asked.append((subject, b"{}", None))
    targets = [
        *(f"run.acme.{run}.{kind}" for kind, fact in CATALOGUE.items() if fact.author != AUTHORS[bus.service]),
        *(f"tenant.acme.{kind}" for kind, fact in TENANT_FACTS.items() if fact.author != AUTHORS[bus.service]),
        *(f"$JS.API.STREAM.{verb}.{stream}" for verb in ("UPDATE", "PURGE", "DELETE") for stream in STREAMS),
        *(f"$JS.ACK.RUNS.{other}.1.1.1.1.0" for other in HEARS if other != bus.service),
        *(f"timer.set.{other}.x" for other in HEARS_TIMERS if other != bus.service),
        *(f"dead.{other}" for other in SERVICES if other != bus.service),
    ]
    heard: set[str] = set()

    async def hear(message: Any) -> None:
        heard.add(message.subject)

    ears = [await root.subscribe(target, cb=hear) for target in (*targets, CONTROL)]
    await settle(root)
    # Who has all rights has its answer delivered elsewhere: so would be heard what should not be.
    await root.publish("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', reply=CONTROL)
    async with asyncio.timeout(SOON):
        while CONTROL not in heard:
            await settle(root)
    tried = list(product(asked, targets))
    for (subject, body, headers), target in tried:
        await bus.nc.publish(subject, body, reply=target, headers=headers)
    await settle(bus.nc)
    # The broker has answered all of them once it answers one that comes behind them.
    await Requests(bus.nc).ask("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', timeout=SOON)
    await settle(root)
    for ear in ears:
        await ear.unsubscribe()
    return [
        Attempt(
            bus.service,
            REPLY,
            f"publish {subject} with the answer to {target}",
            None if target in heard else "The answer reached nobody there.",
        )
        for (subject, _, _), target in tried
    ]
