"""A stand-in that listens on loopback, its director, and the real SDK pointed at it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from anthropic import Anthropic, AsyncAnthropic
from standin.director import Director
from standin.serving import serving


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
async def director(url: str) -> AsyncIterator[Director]:
    async with Director(url) as director:
        yield director
        await director.clear()


@pytest.fixture
def sdk(url: str) -> Iterator[Anthropic]:
    with Anthropic(base_url=url, api_key="test", max_retries=0) as client:
        yield client


@pytest.fixture
async def asdk(url: str) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=url, api_key="test", max_retries=0) as client:
        yield client
