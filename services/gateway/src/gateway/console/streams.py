"""What keeps the console's pages current: changes as HTML, one event a batch of facts, resumable."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from contracts.events import Event
from contracts.facts import CallDecided, HoldEscalated, HoldExpired, ReminderSent, TurnHeld
from contracts.history import History
from contracts.identity import Principal
from contracts.model_wait import ModelWait
from contracts.subjects import RunKey
from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway import shapes, sse
from gateway.console import cards, queue, render, words
from gateway.console.pages import Reader, at_stake, decidable, oldest, waits_of
from gateway.console.rows import Row
from gateway.console.trajectory import Trajectory
from gateway.feed import with_pauses
from gateway.folding import fold
from gateway.overviews import Known
from gateway.ports import Gateway, Ports
from gateway.problems import outage
from gateway.routes.events import is_over
from gateway.shown import Sight, sight
from gateway.streaming import respond
from gateway.views import TICKET_STATUS, RunView

router = APIRouter(prefix="/console/stream", include_in_schema=False)

# A page that has missed more runs than this is loaded anew.
MOST_MISSED = 100
# The inbox gathers what comes within this time: nobody reads faster.
PAUSE = 0.1
# Seconds. A stop that is set or lifted is on every page this soon, whether or not anything happens in a run.
LOOKS_EVERY = 1.0
HEARTBEAT = sse.frame("1", event="hb")
# All that the page had missed has been sent: from here on it shows what is so.
CURRENT = sse.frame("1", event="current")


def change(element: str, html: str, to: str | None = None, opened: int | None = None) -> dict[str, Any]:
    """Replaces the element of that id; one that is not there is put into `to`, if that is. No HTML removes it."""
    return {"id": element, "html": html, "to": to, "opened": opened}


@router.get("/runs/{run}")
async def run_stream(ports: Ports, asker: Reader, request: Request, run: str) -> Response:
    after = sse.after(request)
    history = await ports.runs.history(asker.tenant, run)
    return respond(ports, _run(ports, asker, history, after), asker, HEARTBEAT)


@router.get("/inbox")
async def inbox_stream(ports: Ports, asker: Reader, request: Request) -> Response:
    after = sse.after(request)
    if not ports.connected():
        raise outage()
    return respond(ports, _inbox(ports, asker, after), asker, HEARTBEAT)


async def _run(ports: Gateway, asker: Principal, history: History, after: int) -> AsyncGenerator[bytes]:
    run = RunPage(ports, asker, await sight(ports, asker), history.key, after)
    yield sse.RETRY
    source = ports.feed.of_run(history.key, 0)
    caught_up = False
    async with aclosing(with_pauses(source, ports.settings.heartbeat_seconds)) as alive:
        async for heard in alive:
            for frame in await run.frames(heard or []):
                yield frame
            for frame in run.wait(whole=heard is None):
                yield frame
            if not caught_up and heard is not None:
                caught_up = True
                yield CURRENT
            if run.ended and is_over(await ports.runs.history(asker.tenant, history.key.run), run.told):
                yield sse.frame("over", event="bye")
                return


class RunPage:
    """One person's page of one run: which elements the next facts change."""

    def __init__(self, ports: Gateway, asker: Principal, seen: Sight, key: RunKey, after: int) -> None:
        self._ports = ports
        self._asker = asker
        self._seen = seen
        self._key = key
        self._after = after
        self._zone = ports.tenants.of(asker.tenant).timezone
        self._trajectory = Trajectory(self._zone)
        self._events: list[Event] = []
        self._writing = False
        self._waiting: ModelWait | None = None
        self._wait_told = False
        self._composer = ""
        self.told = 0
        self.ended = False

    async def frames(self, heard: list[Any]) -> list[bytes]:
        events = [item for item in heard if isinstance(item, Event)]
        if not self._events:
            self._composer = self._write(fold([event for event in events if event.sequence <= self._after]))
        self._events += events
        for event in events:
            self.told, self.ended = event.sequence, self.ended or event.terminal
        rows = self._trajectory.see_all(await self._as_seen(events), self._after)
        frames = []
        if rows:
            changes = await self._changes(rows, events)
            frames.append(sse.frame(sse.data({"changes": changes}), id=events[-1].sequence, event="change"))
        return frames + self._live([item for item in heard if not isinstance(item, Event)])

    async def _as_seen(self, events: list[Event]) -> tuple[Event, ...]:
        view = fold(self._events[:1])
        return await self._seen.facts(events, view.customer if view else None)

    async def _changes(self, rows: list[Row], events: list[Event]) -> list[dict[str, Any]]:
        run = self._key.run
        changes = []
        if any(event.author == "agent" or event.terminal for event in events):
            # It may have been shown by another connection, before this one was there.
            self._writing = False
            changes.append(change(f"live-{run}", ""))
        for row in rows:
            html = render.part("row.html", "row", row, self._zone)
            changes.append(change(row.id, html, f"rows-{run}", row.opened))
        view = fold(self._events)
        if view is not None:
            changes += await self._around(view)
        return changes

    async def _around(self, view: RunView) -> list[dict[str, Any]]:
        now, asker, zone = datetime.now(UTC), self._asker, self._zone
        circumstances = self._ports.circumstances(view.tenant)
        others = await self._ports.desk.histories(view.tenant, [view])
        history = shapes.history(others[view.run])
        view = await self._seen.run(view)
        changes = [
            change(f"head-{view.run}", render.part("run.html", "head", view, asker)),
            change(f"side-{view.run}", render.part("run.html", "side", view, history, zone)),
            change(f"decide-{view.run}", render.part("run.html", "decide", view, asker, zone, now, circumstances)),
        ]
        if (composer := self._write(view)) != self._composer:
            self._composer = composer
            changes.append(change(f"composer-{view.run}", composer))
        card = cards.card(view, (), asker, zone)
        if card is not None:
            changes.append(change(f"card-head-{view.run}", render.part("card.html", "card_head", card, zone, now)))
        return changes

    def _write(self, view: RunView | None) -> str:
        """Where this person writes in the run. It is sent only where it changes: somebody may be typing in it."""
        return render.part("run.html", "composer", view, self._asker) if view else ""

    def wait(self, *, whole: bool) -> list[bytes]:
        """That the run waits for its model, where that has changed. It has no id. whole: also that it does not wait, if
        the page was not told before: it may have been loaded while it did."""
        waiting = None if self.ended else self._ports.model_waits.of_key(self._key)
        if waiting == self._waiting and (self._wait_told or not whole):
            return []
        self._waiting, self._wait_told = waiting, True
        html = render.part("wait.html", "wait", self._key.run, waiting, self._zone)
        return [sse.frame(sse.data({"changes": [change(f"wait-{self._key.run}", html)]}), event="change")]

    def _live(self, deltas: list[dict[str, Any]]) -> list[bytes]:
        """Text of the model as it comes: it has no id, and the fact that follows replaces it; what comes behind that
        is not shown. Only for who sees customers: a name that comes in two pieces is found in neither."""
        view = fold(self._events)
        answered = view.steps if view is not None else 0
        text = "".join(str(delta.get("text", "")) for delta in deltas if delta.get("step", 0) > answered)
        if not text or self.ended or not self._seen.whole:
            return []
        frames, run = [], self._key.run
        if not self._writing:
            self._writing = True
            html = render.part("row.html", "live", run)
            frames.append(
                sse.frame(sse.data({"changes": [change(f"live-{run}", html, f"rows-{run}")]}), event="change")
            )
        said = {"id": f"live-text-{run}", "add": words.visible(text)}
        return [*frames, sse.frame(sse.data(said), event="text")]


