"""Whether this process lives, is ready, and what it counts; and the documents that describe its outside."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway.ports import Ports
from gateway.problems import Problem

router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=PlainTextResponse)
async def alive() -> Response:
    return PlainTextResponse("ok\n")


@router.get("/readyz", response_class=PlainTextResponse)
async def ready(ports: Ports) -> Response:
    """Whether requests can be answered: the broker is connected, the log takes what is appended, and the database
    answers."""
    if not ports.connected():
        raise Problem(503, "Not ready", "The connection to NATS is down; it is being made again.")
    if trouble := ports.bus.writability.trouble:
        raise Problem(503, "Not ready", f"Nothing can be written: {trouble}. Look at the broker's disk.")
    await ports.desk.position()
    return PlainTextResponse("gateway is ready\n")


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


@router.get("/asyncapi.json")
async def asyncapi() -> dict[str, Any]:
    """What the log and the streams carry, as AsyncAPI."""
    from contracts import asyncapi

    document: dict[str, Any] = asyncapi.document()
    return document
