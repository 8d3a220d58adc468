"""The console's pages, rendered on the server; the streams then keep them current."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

from contracts.events import Event
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gateway import paging, shapes
from gateway.access import COOKIE, cookie_name, keep, may
from gateway.console import cards, queue, render, words
from gateway.console.paged import page_of
from gateway.console.rows import Row
from gateway.console.trajectory import Trajectory
from gateway.domain import may_say
from gateway.folding import fold
from gateway.held import HeldCall, Seat
from gateway.histories import History
from gateway.ports import Gateway, Ports
from gateway.problems import Problem, not_found
from gateway.routes.keys import Cursor
from gateway.routes.tickets import find
from gateway.sessions import session_of
from gateway.settings import Settings
from gateway.shown import Sight, sight
from gateway.views import RunView, total, waits_since

router = APIRouter(include_in_schema=False)
LATELY = timedelta(minutes=30)
MOST_ROWS = 1000
MOST_TICKETS = 500
CARDS = 50
# What the API says of these is for programs.
NO_SUCH_PAGE = Problem(404, "No such page", "There is nothing at this address. It may be mistyped, or out of date.")
NOT_SIGNED_IN = Problem(401, "You are not signed in", "Nothing was done. Sign in, and do it again.")


async def reader(request: Request, asker: Annotated[Principal, Depends(may("read"))]) -> Principal:
    """Who looks at the page. Raises a 401 that leads to the sign-in, a 403 for who has no console."""
    if request.query_params.get("for", session_of(asker)) != session_of(asker):
        raise Problem(401, "Signed in anew", "This page belongs to an earlier sign-in. Load it again.")
    return asker


Reader = Annotated[Principal, Depends(reader)]


@router.get("/")
async def home() -> Response:
    return RedirectResponse("/tickets", 303)


@router.get("/tickets")
async def tickets(
    ports: Ports, asker: Reader, request: Request, state: str = "open", cursor: Cursor = None
) -> Response:
    state = state if state in queue.FILTERS else "open"
    shell = await around(ports, asker, "tickets", request)
    found = await ports.desk.tickets(asker.tenant, queue.FILTERS[state][1], paging.read(cursor), MOST_TICKETS + 1)
    more = len(found) > MOST_TICKETS
    found = await (await sight(ports, asker)).tickets(found[:MOST_TICKETS])
    lines = [queue.line(one, asker, datetime.now(UTC), waits_of(ports, one.latest)) for one in found]
    return html(
        "tickets.html",
        **shell,
        groups=queue.groups(lines),
        filters=queue.FILTERS,
        state=state,
        shows=queue.GROUPS_OF[state],
        part=len(found) if more or cursor else None,
        older=paging.write((found[-1].opened_at, found[-1].ticket)) if more else None,
        later=cursor is not None,
    )


@router.get("/tickets/{reference}")
async def ticket(ports: Ports, asker: Reader, request: Request, reference: str) -> Response:
    shell = await around(ports, asker, "tickets", request)
    seen = await sight(ports, asker)
    one = await find(ports, asker, reference)
    runs = await ports.desk.runs_of(asker.tenant, one.ticket)
    wanted = request.query_params.get("run") or (runs[-1].run if runs else None)
    view, others = None, History()
    rows, hidden, rows_from = latest([], None)
    if wanted:
        history = await ports.runs.history(asker.tenant, wanted)
        view = fold(history.events)
        if view is None or view.ticket != one.ticket:
            raise not_found("run")
        others = (await ports.desk.histories(asker.tenant, [view]))[view.run]
        every = rows_of(await seen.facts(history.events, view.customer), shell["tenant"].timezone)
        view = await seen.run(view)
        rows, hidden, rows_from = latest(every, None if request.query_params.get("all") else MOST_ROWS)
    return html(
        "ticket.html",
        **shell,
        ticket=await seen.ticket(one),
        view=view,
        rows=rows,
        earlier=hidden,
        rows_from=rows_from,
        runs=runs,
        can_run=asker.may("run") and not one.erased,
        history=shapes.history(others) if view else None,
        waiting=ports.model_waits.of(view),
    )


@router.get("/approvals")
async def approvals(ports: Ports, asker: Reader, request: Request, cursor: Cursor = None) -> Response:
    """What this person can decide comes first, and in each part what has waited longest."""
    shell = await around(ports, asker, "approvals", request)
    now = datetime.now(UTC)
    held = (await ports.overviews.fresh(asker.tenant)).overview.held
    keys = {view.run: (0 if decidable([view], asker) else 1, *waits_since(view)) for view in held}
    shown = page_of(sorted(held, key=lambda view: keys[view.run]), lambda view: keys[view.run], cursor, CARDS)
    open_cards = [card for card in await _cards(ports, asker, shown.items) if card.state == "waiting"]
    decided = [] if shown.previous is not None else await ports.desk.held_lately(asker.tenant, now - LATELY, CARDS + 1)
    lately = await _cards(ports, asker, decided[:CARDS])
    return html(
        "approvals.html",
        **shell,
        waiting=[card for card in open_cards if card.mine],
        blocked=[card for card in open_cards if not card.mine],
        lately=[card for card in lately if card.state != "waiting"],
        blocked_in_all=sum(part for part, *_ in keys.values()),
        nothing_to_decide=all(part for part, *_ in keys.values()),
        paged=shown,
        more_lately=len(decided) > CARDS,
        at_stake=at_stake(held),
        oldest=oldest(held),
        mine=[decided for card in lately for decided in by(card.view, asker)],
    )


def waits_of(ports: Gateway, view: RunView | None) -> str:
    """That the run waits for its model, in words; empty where it does not."""
    wait = ports.model_waits.of(view)
    return words.model_wait(wait, ports.tenants.of(view.tenant).timezone) if wait and view else ""


def rows_of(events: tuple[Event, ...], zone: str = "UTC") -> list[Row]:
    trajectory = Trajectory(zone)
    for event in events:
        trajectory.see(event)
    return list(trajectory.rows.values())


def latest(rows: list[Row], most: int | None) -> tuple[list[Row], int, int]:
    """The last rows, how many stand before them, and the sequence up to which what is missing here is left out."""
    hidden = 0 if most is None else max(0, len(rows) - most)
    return rows[hidden:], hidden, rows[hidden - 1].opened if hidden else 0


def inside(path: str) -> str:
    """The path, if it leads nowhere else than to this console."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/tickets"


