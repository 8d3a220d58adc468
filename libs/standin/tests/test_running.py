"""The stand-in as a process, and its mode for benchmarks."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from anthropic import Anthropic, AsyncAnthropic
from standin.director import Director

from .shop import TOOLS

ASK: dict[str, Any] = {"model": "m", "max_tokens": 1000, "tools": TOOLS}
BENCH = "Ticket B-1\nFrom: A B <a@mail.example>\nSubject: bench:2\n\n<ticket>\nabout KX-5\n</ticket>"


@pytest.fixture
def process() -> Iterator[str]:
    """`python -m standin` on a free port, which it says on its first line."""
    started = subprocess.Popen([sys.executable, "-m", "standin", "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        yield started.stdout.readline().split()[-1]
    finally:
        started.terminate()
        started.wait(10)


def test_it_runs_as_a_process_and_says_where(process: str) -> None:
    with Anthropic(base_url=process, api_key="any") as sdk:
        message = sdk.messages.create(**ASK, messages=[{"role": "user", "content": "Hello"}])

    assert httpx.get(f"{process}/healthz").json() == {"status": "ok", "service": "standin"}
    assert message.stop_reason == "end_turn"


async def test_a_bench_ticket_reads_so_often_and_then_replies(director: Director, asdk: AsyncAnthropic) -> None:
    messages: list[Any] = [{"role": "user", "content": BENCH}]
    for _ in range(2):
        answer = await asdk.messages.create(**ASK, messages=messages)
        call = answer.content[-1]
        assert call.type == "tool_use"
        assert call.input == {"order_reference": "KX-5"}
        messages += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "found"}]},
        ]

    last = await asdk.messages.create(**ASK, messages=messages)

    assert last.stop_reason == "end_turn"
    assert await director.asked("B-1") == {0: 1, 1: 1, 2: 1}


async def test_the_agent_answers_over_http_as_it_does_in_hand(asdk: AsyncAnthropic) -> None:
    text = "Ticket T-9\nFrom: Ada Byron <ada@mail.example>\nSubject: Parcel\n\n<ticket>\nWhere is KX-9?\n</ticket>"

    async with asdk.messages.stream(**ASK, messages=[{"role": "user", "content": text}]) as stream:
        answer = await stream.get_final_message()

    assert answer.stop_reason == "tool_use"
    call = answer.content[-1]
    assert call.type == "tool_use"
    assert (call.name, call.input) == ("get_shipment_status", {"order_reference": "KX-9"})
