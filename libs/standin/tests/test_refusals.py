"""What the Messages API refuses, and in which words."""

from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import pytest
from anthropic import Anthropic

TOOL = {"name": "get_order", "description": "", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_order", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
OTHER = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "found"}
TEXT = {"type": "text", "text": "Hello"}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"messages": []}, "at least one message is required"),
        ({"messages": [assistant(TEXT)]}, 'first message must use the "user" role'),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages.0.role"),
        ({"messages": [user()]}, "non-empty content"),
        ({"messages": [user({"type": "text", "text": ""})]}, "must be non-empty"),
        ({"messages": [user({"type": "text", "text": " "})]}, "non-whitespace"),
        ({"messages": [user(USE)]}, "messages.0.content.0.type"),
        ({"messages": [user(TEXT), assistant(USE)]}, "toolu_1. Each `tool_use` block must have a corresponding"),
        ({"messages": [user(TEXT), assistant(USE), user(TEXT)]}, "without `tool_result` blocks immediately after"),
        ({"messages": [user(TEXT), assistant(USE), user(TEXT, RESULT)]}, "without `tool_result` blocks"),
        ({"messages": [user(TEXT), assistant(USE), user(RESULT, OTHER)]}, "unexpected `tool_use_id`"),
        ({"messages": [user(TEXT), assistant(USE), user(RESULT, RESULT)]}, "single result"),
        ({"messages": [user(RESULT)]}, "messages.0.content.0: unexpected `tool_use_id`"),
        ({"messages": [user(TEXT), assistant(USE, USE), user(RESULT)]}, "ids must be unique"),
        ({"messages": [user(TEXT), assistant({**USE, "id": "a b"}), user(RESULT)]}, "tool_use.id"),
        ({"messages": [user(TEXT), assistant(USE), user(RESULT)], "tools": []}, "must define tools"),
        ({"messages": [user(TEXT), assistant({"type": "text", "text": "And "})]}, "trailing whitespace"),
        ({"tools": [TOOL, TOOL]}, "Tool names must be unique"),
        ({"tools": [{**TOOL, "name": "get order"}]}, "tools.0.custom.name"),
        ({"tools": [{"name": "get_order"}]}, "input_schema: Field required"),
        ({"tool_choice": {"type": "tool", "name": "fly"}}, "Tool 'fly' not found"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra_body": {"colour": "red"}}, "colour: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_wrong(sdk: Anthropic, given: dict[str, Any], says: str) -> None:
    right: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [user(TEXT)], "tools": [TOOL]}

    with pytest.raises(anthropic.BadRequestError) as refused:
        sdk.messages.create(**right | given)

    assert says in refused.value.message
    assert refused.value.type == "invalid_request_error"
    assert refused.value.request_id


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"anthropic-version": "2023-06-01"}, 401, "authentication_error"),
        ({"anthropic-version": "2023-06-01", "x-api-key": "invalid"}, 401, "authentication_error"),
        ({"x-api-key": "k"}, 400, "invalid_request_error"),
    ],
)
def test_a_caller_who_is_not_known_is_refused(url: str, headers: dict[str, str], status: int, kind: str) -> None:
    answer = httpx.post(f"{url}/v1/messages", json={}, headers=headers)

    assert answer.status_code == status
    assert answer.json()["error"]["type"] == kind
    assert answer.json()["request_id"] == answer.headers["request-id"]


def test_a_request_past_the_size_limit_is_refused(sdk: Anthropic) -> None:
    with pytest.raises(anthropic.RequestTooLargeError):
        sdk.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x" * 33 * 1024 * 1024}])


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (lambda url: httpx.get(f"{url}/v1/nothing"), 404),
        (lambda url: httpx.get(f"{url}/v1/messages"), 405),
    ],
)
def test_a_wrong_address_is_answered_in_the_shape_of_the_api(
    url: str, call: Callable[[str], httpx.Response], status: int
) -> None:
    answer = call(url)

    assert answer.status_code == status
    assert answer.json()["type"] == "error"


def test_a_body_that_is_not_json_is_refused(url: str) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}

    answer = httpx.post(f"{url}/v1/messages", content=b"{", headers=headers)

    assert answer.status_code == 400
    assert "not valid JSON" in answer.json()["error"]["message"]
