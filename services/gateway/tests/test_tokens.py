"""The checks of tokens, while one of the issuers does not answer."""

import asyncio
import socket
from pathlib import Path

import jwt
import pytest
from contracts.errors import Outage
from contracts.identity import InvalidToken, Verifier
from contracts.identity import Issuer as Believed
from gateway.tokens import Tokens
from turngate.issuer import AUDIENCE, ISSUER, Issuer

from .conftest import PEOPLE

pytestmark = pytest.mark.timeout(60)
SLOW = "https://slow.example"


def made_up(key: str) -> str:
    return jwt.encode({"iss": SLOW}, "a secret that nobody should believe", headers={"kid": key})


async def test_keys_that_an_issuer_is_slow_to_publish_hold_up_nobody_who_was_believed_before(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    issuer.prepare()
    sam = issuer.issue_to(PEOPLE["sam"])
    with socket.create_server(("127.0.0.1", 0), backlog=32) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/jwks.json"
        issuers = [
            Believed(issuer=ISSUER, jwks=str(issuer.jwks), tenants=["acme"]),
            Believed(issuer=SLOW, jwks=url, tenants=["acme"]),
        ]
        tokens = Tokens(Verifier(issuers, AUDIENCE))
        await tokens.verify(sam)
        waiting = [asyncio.create_task(tokens.verify(made_up(str(number)))) for number in range(32)]
        await asyncio.sleep(0)
        assert {(await tokens.verify(sam)).subject for _ in range(5)} == {"sam"}
        assert not any(task.done() for task in waiting)
        tokens.close()
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, Outage | asyncio.CancelledError)


async def test_a_token_that_was_believed_is_checked_every_time(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "one")
    issuer.prepare()
    tokens = Tokens(Verifier([Believed(issuer=ISSUER, jwks=str(issuer.jwks), tenants=["acme"])], AUDIENCE))
    sam = issuer.issue_to(PEOPLE["sam"])
    await tokens.verify(sam)

    other = Issuer(tmp_path / "two")
    other.prepare()
    issuer.jwks.write_text(other.jwks.read_text())

    for _ in range(2):
        with pytest.raises(InvalidToken):
            await tokens.verify(sam)
    tokens.close()