def problem_page(request: Request, problem: Problem) -> Response:
    """A refusal for a person: a 401 leads to the sign-in, the rest is a page that says what to do."""
    if problem.status == 401:
        return to_the_sign_in(request, problem)
    if problem.status == 404 and "endpoint" not in request.scope:
        problem = NO_SUCH_PAGE
    back = inside(request.headers.get("x-back", "/tickets"))
    response = html("problem.html", problem.status, unreal=_settings(request).unreal, problem=problem, back=back)
    response.headers.update(problem.headers)
    return response


def to_the_sign_in(request: Request, problem: Problem) -> Response:
    """Back to the same page afterwards. What a form has sent is lost: its sender is told so first."""
    if request.method == "GET":
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        response: Response = RedirectResponse(f"/sign-in?next={quote(target, safe='/')}", 303)
    else:
        response = outside(_settings(request), NOT_SIGNED_IN if "WWW-Authenticate" in problem.headers else problem)
    if cookie_name(request, COOKIE) in request.cookies:
        keep(request, response, COOKIE, "", 0)
    return response


def _settings(request: Request) -> Settings:
    ports: Gateway = request.app.state.gateway
    return ports.settings


def outside(settings: Settings, problem: Problem | None, said: str = "", go_on: str = "/tickets") -> Response:
    """The page of who is not signed in: why, and the way in."""
    status = problem.status if problem else 200
    offered = settings.sign_in_client_id is not None
    return html("sign_in.html", status, unreal=settings.unreal, problem=problem, said=said, next=go_on, offered=offered)


def html(name: str, status: int = 200, **context: Any) -> HTMLResponse:
    return HTMLResponse(render.page(name, **context), status, {"Cache-Control": "no-store"})


async def around(ports: Gateway, asker: Principal, here: str, request: Request) -> dict[str, Any]:
    """What every page shows around its own: who is here, what waits, and from where the stream goes on."""
    after, revision = ports.feed.last, ports.ticket_changes.revision(asker.tenant)
    await ports.lists_are_current()
    counts = queue.counts(await ports.desk.counts(asker.tenant))
    return {
        "asker": asker,
        "here": here,
        "tenant": ports.tenants.of(asker.tenant),
        "stops": ports.tenant_facts.of(asker.tenant).stops,
        "circumstances": ports.circumstances(asker.tenant),
        "after": after,
        "revision": revision,
        "counts": counts | {"waiting": await waiting_for(ports, asker)},
        "notice": None,
        "unreal": ports.settings.unreal,
    }


async def waiting_for(ports: Gateway, asker: Principal) -> int:
    """How many runs wait for a decision that this person can make."""
    if not asker.may("decide"):
        return 0
    return decidable((await ports.overviews.fresh(asker.tenant)).overview.held, asker)


def decidable(held: list[RunView], asker: Principal) -> int:
    return sum(any(may_say(view, call, asker) for call in view.holds) for view in held)


def at_stake(held: list[RunView]) -> str:
    return words.sums(total(moved for view in held for moved in view.at_stake))


def oldest(held: list[RunView]) -> datetime | None:
    return min((call.held_at for view in held for call in view.holds), default=None)


async def card_of(ports: Gateway, asker: Principal, run: str, seen: Sight) -> cards.Card | None:
    history = await ports.runs.history(asker.tenant, run)
    view = fold(history.events)
    if view is None or not view.held:
        return None
    zone = ports.tenants.of(asker.tenant).timezone
    return cards.card(await seen.run(view), await seen.facts(history.events, view.customer), asker, zone)


async def _cards(ports: Gateway, asker: Principal, views: Sequence[RunView]) -> list[cards.Card]:
    """As the log has them now: what the list says may be a moment old."""
    seen = await sight(ports, asker)
    found = await asyncio.gather(*(card_of(ports, asker, view.run, seen) for view in views))
    return [card for card in found if card is not None]


def by(view: RunView, asker: Principal) -> list[tuple[str, str, str]]:
    """What they did to the run's held turn; several calls of it that they approved came to one amount."""
    decided = [
        (view.ticket, _did(call, seat), words.decided_amount([call]) if call.declined else words.turn_amount(view))
        for call in view.held
        for seat in call.seats
        if (seat.by.subject, seat.by.issuer) == (asker.subject, asker.issuer)
    ]
    return list(dict.fromkeys(decided))


def _did(call: HeldCall, seat: Seat) -> str:
    if seat.decision == "decline":
        return "declined"
    if call.came_to_nothing:
        return "approved, then refused" if call.refused else "approved, not done"
    return "approved"