async def _inbox(ports: Gateway, asker: Principal, after: int) -> AsyncGenerator[bytes]:
    yield sse.RETRY
    told = _around_runs(ports, asker)
    yield _state(ports, await ports.overviews.fresh(asker.tenant), asker)
    await ports.lists_are_current()
    missed = await ports.desk.changed(asker.tenant, after, MOST_MISSED + 1) if after else []
    if len(missed) > MOST_MISSED:
        yield sse.frame("reload", event="reset")
        return
    seen = await sight(ports, asker)
    for view in missed:
        yield await _inbox_frame(ports, asker, seen, view.run, view.sequence, whole=True)
    start = max([after, *(view.sequence for view in missed)])
    waits: dict[str, ModelWait] = {}
    source = ports.feed.batches(start, asker.tenant)
    yield CURRENT
    async with aclosing(with_pauses(source, LOOKS_EVERY)) as alive:
        async for batch in alive:
            for run, wait in _changed(waits, ports.model_waits.of_tenant(asker.tenant)):
                waits = {name: was for name, was in waits.items() if name != run} | ({run: wait} if wait else {})
                yield await _inbox_frame(ports, asker, seen, run, None, whole=False)
            now = _around_runs(ports, asker)
            if batch is None and now == told:
                continue
            stops_moved, told = now[0] != told[0], now
            for run, events in _by_run(batch or []):
                whole = any(map(_of_hold, events))
                yield await _inbox_frame(ports, asker, seen, run, events[-1].sequence, whole=whole)
            if batch:
                await ports.lists_are_current()
            known = await ports.overviews.behind(asker.tenant, batch[-1].sequence if batch else 0)
            if stops_moved and len(known.overview.held) > MOST_MISSED:
                yield sse.frame("reload", event="reset")
                return
            held = await _held_cards(ports, asker, seen, known.overview.held) if stops_moved else []
            yield _state(ports, known, asker, held)
            if batch:
                await asyncio.sleep(PAUSE)


