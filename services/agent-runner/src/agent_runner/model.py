"""The model: the one place that talks to the Messages API."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import anthropic
import httpx2
import structlog
from contracts.errors import Outage
from contracts.parts import Json, Usage

from agent_runner import answer as answers
from agent_runner import arguments
from agent_runner.answer import Answer
from agent_runner.metrics import CALLS, COST, SECONDS
from agent_runner.prices import Price
from agent_runner.request import Request

logger = structlog.get_logger()

HOW_TO_SET_THE_KEY = (
    "Set ANTHROPIC_API_KEY to a key of your account in the environment of the agent-runner, restart it, and start the "
    "run again. (To try the system without a key, point TURNGATE_MODEL_BASE_URL at the stand-in.)"
)
LONGEST_STREAM = 2_000_000  # characters; no answer that can be kept is nearly as long
LONGEST_WAIT = 60.0  # seconds; what the API asks for beyond that is tried sooner
# What the API itself says that it failed with, and so made nothing of; not what a proxy in between says, nor a timeout.
_FAILED = frozenset(("overloaded_error", "api_error", "rate_limit_error"))
_PASSING = _FAILED | {"timeout_error"}
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

Hear = Callable[[str], Awaitable[None]]


class NotTaken(Outage):
    """The request did not reach the API, or the API made nothing of it: there is nothing to pay.

    `wait` is how many seconds the API wants to be left alone for.
    """

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


class Lost(Outage):
    """The request was sent, and what came of it is not known: it may have to be paid."""


class Unusable(Exception):
    """The model was not asked, or refused, and cannot be asked until a person changes something. The text says what,
    for the operator.

    `internals` are for the log file only.
    """

    def __init__(self, text: str, internals: str = "") -> None:
        super().__init__(text)
        self.internals = internals


class Model:
    """Asks by the real SDK. `timeout` is how many seconds the model may stay silent in the middle of an answer."""

    def __init__(self, api_key: str | None, base_url: str | None, timeout: float) -> None:
        self._client = None
        if api_key or base_url:
            local = base_url is not None and urlsplit(base_url).hostname in _LOOPBACK
            limits = httpx2.Timeout(timeout, connect=5.0)
            self._client = anthropic.AsyncAnthropic(
                api_key=api_key or "none",
                base_url=base_url or "https://api.anthropic.com",
                timeout=limits,
                # One reservation, one request: whoever asks again reserves again.
                max_retries=0,
                # A proxy of this machine's cannot reach a model on it.
                http_client=anthropic.DefaultAsyncHttpxClient(timeout=limits, trust_env=not local),
            )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def ask(self, request: Request, price: Price, hear: Hear) -> Answer:
        """The whole answer; `hear` gets its text as it comes.

        An answer that broke off is an answer too (`stream_cut`, nothing kept of it, paid for as if it had become as
        long as it might). Raises NotTaken or Lost where nothing was answered that is worth keeping, Unusable where
        asking again would not help.
        """
        if self._client is None:
            raise Unusable(
                f"There is no model key, so the model was not asked and nothing was done. {HOW_TO_SET_THE_KEY}"
            )
        reading = _Reading()
        started = time.monotonic()
        try:
            # The SDK sends and takes the stream apart; its typed models of every part would cost as much again as that.
            stream = await self._client.post(
                "/v1/messages",
                content=request.body,
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                async for event in stream:
                    if text := reading.take(cast(Json, event)):
                        await hear(text)
                    if reading.size > LONGEST_STREAM:
                        break
        except anthropic.APIError as error:
            trouble = _sorted(error, request.model)
            if not reading.begun:
                raise trouble from error
            if not isinstance(trouble, Unusable):
                raise Lost(f"The model's answer broke off: {trouble}") from error
            logger.error("the model's answer broke off", internals=trouble.internals)
        except (httpx2.TransportError, ValueError) as error:
            if not reading.begun:
                raise Lost(f"The model's answer did not begin: {error!r}") from error
        if not reading.begun:
            raise Lost("The model's answer was empty.")
        content, stop_reason = reading.kept()
        usage = reading.paid(request.max_tokens)
        cost = price.cost(usage)
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


@dataclass
class _Block:
    start: Json
    pieces: list[str] = field(default_factory=list)
    complete: bool = False

    def whole(self) -> Json:
        joined = "".join(self.pieces)
        match self.start["type"]:
            case "text":
                return {**self.start, "text": _clean(self.start.get("text", "") + joined)}
            case "thinking":
                return {**self.start, "thinking": self.start.get("thinking", "") + joined}
            case "tool_use":
                return {**self.start, "input": arguments.read(_paired(joined))}
            case _:
                return self.start


class _Reading:
    """A stream as far as it has been read: blocks as the API gave them, usage, why it stopped."""

    def __init__(self) -> None:
        self.begun = False
        self.detail = ""
        self.size = 0
        self._blocks: dict[int, _Block] = {}
        self._usage = Usage()
        self._counted = False
        self._stop_reason: str | None = None
        self._ended = False

    def take(self, event: Json) -> str:
        """Takes one event of the stream; gives the text that it added, if any."""
        match event["type"]:
            case "message_start":
                self.begun = True
                self._count(event["message"]["usage"])
            case "content_block_start":
                self._blocks[event["index"]] = _Block(event["content_block"])
            case "content_block_delta":
                return self._add(self._blocks[event["index"]], event["delta"])
            case "content_block_stop":
                self._blocks[event["index"]].complete = True
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason")
                self.detail = (event["delta"].get("stop_details") or {}).get("category") or ""
                self._count(event["usage"])
                self._counted = event["usage"].get("output_tokens") is not None
            case "message_stop":
                self._ended = True
        return ""

    def _add(self, block: _Block, delta: Json) -> str:
        match delta["type"]:
            case "text_delta":
                piece: str = delta["text"]
            case "input_json_delta":
                piece = delta["partial_json"]
            case "thinking_delta":
                piece = delta["thinking"]
            case "signature_delta":
                block.start = {**block.start, "signature": delta["signature"]}
                return ""
            case "citations_delta":
                block.start = {**block.start, "citations": [*(block.start.get("citations") or []), delta["citation"]]}
                return ""
            case _:
                return ""
        block.pieces.append(piece)
        self.size += len(piece)
        return piece if delta["type"] == "text_delta" else ""

    def _count(self, usage: Json) -> None:
        """Counts are cumulative; one that is left out stays as it was."""
        given = {
            "input": usage.get("input_tokens"),
            "output": usage.get("output_tokens"),
            "cache_read": usage.get("cache_read_input_tokens"),
            "cache_write": usage.get("cache_creation_input_tokens"),
        }
        self._usage = self._usage.model_copy(update={name: count for name, count in given.items() if count is not None})

    def paid(self, max_tokens: int) -> Usage:
        """What is paid for. How long the answer became is told behind it: of one that broke off nobody knows how much
        was made of it, so it counts as all of it."""
        return self._usage if self._counted else self._usage.model_copy(update={"output": max_tokens})

    def kept(self) -> tuple[list[Json], str]:
        """The content that may be kept, and why the answer stopped."""
        if self.size > LONGEST_STREAM:
            return [], answers.TOO_LONG
        if not self._ended or self._stop_reason is None:
            return [], answers.CUT_OFF
        blocks = [block.whole() for _, block in sorted(self._blocks.items()) if block.complete]
        return answers.usable(blocks, self._stop_reason)


def _paired(text: str) -> str:
    """Text in which a pair of surrogates that came in two pieces is one character again."""
    with suppress(UnicodeEncodeError):
        text.encode()
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _clean(text: str) -> str:
    """Text that UTF-8 can carry: half a character becomes U+FFFD."""
    return _paired(text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _sorted(error: anthropic.APIError, model: str) -> NotTaken | Lost | Unusable:
    """What the hearer should do about it: wait (NotTaken, Lost), or have a person change something (Unusable)."""
    if not isinstance(error, anthropic.APIStatusError):
        if isinstance(error.__cause__, _NOT_SENT):
            return NotTaken(f"The model's API cannot be reached: {error!r}")
        return Lost(f"The model's API did not answer: {error!r}")
    status, kind = error.status_code, error.type
    # Not the API's message: it may quote the request, which is a customer's words, and a log file is not erased.
    internals = f"{status} {kind} request-id={error.request_id}"
    if status in (408, 409, 429) or status >= 500 or (status == 200 and kind in _PASSING):  # 200: inside a stream
        why = f"The model's API is not able to answer now: {internals}"
        return NotTaken(why, _asked_to_wait(error)) if 400 <= status < 500 or kind in _FAILED else Lost(why)
    nothing = "The run was stopped; nothing was done in this step."
    if status in (401, 403):
        return Unusable(f"The model's API did not accept the key ({status}). {nothing} {HOW_TO_SET_THE_KEY}", internals)
    if status == 402:
        return Unusable(
            f"The model's account cannot pay for the call ({status}). {nothing} Settle the account's billing, then "
            "start the run again.",
            internals,
        )
    if status == 404:
        return Unusable(
            f"The model's API has no model {model!r} ({status}). {nothing} Set TURNGATE_MODEL in the environment of "
            "the agent-runner to one that your key may use, restart it, and start the run again.",
            internals,
        )
    return Unusable(
        f"The model's API refused the request ({status}). {nothing} The agent-runner's log has the details; a person "
        "must go on with the ticket.",
        internals,
    )


def _asked_to_wait(error: anthropic.APIStatusError) -> float:
    """Seconds that the API wants to be left alone for; 0 where it does not say."""
    try:
        return min(max(float(error.response.headers.get("retry-after", 0)), 0.0), LONGEST_WAIT)
    except ValueError:
        return 0.0
