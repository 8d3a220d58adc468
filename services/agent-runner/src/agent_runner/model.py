"""The model: the one place that talks to the Messages API."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from urllib.parse import urlsplit

import anthropic
import httpx2
import structlog
from contracts.errors import Outage
from contracts.models import DEFAULT_BASE_URL

from agent_runner.answer import Answer
from agent_runner.metrics import CALLS, COST, SECONDS
from agent_runner.prices import Price
from agent_runner.reading import LONGEST_STREAM, Failed, Reading
from agent_runner.request import Request
from agent_runner.wire import TooLarge, data_of

logger = structlog.get_logger()

HOW_TO_SET_THE_KEY = (
    "Set ANTHROPIC_API_KEY to a key of your account in the environment of the agent-runner, restart it, and start the "
    "run again. (To try the system without a key, point TURNGATE_MODEL_BASE_URL at the stand-in.)"
)
LONGEST_WAIT = 60.0  # seconds; what the API asks for beyond that is tried sooner
LONGEST_CALL = 3600.0  # seconds from the first byte of an answer to its last
ENDS_WITHIN = 1.0  # seconds behind an answer's last event
OVERLOADED = 529  # the API's own; no proxy's, so nothing was made of the request, whatever its body is
# What the API itself says that it failed with, and so made nothing of; not what a proxy in between says, nor a timeout.
_FAILED = frozenset(("overloaded_error", "api_error", "rate_limit_error"))
_PASSING = _FAILED | {"timeout_error"}
# By what an error is called inside of an answer, the status that it has elsewhere.
_STATUS = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
}
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

Hear = Callable[[str], Awaitable[None]]
Begin = Callable[[], Awaitable[None]]


class ModelAway(Outage):
    """The model did not answer. `status` says in a word how: `529`, `no connection`; `wait` is how many seconds the API
    wants to be left alone for."""

    def __init__(self, text: str, status: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.wait = wait


class NotTaken(ModelAway):
    """The request did not reach the API, or the API made nothing of it: there is nothing to pay."""


class Lost(ModelAway):
    """The request was sent, and what came of it is not known: it may have to be paid."""


class Unusable(Exception):
    """The model was not asked, or refused, and cannot be asked until a person changes something. The text says what,
    for the operator.

    `internals` are for the log file only; `billed`: the request may have to be paid all the same.
    """

    def __init__(self, text: str, internals: str = "", *, billed: bool = False) -> None:
        super().__init__(text)
        self.internals = internals
        self.billed = billed


class Model:
    """Asks by the real SDK. `timeout` is how many seconds the model may stay silent in the middle of an answer."""

    def __init__(self, api_key: str | None, base_url: str | None, timeout: float) -> None:
        self._client = None
        if api_key or base_url:
            local = base_url is not None and urlsplit(base_url).hostname in _LOOPBACK
            limits = httpx2.Timeout(timeout, connect=5.0)
            self._client = anthropic.AsyncAnthropic(
                api_key=api_key or "none",
                base_url=base_url or DEFAULT_BASE_URL,
                timeout=limits,
                # One reservation, one request: whoever asks again reserves again.
                max_retries=0,
                # A proxy of this machine's cannot reach a model on it.
                http_client=anthropic.DefaultAsyncHttpxClient(timeout=limits, trust_env=not local),
            )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def ask(self, request: Request, price: Price, hear: Hear, begin: Begin | None = None) -> Answer:
        """The whole answer; `hear` gets its text as it comes, `begin` is called once something of it has come.

        An answer that broke off is an answer too (`stream_cut`, nothing kept of it, paid for as if it had become as
        long as it might), and so is one that cannot be read (`unreadable`). Raises NotTaken or Lost where nothing was
        answered that is worth keeping, Unusable where asking again would not help.
        """
        if self._client is None:
            raise Unusable(
                f"There is no model key, so the model was not asked and nothing was done. {HOW_TO_SET_THE_KEY}"
            )
        reading = Reading(request)
        started = time.monotonic()
        try:
            # The SDK sends; what comes is taken apart here, as nothing that an endpoint may send is an exception.
            stream = await self._client.post(
                "/v1/messages",
                content=request.body,
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
        except anthropic.APIError as error:
            raise _sorted(error, request.model) from error
        async with stream:
            await _read(stream.response, reading, request.model, hear, begin)
        content, stop_reason = reading.kept()
        if reading.trouble:
            logger.error("the model's answer cannot be read", trouble=reading.trouble)
        usage = reading.paid()
        cost = min(price.cost(usage), request.at_most_micro_usd)
        CALLS.labels(request.model, stop_reason).inc()
        COST.labels(request.model).inc(cost)
        SECONDS.labels(request.model).observe(time.monotonic() - started)
        return Answer(
            content=content,
            stop_reason=stop_reason,
            usage=usage,
            cost_micro_usd=cost,
            request_digest=request.digest,
            tools_digest=request.tools_digest,
            detail=reading.detail,
        )


async def _read(response: httpx2.Response, reading: Reading, model: str, hear: Hear, begin: Begin | None) -> None:
    """Reads the answer as far as it comes. Raises Lost or Unusable where it says, or shows, that it is none."""
    arrived = False

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal arrived
        async for piece in response.aiter_bytes():
            arrived = True
            yield piece

    try:
        streamed = "json" not in response.headers.get("content-type", "")
        async with asyncio.timeout(LONGEST_CALL) as limit, aclosing(data_of(pieces(), streamed=streamed)) as events:
            async for data in events:
                text = reading.take(data)
                if begin is not None and reading.begun:
                    await begin()
                    begin = None
                if text:
                    await hear(text)
                if reading.size > LONGEST_STREAM:
                    return
                if reading.over:  # what is left is the end of the response, so that its connection can be used again
                    limit.reschedule(asyncio.get_running_loop().time() + ENDS_WITHIN)
    except Failed as error:
        trouble = _failed_inside(error.kind, model)
        if not reading.begun or not isinstance(trouble, Unusable):
            raise trouble from error
        logger.error("the model's answer broke off", internals=trouble.internals)
    except TooLarge:
        reading.fail("too large")
    except (httpx2.HTTPError, TimeoutError) as error:
        if not reading.begun:
            raise Lost(f"The model's answer did not begin: {error!r}", _how(error)) from error
    if not arrived:
        raise Lost("The model's answer was empty.", "an empty answer")
    if not reading.begun:
        reading.fail("no event of an answer")


def _how(error: BaseException | None) -> str:
    return "no answer" if isinstance(error, httpx2.TimeoutException | TimeoutError) else "connection lost"


def _failed_inside(kind: str, model: str) -> Lost | Unusable:
    """What the hearer should do about an answer in which the API says that it failed. It may have to be paid."""
    if kind in _PASSING:
        return Lost(f"The model's answer broke off: {kind}", kind)
    return _unusable(_STATUS.get(kind, 200), f"inside of an answer: {kind[:40]!a}", model, billed=True)


def _sorted(error: anthropic.APIError, model: str) -> NotTaken | Lost | Unusable:
    """What the hearer should do about it: wait (NotTaken, Lost), or have a person change something (Unusable)."""
    if not isinstance(error, anthropic.APIStatusError):
        if isinstance(error.__cause__, _NOT_SENT):
            return NotTaken(f"The model's API cannot be reached: {error!r}", "no connection")
        return Lost(f"The model's API did not answer: {error!r}", _how(error.__cause__))
    status, kind = error.status_code, error.type
    # Not the API's message: it may quote the request, which is a customer's words, and a log file is not erased.
    internals = f"{status} {kind} request-id={error.request_id}"
    if status in (408, 409, 429) or status >= 500:
        why = f"The model's API is not able to answer now: {internals}"
        free = status < 500 or status == OVERLOADED or kind in _FAILED
        return NotTaken(why, str(status), _asked_to_wait(error)) if free else Lost(why, str(status))
    return _unusable(status, internals, model)


def _unusable(status: int, internals: str, model: str, *, billed: bool = False) -> Unusable:
    nothing = "The run was stopped; nothing was done in this step."
    match status:
        case 401 | 403:
            why = f"The model's API did not accept the key ({status}). {nothing} {HOW_TO_SET_THE_KEY}"
        case 402:
            why = (
                f"The model's account cannot pay for the call ({status}). {nothing} Settle the account's billing, then "
                "start the run again."
            )
        case 404:
            why = (
                f"The model's API has no model {model!r} ({status}). {nothing} Set TURNGATE_MODEL in the environment "
                "of the agent-runner to one that your key may use, restart it, and start the run again."
            )
        case _:
            why = (
                f"The model's API refused the request ({status}). {nothing} The agent-runner's log has the details; a "
                "person must go on with the ticket."
            )
    return Unusable(why, internals, billed=billed)


def _asked_to_wait(error: anthropic.APIStatusError) -> float:
    """Seconds that the API wants to be left alone for; 0 where it does not say."""
    try:
        asked = float(error.response.headers.get("retry-after", 0))
    except ValueError:
        return 0.0
    return min(asked, LONGEST_WAIT) if math.isfinite(asked) and asked > 0 else 0.0
