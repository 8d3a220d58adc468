"""Requests that nobody thought of, made from the OpenAPI document: whatever they are, none is answered with a 5xx."""

import asyncio
from collections import Counter
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from .conftest import World
from .facts import started, story_to_the_hold
from .test_authority import NAMES

pytestmark = pytest.mark.timeout(280)
EXAMPLES = 12  # of each call and kind, valid and not
# The rest of the system is not there: what it is asked, it answers as it would nonsense.
REFUSED = {"status": 422, "title": "Not understood", "detail": "Nothing was done."}


def every_call(url: str, tokens: list[str]) -> tuple[Counter[int], list[str]]:
    """Sends the requests, each as somebody else; gives how often what was answered, and the requests with a 5xx."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    failed: list[str] = []
    statuses: Counter[int] = Counter()
    with requests.Session() as session:
        session.trust_env = False
        for result in schema.get_all_operations():
            _try(result.ok(), url, session, tokens, failed, statuses)
    return statuses, failed


def _try(
    operation: Any, url: str, session: requests.Session, tokens: list[str], failed: list[str], statuses: Counter[int]
) -> None:
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        count = 0

        @seed(7)
        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            nonlocal count
            count += 1
            if case.path_parameters and count % 2:
                case.path_parameters = {name: NAMES.get(name, value) for name, value in case.path_parameters.items()}
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {tokens[count % len(tokens)]}"}
            sent = case.as_transport_kwargs(base_url=url)
            # A stream has no end: what counts is how it begins.
            with session.request(**sent, timeout=20, stream=True) as answer:
                statuses[answer.status_code] += 1
                if answer.status_code >= 500:
                    failed.append(f"{answer.status_code} {case.as_curl_command()}: {answer.text[:300]}")

        # A call that takes nothing cannot be called wrongly.
        with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
            send()


async def test_no_request_that_the_schema_describes_or_forbids_is_answered_with_a_5xx(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.others.say("CHT-1-1", started("CHT-1", channel="chat"))
    await world.seen("TCK-2004-1")
    asked = (("approvals", "decide"), ("approvals", "tenant"), ("tools-shop", "quote"), ("tools-shop", "catalogue"))
    for service, question in asked:
        await world.answering(service, f"ask.{service.split('-')[0]}.{question}", REFUSED)
    tokens = [world.token(person) for person in ("alex", "sam", "lee", "ada", "cust-C-1004", "gwen")]

    statuses, failed = await asyncio.to_thread(every_call, world.url, tokens)

    assert failed == []
    assert {200, 202, 403, 404, 422} <= set(statuses), "they came as far as the calls themselves"
