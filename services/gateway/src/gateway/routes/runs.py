"""Runs: list, show, and what people do with one."""

from typing import Annotated, Any
from urllib.parse import quote as percent_encoded

from contracts.asks import Decide, Requote
from contracts.facts import Status
from contracts.identity import Principal
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from gateway import paging, shapes
from gateway.access import may, token_of
from gateway.ports import Ports
from gateway.routes.keys import Cursor, Key, Limit
from gateway.shown import sight

router = APIRouter(prefix="/v1/runs", tags=["runs"])
Reader = Annotated[Principal, Depends(may("read"))]


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=16_000)


class Reason(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=2000)


@router.get("", response_model=shapes.Runs)
async def list_runs(
    ports: Ports,
    asker: Reader,
    status: Annotated[list[Status] | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> shapes.Runs:
    await ports.lists_are_current()
    found = await ports.desk.runs(asker.tenant, status, paging.read(cursor), limit)
    last = found[-1] if len(found) == limit else None
    seen = await (await sight(ports, asker)).runs(found)
    return shapes.Runs(
        runs=[shapes.run(view, ports.model_waits.of(view)) for view in seen],
        next=paging.write((last.started_at, last.run)) if last else None,
        total=await ports.desk.run_count(asker.tenant, status),
    )


@router.get("/{run}", response_model=shapes.Run)
async def show_run(ports: Ports, asker: Reader, run: str) -> shapes.Run:
    seen = await sight(ports, asker)
    view = await seen.run(await ports.runs.read(asker.tenant, run))
    return shapes.run(view, ports.model_waits.of(view), ports.circumstances(asker.tenant))


@router.post("/{run}/decisions")
async def decide(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("decide"))],
    request: Request,
    response: Response,
    run: str,
    wanted: Decide,
    key: Key,
) -> dict[str, Any]:
    """The recorded fact. The same decision sent again, by the same person, is answered with the same fact; the header
    `Turngate-Repeated: true` says so, and `Turngate-Detail`, percent-encoded, what it is worth by now, if it waits."""
    decided = await ports.runs.decide(run, asker, token_of(request), wanted)
    if decided.repeated:
        response.headers["Turngate-Repeated"] = "true"
    if decided.detail:
        response.headers["Turngate-Detail"] = percent_encoded(decided.detail)
    return decided.fact


@router.post("/{run}/quotes", response_model=shapes.Quote)
async def quote(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("decide"))],
    request: Request,
    run: str,
    wanted: Requote,
) -> shapes.Quote:
    """What the held call would do with other arguments, and whether you could release it so. Nothing is done."""
    now = ports.circumstances(asker.tenant)
    return shapes.quote(await ports.runs.quote(run, asker, token_of(request), wanted, now))


@router.post("/{run}/messages", status_code=202, response_model=shapes.Accepted)
async def say(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("speak", "chat", "take_over"))],
    run: str,
    message: Message,
    key: Key,
) -> shapes.Accepted:
    """The customer's words in a chat, from them or from an operator; your own in a run that was taken over."""
    event = await ports.runs.say(run, asker, message.text, key)
    return shapes.Accepted(run=run, event=event.id)


@router.post("/{run}/cancel", status_code=202, response_model=shapes.Accepted)
async def cancel(
    ports: Ports, asker: Annotated[Principal, Depends(may("cancel"))], run: str, key: Key, reason: Reason | None = None
) -> shapes.Accepted:
    event = await ports.runs.cancel(run, asker, reason.reason if reason else "", key)
    return shapes.Accepted(run=run, event=event.id)


@router.post("/{run}/take-over", status_code=202, response_model=shapes.Accepted)
async def take_over(
    ports: Ports,
    asker: Annotated[Principal, Depends(may("take_over"))],
    run: str,
    key: Key,
    reason: Reason | None = None,
) -> shapes.Accepted:
    event = await ports.runs.take_over(run, asker, reason.reason if reason else "", key)
    return shapes.Accepted(run=run, event=event.id)
