"""The HTTP of the stand-in: the Messages API as its callers know it, and the few calls by which a test directs it."""

import asyncio

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from standin import request as requests
from standin import script
from standin.answer import name
from standin.errors import ApiError
from standin.messages import Messages, authenticate
from standin.stage import Stage
from standin.usage import input_tokens

NAME = "stand-in"


def app(*, pace_ms: float = 0) -> Starlette:
    """The stand-in as an ASGI application. `pace_ms`: the pause before each piece of text of the agent's."""
    stage = Stage()

    async def count(http: HttpRequest) -> Response:
        return JSONResponse({"input_tokens": input_tokens(requests.read(await http.body(), counting=True))})

    async def models(http: HttpRequest) -> Response:
        """The one that there is; a message may ask for any."""
        authenticate(http.scope)
        one = {"type": "model", "id": NAME, "display_name": "Stand-in", "created_at": "2026-01-01T00:00:00Z"}
        return JSONResponse({"data": [one], "has_more": False, "first_id": NAME, "last_id": NAME})

    async def put_script(http: HttpRequest) -> Response:
        try:
            stage.put(script.parse(await http.json()))
        except (ValueError, KeyError, TypeError) as error:
            raise ApiError(400, f"The script was not taken: {error}") from None
        return Response(status_code=204)

    async def delete_script(http: HttpRequest) -> Response:
        stage.clear(http.query_params.get("key"))
        return Response(status_code=204)

    async def open_gate(http: HttpRequest) -> Response:
        stage.gate(http.path_params["gate"]).set()
        return Response(status_code=204)

    async def asked(http: HttpRequest) -> Response:
        """How often each step was asked for. With `key` and `at_least`, waits until it was that often."""
        key = http.query_params.get("key")
        if key and "at_least" in http.query_params:
            at_least = int(http.query_params["at_least"])
            try:
                timeout_s = float(http.query_params.get("timeout_s", 30))
                await asyncio.wait_for(stage.until(lambda: stage.times(key) >= at_least), timeout_s)
            except TimeoutError:
                raise ApiError(504, f"{key} was asked for {stage.times(key)} times, not {at_least}") from None
        counts = [
            {"key": of, "step": step, "count": count}
            for (of, step), count in sorted(stage.asked.items())
            if key in (None, of)
        ]
        bodies = [{"key": of, "step": step, "body": body} for of, step, body in stage.bodies if key == of]
        return JSONResponse({"requests": counts, "bodies": bodies})

    async def healthy(http: HttpRequest) -> Response:
        return JSONResponse({"status": "ok", "service": "standin"})

    async def refused(http: HttpRequest, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            error = ApiError(error.status_code, "Not found" if error.status_code == 404 else error.detail)
        assert isinstance(error, ApiError)  # noqa: S101 - the two types that this handler is registered for
        request_id = name("req", id(http).to_bytes(8, "big"))
        return JSONResponse(error.body(request_id), error.status, headers={**error.headers(), "request-id": request_id})

    return Starlette(
        routes=[
            Route("/v1/messages", Messages(stage, pace_ms), methods=["POST"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
            Route("/v1/models", models),
            Route("/script", put_script, methods=["PUT"]),
            Route("/script", delete_script, methods=["DELETE"]),
            Route("/gates/{gate}", open_gate, methods=["PUT"]),
            Route("/requests", asked),
            Route("/healthz", healthy),
        ],
        exception_handlers={ApiError: refused, HTTPException: refused},
    )
