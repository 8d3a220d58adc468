"""A stand-in for the model that listens on loopback, and who directs it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from standin.director import Director
from standin.serving import serving


@pytest.fixture(scope="session")
def standin_url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
async def director(standin_url: str) -> AsyncIterator[Director]:
    async with Director(standin_url) as director:
        yield director
        await director.clear()