def _around_runs(ports: Gateway, asker: Principal) -> tuple[int, int]:
    """What is another whenever something has changed that no run's fact tells of."""
    return ports.tenant_facts.of(asker.tenant).sequence, ports.ticket_changes.revision(asker.tenant)


def _changed(before: dict[str, ModelWait], now: dict[str, ModelWait]) -> list[tuple[str, ModelWait | None]]:
    """Runs that wait otherwise than they did, with what they wait for now; if they are many, some of them first."""
    changed = [(run, now.get(run)) for run in before | now if before.get(run) != now.get(run)]
    return changed[:MOST_MISSED]


def _by_run(batch: list[Event]) -> list[tuple[str, list[Event]]]:
    """Each run's facts, in the order of their last ones: who goes on behind one of them misses none of the others."""
    runs: dict[str, list[Event]] = {}
    for event in batch:
        runs.setdefault(event.key.run, []).append(event)
    return sorted(runs.items(), key=lambda item: item[1][-1].sequence)


def _of_hold(event: Event) -> bool:
    return event.terminal or isinstance(event.fact, TurnHeld | CallDecided | ReminderSent | HoldEscalated | HoldExpired)


async def _inbox_frame(
    ports: Gateway, asker: Principal, seen: Sight, run: str, sequence: int | None, *, whole: bool
) -> bytes:
    """The ticket's line, and the run's card: whole where its hold has changed, else only its head. Without a sequence
    it is no fact's, and nobody goes on behind it."""
    now, zone = datetime.now(UTC), ports.tenants.of(asker.tenant).timezone
    circumstances = ports.circumstances(asker.tenant)
    changes = []
    history = await ports.runs.history(asker.tenant, run)
    view = fold(history.events)
    card, ticket = None, None
    if view is not None:
        events = await seen.facts(history.events, view.customer) if view.held else ()
        card = cards.card(await seen.run(view), events, asker, zone)
        ticket = await ports.desk.ticket(asker.tenant, view.ticket)
    if view is not None and ticket is not None:
        current = await seen.ticket(ticket.model_copy(update={"latest": view, "status": TICKET_STATUS[view.status]}))
        html = render.part(
            "ticket_row.html", "ticket_row", queue.line(current, asker, now, waits_of(ports, view)), asker, zone, now
        )
        changes.append(change(f"ticket-{ticket.ticket}", html, "tickets"))
    if card is not None:
        follows = card.state == "running" or (
            card.state == "closed" and any(s for call in card.view.held for s in call.seats)
        )
        if whole and not (card.state == "closed" and follows):
            changes.append(
                change(f"card-{run}", render.part("card.html", "card", card, asker, zone, now, circumstances), "cards")
            )
        elif follows:
            changes.append(change(f"card-head-{run}", render.part("card.html", "card_head", card, zone, now)))
    return sse.frame(sse.data({"changes": changes}), id=sequence, event="change")


async def _held_cards(ports: Gateway, asker: Principal, seen: Sight, held: list[RunView]) -> list[dict[str, Any]]:
    """Every decision that waits, on whichever page it stands: a stop that was set or lifted is in its way, or is no
    more."""
    now, zone = datetime.now(UTC), ports.tenants.of(asker.tenant).timezone
    circumstances = ports.circumstances(asker.tenant)
    changes = []
    for view in await seen.runs(await ports.desk.waiting(asker.tenant, [view.run for view in held])):
        card = cards.card(view, (), asker)
        if card is not None and card.state == "waiting":
            whole = render.part("card.html", "card", card, asker, zone, now, circumstances)
            decide = render.part("run.html", "decide", view, asker, zone, now, circumstances)
            changes += [change(f"card-{view.run}", whole), change(f"decide-{view.run}", decide)]
    return changes


def _state(ports: Gateway, known: Known, asker: Principal, more: Iterable[dict[str, Any]] = ()) -> bytes:
    """The counts around every page, what is stopped, and what `more` changes. They have no id: they are sent whole,
    whenever a stream begins or something has changed. tickets: the revision of the list; a page that shows another
    loads the list anew."""
    held = known.overview.held
    total = render.part("card.html", "held_total", at_stake(held), oldest(held), datetime.now(UTC))
    state = {
        "counts": queue.counts(known.overview.counts) | {"waiting": decidable(held, asker)},
        "tickets": known.tickets,
        "changes": [change("held-total", total), change("stops", _stops(ports, asker)), *more],
    }
    return sse.frame(sse.data(state), event="state")


def _stops(ports: Gateway, asker: Principal) -> str:
    tenant = ports.tenants.of(asker.tenant)
    stops = ports.tenant_facts.of(asker.tenant).stops
    return render.part("stops_banner.html", "stops_banner", stops, asker, tenant, datetime.now(UTC))
