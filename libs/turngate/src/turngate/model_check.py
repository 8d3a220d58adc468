"""What the configured model's API says of itself, in a sentence for who starts the system. It costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from contracts.models import DEFAULT_BASE_URL, DEFAULT_MODEL

from turngate.lines import plain

SECONDS = 5.0
SHOWN = 5  # models, of those that there are
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model answers, by which key, and which is asked for; `stand_in`: it is none."""

    url: str
    key: str
    model: str
    stand_in: bool = False


def configured(environ: Mapping[str, str], stand_in_url: str | None) -> Endpoint:
    """What the agent-runner of an embedded system is told."""
    if stand_in_url is not None:
        return Endpoint(stand_in_url, "stand-in", "stand-in", stand_in=True)
    return Endpoint(
        url=environ.get("TURNGATE_MODEL_BASE_URL") or environ.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL,
        key=environ.get("TURNGATE_MODEL_API_KEY") or environ.get("ANTHROPIC_API_KEY") or "",
        model=environ.get("TURNGATE_MODEL") or DEFAULT_MODEL,
    )


def check(endpoint: Endpoint) -> str:
    """What came of `GET /v1/models`. Whatever it is, the system starts."""
    where = "The stand-in" if endpoint.stand_in else f"The model's API ({_host(endpoint.url)})"
    try:
        answer = httpx.get(
            f"{endpoint.url.rstrip('/')}/v1/models",
            params={"limit": 1000},
            headers={"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"},
            timeout=SECONDS,
            trust_env=urlsplit(endpoint.url).hostname not in _LOOPBACK,
        )
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        why = type(error).__name__
        return f"{where} cannot be reached ({why}). Runs wait for it, an hour by default, and fail then."
    if answer.status_code in (401, 403):
        return (
            f"{where} refused the key ({answer.status_code}): every run will fail. "
            "Set ANTHROPIC_API_KEY to a key that it takes, and start again."
        )
    if answer.status_code in (404, 405):
        return (
            f"{where} has no list of models ({answer.status_code}), so whether it knows {endpoint.model} is not known."
        )
    if answer.status_code != 200:
        return f"{where} answers {answer.status_code} for now. Runs wait for it, an hour by default, and fail then."
    try:
        known = [str(model["id"]) for model in answer.json()["data"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{where} answers, but with no list of models: whether it knows {endpoint.model} is not known."
    if endpoint.stand_in:
        return f"{where} answers."
    if any(model == endpoint.model or model.startswith(f"{endpoint.model}-") for model in known):
        return f"{where} takes the key and knows the model {endpoint.model}."
    some = ", ".join(plain(model[:80]) for model in known[:SHOWN]) or "none"
    return (
        f"{where} takes the key and does not list the model {endpoint.model}: runs may fail. It lists {some}"
        f"{', …' if len(known) > SHOWN else ''}. Set TURNGATE_MODEL to one of them, and start again."
    )


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return "its address cannot be read"
