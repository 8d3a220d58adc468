"""Requests that nobody thought of, made from the OpenAPI document: whatever they are, none is answered with a 5xx."""

import asyncio
from collections import Counter, defaultdict
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from .conftest import World
from .facts import refund, started, story_to_the_hold
from .test_authority import NAMES
from .test_stops import approvals

pytestmark = pytest.mark.timeout(280)
EXAMPLES = 12  # of each call and kind, valid and not; more of them are tried with the slow tests
DECISIONS = {"POST /v1/runs/{run}/decisions", "POST /v1/runs/{run}/quotes"}
HELD = {"turn": 2, "call_id": "c-2"}
WRITES = {"POST /v1/stops", "POST /v1/policy", "PUT /v1/budget"}


async def the_rest_answers(world: World) -> None:
    """The rest of the system is not there, but answers as it would whoever asks for something that there is."""
    [event] = await world.others.say("TCK-2005-1", started("TCK-2005"))
    was, now = refund("c-2"), refund("c-2", 12000)
    quotes = {name: quote.model_dump(mode="json") for name, quote in (("was", was), ("quote", now))}
    await approvals(world)  # and the catalogue
    await world.answering("approvals", "ask.approvals.decide", {"status": 200, "event": event.document()})
    await world.answering("tools-shop", "ask.tools.quote", {"status": 200, **quotes})
    await world.answering("agent-runner", "ask.agent.spend", {"status": 200, "days": []})


@dataclass
class Trial:
    """Requests, each as somebody else: how often what was answered, by call, and those that a 5xx answered."""

    url: str
    tokens: list[str]
    examples: int
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    failed: list[str] = field(default_factory=list)

    def run(self) -> None:
        schema = schemathesis.openapi.from_url(f"{self.url}/openapi.json")
        modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
        schema.config.generation.update(modes=modes)
        with requests.Session() as session:
            session.trust_env = False
            for result in schema.get_all_operations():
                for mode in modes:
                    # A call that takes nothing cannot be called wrongly.
                    with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
                        self._try(result.ok(), mode, session)

    def _try(self, operation: Any, mode: GenerationMode, session: requests.Session) -> None:
        count = 0

        @seed(7)
        @settings(
            max_examples=self.examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            nonlocal count
            count += 1
            if count % 2:
                self._name(case, mode)
            token = self.tokens[count % len(self.tokens)]
            headers = dict(case.headers or {})
            if count % 4:  # the keys that are thought of are few, and each belongs to one request
                headers = {name: value for name, value in headers.items() if name.lower() != "idempotency-key"}
            case.headers = {**headers, "Authorization": f"Bearer {token}"}
            # A stream has no end: what counts is how it begins.
            with session.request(**case.as_transport_kwargs(base_url=self.url), timeout=20, stream=True) as answer:
                self.statuses[operation.label][answer.status_code] += 1
                if answer.status_code >= 500:
                    self.failed.append(f"{answer.status_code} {case.as_curl_command()}: {answer.text[:300]}")

        send()

    def _name(self, case: Any, mode: GenerationMode) -> None:
        """Makes it a request about something that there is."""
        if case.path_parameters:
            case.path_parameters = {name: NAMES.get(name, value) for name, value in case.path_parameters.items()}
        if mode is GenerationMode.POSITIVE and case.operation.label in DECISIONS:
            case.body |= HELD


@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
async def test_no_request_that_the_schema_describes_or_forbids_is_answered_with_a_5xx(
    world: World, examples: int
) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.others.say("CHT-1-1", started("CHT-1", channel="chat"))
    await the_rest_answers(world)
    await world.seen("TCK-2004-1")
    tokens = [world.token(person) for person in ("alex", "sam", "lee", "ada", "ari", "cust-C-1004", "gwen")]

    trial = Trial(world.url, tokens, examples)
    await asyncio.to_thread(trial.run)

    assert trial.failed == []
    assert {200, 202, 403, 404, 422} <= {status for answered in trial.statuses.values() for status in answered}
    assert [call for call in sorted(DECISIONS | WRITES) if not trial.statuses[call][200]] == [], "came to no answer"
