"""What the model is asked: a pure function of the run, so that the same question has the same digest."""

import hashlib
from dataclasses import dataclass

from contracts.canonical import canonical

from agent_runner.prices import Price
from agent_runner.profiles import Prompt
from agent_runner.run import Run
from agent_runner.transcript import messages

# Of a token whose number nobody tells. English has about four, Chinese about three: what is estimated is not too low.
BYTES_PER_TOKEN = 2
LEAST_OUTPUT = 512  # tokens; with less than that an answer is not worth asking for


@dataclass(frozen=True, slots=True)
class Tools:
    """What an agent may call: `offered` is the JSON that the Messages API takes, `digest` the tools service's."""

    offered: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the Messages API: `body` is the JSON that is sent.

    `max_tokens` is how long the answer may be; `at_most_micro_usd` is what it may cost and therefore what is reserved.
    `prompt_bytes` are more than the tokens of what is sent.
    """

    model: str
    body: bytes
    digest: str
    tools_digest: str
    max_tokens: int
    at_most_micro_usd: int
    prompt_bytes: int


def build(
    run: Run, prompt: Prompt, tools: Tools, model: str, price: Price, most: int, taken: int | None = None
) -> Request | None:
    """The request for what the run owes next, `most` tokens of output at most; None if the run's money does not reach.
    `taken` is what of it is spent or may be owed, in micro-dollars, where that is more than the log tells.

    A token is at least one byte, so the bytes of a prompt bound its tokens: the limit holds whatever the text is.
    """
    said = canonical(messages(run.conversation(), prompt.ticket))
    prompt_tokens = len(said) + len(prompt.system.encode()) + len(tools.offered)
    left = run.started.limits.max_cost_micro_usd - max(run.cost_micro_usd, taken or 0)
    max_tokens = min(most, price.affordable_output(prompt_tokens, left))
    if max_tokens < min(LEAST_OUTPUT, most):
        return None
    asked = canonical({"model": model, "max_tokens": max_tokens, "prompt": prompt.version, "tools": tools.digest})
    return Request(
        model=model,
        body=_body(model, max_tokens, prompt.system, tools.offered, said),
        digest=hashlib.sha256(asked + said).hexdigest(),
        tools_digest=tools.digest,
        max_tokens=max_tokens,
        at_most_micro_usd=price.at_most(prompt_tokens, max_tokens),
        prompt_bytes=prompt_tokens,
    )


def _body(model: str, max_tokens: int, system: str, tools: bytes, messages: bytes) -> bytes:
    """The long parts are JSON already: the conversation for the digest, the tools since they were asked for."""
    rest = {
        "model": model,
        "max_tokens": max_tokens,
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "cache_control": {"type": "ephemeral"},
        "stream": True,
    }
    return canonical(rest)[:-1] + b',"tools":' + tools + b',"messages":' + messages + b"}"
