"""Every call of the HTTP interface, as every role, as another tenant, and with tokens that are not to be believed."""

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from contracts.identity import ROLES
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from gateway import authority
from turngate.issuer import CLIENT, ISSUER, Issuer

from .conftest import PEOPLE, World
from .facts import TOM, refund, started, story_to_the_hold

pytestmark = pytest.mark.timeout(120)
STREAM = {"Accept": "text/event-stream"}
# What stands for a parameter of a path, and what a call sends to get as far as the thing that it names.
NAMES = {"run": "TCK-2004-1", "reference": "TCK-2004", "ref": "TCK-2004"}
BODIES: dict[str, Any] = {
    "POST /v1/tickets": {"customer_email": "g@mail.example", "subject": "A lamp", "body": "It is dark."},
    "POST /v1/runs/{run}/decisions": {
        "turn": 2, "call_id": "c-2", "digest": refund("c-2").digest, "decision": "approve",
    },
    "POST /v1/runs/{run}/quotes": {"turn": 2, "call_id": "c-2", "edited": {"amount_pence": 100}},
    "POST /v1/runs/{run}/messages": {"text": "Hello"},
}  # fmt: skip
PLANTED = "planted-7f3a"


@dataclass(frozen=True)
class Operation:
    """One method of one path of the OpenAPI document."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def names_something(self) -> bool:
        return "{" in self.path

    @property
    def url(self) -> str:
        return re.sub(r"{(\w+)[^}]*}", lambda name: NAMES.get(name[1], "x"), self.path)

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")


@dataclass(frozen=True)
class Answer:
    status: int
    text: str


async def operations(world: World) -> list[Operation]:
    """From the OpenAPI document, those that ask for a scope."""
    async with httpx.AsyncClient(base_url=world.url) as anyone:
        paths = (await anyone.get("/openapi.json")).json()["paths"]
    found = [Operation(method.upper(), path) for path, methods in paths.items() for method in methods]
    return [one for one in found if str(one) not in authority.OPEN]


async def call(client: httpx.AsyncClient, one: Operation, body: Any = None, **more: Any) -> Answer:
    """The answer, and of a stream what it says before it falls silent."""
    sent = {"json": body} if one.writes and body is not None else {}
    async with client.stream(one.method, one.url, **sent, **more) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            return Answer(answer.status_code, (await answer.aread()).decode() + str(answer.headers))
        text = ""
        async for piece in answer.aiter_text():
            text += piece
            if "still here" in text or "event: hb" in text:
                break
        return Answer(answer.status_code, text)


def named(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def as_role(world: World, home: Path, role: str, tenant: str, **claims: Any) -> AsyncIterator[httpx.AsyncClient]:
    token = Issuer(home / "issuer").issue(f"some-{role}", tenant, role, **claims)
    async with httpx.AsyncClient(base_url=world.url, headers=named(token), timeout=20) as client:
        yield client


async def plant(world: World) -> None:
    """A held run of acme with words that no other tenant may read."""
    customer = TOM.model_copy(update={"name": f"Tom {PLANTED}", "email": f"{PLANTED}@mail.example"})
    await world.ticket(subject=f"Jacket {PLANTED}", body=f"Refund {PLANTED}", customer=customer)
    first = started(subject=f"Jacket {PLANTED}", body=f"Refund {PLANTED}")
    await world.others.say("TCK-2004-1", first, *story_to_the_hold()[1:])
    await world.seen("TCK-2004-1")
    no_such = {"status": 404, "title": "No such stop", "detail": "There is no such stop. Nothing was lifted."}
    await world.answering("approvals", "ask.approvals.tenant", no_such)
    await world.answering("agent-runner", "ask.agent.spend", {"status": 200, "days": []})


# The page of the docs


def documented(title: str) -> dict[str, set[str]]:
    """By call: the roles that the docs mark."""
    page = (Path(__file__).parents[3] / "docs" / "authority.md").read_text()
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    head, _, *rows = [line.strip("|").split("|") for line in section.strip().splitlines()]
    roles = [cell.strip() for cell in head[2:]]
    return {
        row[0].strip(" `"): {role for role, cell in zip(roles, row[2:], strict=True) if cell.strip() == "yes"}
        for row in rows
    }


def test_the_docs_say_what_the_routes_ask_for() -> None:
    page = Path(__file__).parents[3] / "docs" / "authority.md"
    assert page.read_text() == authority.page(), "python -m gateway.authority > docs/authority.md"


def test_every_route_asks_for_a_scope_or_is_open_for_a_reason() -> None:
    undeclared = {str(call) for call in authority.calls() if call.scopes is None}
    assert undeclared - set(authority.OPEN) == set()
    known = {str(call) for call in authority.calls()}
    assert set(authority.OPEN) - undeclared == {"GET /openapi.json", "GET /static/{path}"}
    assert {str(call) for call in authority.calls() if call.scopes} & set(authority.OPEN) == set()
    assert len(known) == len(authority.calls())


def test_no_route_asks_for_what_nobody_has() -> None:
    every = frozenset[str]().union(*ROLES.values())
    assert {scope for call in authority.calls() for scope in call.scopes or ()} <= every


# Roles


async def test_each_role_may_call_exactly_what_the_docs_mark(world: World, tmp_path: Path) -> None:
    await plant(world)
    marked = documented("The API")
    found = await operations(world)
    assert {str(one) for one in found} == set(marked)
    for role in ROLES:
        async with as_role(world, tmp_path, role, "acme") as client:
            for one in found:
                answer = await call(client, one, {})
                if role in marked[str(one)]:
                    assert answer.status not in (401, 403), f"{role} {one}: {answer.text}"
                else:
                    assert answer.status == 403, f"{role} {one}: {answer.text}"
                    assert "Not for your role" in answer.text
                    assert PLANTED not in answer.text


async def test_each_role_may_use_exactly_those_pages_and_forms(world: World, tmp_path: Path) -> None:
    await plant(world)
    for role in ROLES:
        async with as_role(world, tmp_path, role, "acme") as client:
            for name, roles in documented("The console's pages, forms and streams").items():
                answer = await call(client, Operation(*name.split(" ")), {})
                assert (answer.status not in (401, 403)) == (role in roles), f"{role} {name}: {answer.text}"


async def test_a_token_with_fewer_scopes_may_do_less(world: World, tmp_path: Path) -> None:
    marked = documented("The API")
    await plant(world)
    async with as_role(world, tmp_path, "lead", "acme", scope="read spend") as client:
        for one in await operations(world):
            answer = await call(client, one, {})
            assert (answer.status == 403) == (one.writes or "lead" not in marked[str(one)]), f"{one}: {answer.text}"


async def test_a_token_with_scopes_that_its_role_has_not_may_do_no_more(world: World, tmp_path: Path) -> None:
    await plant(world)
    every = " ".join(sorted(frozenset[str]().union(*ROLES.values())))
    marked = documented("The API")
    for role in ("customer", "operator", "auditor"):
        async with as_role(world, tmp_path, role, "acme", scope=every) as client:
            for one in await operations(world):
                if role not in marked[str(one)]:
                    assert (await call(client, one, {})).status == 403, f"{role} {one}"


# Tenants


async def test_another_tenants_token_reads_and_changes_nothing(world: World, tmp_path: Path) -> None:
    await plant(world)
    history = (await world.runs.history("acme", "TCK-2004-1")).events
    here: dict[str, str] = {}
    seen = {"Last-Event-ID": str(history[-1].sequence)}
    pages = [Operation(*name.split(" ")) for name in documented("The console's pages, forms and streams")]
    everywhere = [*await operations(world), *pages]

    async def try_all(role: str) -> None:
        async with as_role(world, tmp_path, role, "globex") as client:
            for one in everywhere:
                for way in [here, seen, STREAM, STREAM | seen] if one.names_something else [here, seen]:
                    answer = await call(client, one, BODIES.get(str(one), {}), headers=way)
                    assert PLANTED not in answer.text, f"{role} {one}"
                    assert "TCK-2004-1" not in answer.text, f"{role} {one}"
                    assert answer.status < 500
                    if one.names_something and one not in pages:
                        assert answer.status in (403, 404), f"{role} {one}: {answer.text} (is its body in BODIES?)"
                    if one.path == "/v1/events" and way is seen:
                        assert answer.status in (400, 403), f"{role} {one}: another tenant's place"

    await asyncio.gather(*map(try_all, ROLES))
    assert (await world.runs.history("acme", "TCK-2004-1")).events == history


@pytest.mark.parametrize(
    "place", ["/v1/events", "/v1/events?after=0", "/console/stream/inbox", "/console/stream/inbox?after=1"]
)
async def test_a_stream_that_goes_on_says_nothing_of_another_tenant(world: World, place: str) -> None:
    await plant(world)
    await world.ticket("GLB-1", tenant="globex")
    async with world.client("gwen") as gwen, gwen.stream("GET", place, headers=STREAM) as stream:
        pieces = stream.aiter_text()
        heard = await anext(pieces)
        await world.others.say("TCK-7-1", started("TCK-7", subject=f"Late {PLANTED}"))
        await world.others.say("GLB-1-1", started("GLB-1", subject="Globex's own"), tenant="globex")
        async with asyncio.timeout(20):
            while "GLB-1" not in heard:
                heard += await anext(pieces)
    assert PLANTED not in heard
    assert "TCK-" not in heard


@pytest.mark.parametrize("tenant", ["globex", "acme"])
async def test_nobody_chooses_a_tenant_beside_their_token(world: World, tenant: str) -> None:
    await plant(world)
    async with world.client("gwen") as gwen:
        for one in await operations(world):
            body = BODIES.get(str(one), {})
            for chosen in (
                {"params": {"tenant": tenant}},
                {"headers": {"X-Tenant": tenant}},
                {"headers": {"Tenant-Id": tenant}},
            ):
                answer = await call(gwen, one, body, **chosen)
                assert answer.status == 400, f"{one} {chosen}: {answer.text}"
                assert PLANTED not in answer.text
            if one.writes:
                answer = await call(gwen, one, body | {"tenant": tenant})
                assert answer.status in (403, 404, 422), f"{one}: {answer.text}"
                assert PLANTED not in answer.text


# Tokens


def encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def false_tokens(issuer: Issuer) -> Iterator[tuple[str, str]]:
    """Each of an approver's token, but for one thing."""
    private = load_pem_private_key((issuer.home / "private.pem").read_bytes(), None)
    assert isinstance(private, Ed25519PrivateKey)
    kid = json.loads(issuer.jwks.read_text())["keys"][0]["kid"]
    now = int(time.time())
    right = {
        "iss": ISSUER, "sub": "sam", "aud": "turngate", "tenant": "acme", "role": "approver", "iat": now - 5,
        "nbf": now - 5, "exp": now + 600, "jti": "t-1",
    }  # fmt: skip
    head, body, signature = issuer.issue_to(PEOPLE["sam"]).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))

    def signed(header: dict[str, Any] | None = None, key: Ed25519PrivateKey = private, **changes: Any) -> str:
        said = {name: value for name, value in (right | changes).items() if value is not None}
        return jwt.encode(said, key, "EdDSA", headers={"kid": kid} | (header or {}))

    public = private.public_key()
    stranger = Ed25519PrivateKey.generate()
    hmac = jwt.get_algorithm_by_name("HS256")
    yield "alg none", f"{encoded({'alg': 'none', 'kid': kid})}.{encoded(right)}."
    yield "alg none, the signature kept", f"{encoded({'alg': 'none', 'kid': kid})}.{body}.{signature}"
    for name, form in (("PEM", PublicFormat.SubjectPublicKeyInfo), ("raw", PublicFormat.Raw)):
        secret = public.public_bytes(Encoding.PEM if name == "PEM" else Encoding.Raw, form)
        begin = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{encoded(right)}"
        made = base64.urlsafe_b64encode(hmac.sign(begin.encode(), secret)).rstrip(b"=").decode()
        yield f"HS256 with the public key ({name})", f"{begin}.{made}"
    yield "role raised by hand", f"{head}.{encoded(claims | {'role': 'lead'})}.{signature}"
    yield "tenant changed by hand", f"{head}.{encoded(claims | {'tenant': 'globex'})}.{signature}"
    yield "scope raised by hand", f"{head}.{encoded(claims | {'scope': 'read decide policy stop'})}.{signature}"
    yield "limit raised by hand", f"{head}.{encoded(claims | {'limit_minor': 10**9})}.{signature}"
    yield "another issuer", signed(iss="https://evil.example")
    yield "another audience", signed(aud="another")
    yield "an ID token of the console", issuer.identify(PEOPLE["sam"], CLIENT, "n")
    yield "another key under the name of ours", signed(key=stranger)
    yield (
        "another key in its own header",
        signed({"jwk": json.loads(jwt.get_algorithm_by_name("EdDSA").to_jwk(stranger.public_key()))}, stranger),
    )
    yield "a key's name that is a path", signed({"kid": "../../../dev/null"}, stranger)
    yield "a key's name that is a query", signed({"kid": f"{kid}' or '1'='1"})
    yield "expired", signed(exp=now - 61)
    yield "not yet valid", signed(nbf=now + 600)
    yield "without an end", signed(exp=None)
    yield "a tenant that is not the issuer's", signed(tenant="initech")
    yield "no tenant", signed(tenant=None)
    yield "two tenants", signed(tenant=["acme", "globex"])
    yield "an unknown role", signed(role="root")
    yield "a limit that cannot be read", signed(limit_minor="unlimited")


async def test_a_false_token_opens_nothing(world: World, tmp_path: Path) -> None:
    await plant(world)
    issuer = Issuer(tmp_path / "issuer")
    found = await operations(world)
    ways: list[Callable[[str], dict[str, str]]] = [
        named,
        lambda token: {"Cookie": f"turngate_session={token}", "Sec-Fetch-Site": "same-origin"},
    ]
    async with httpx.AsyncClient(base_url=world.url, timeout=20) as client:

        async def try_all(what: str, token: str) -> None:
            for one in found:
                for way in ways:
                    answer = await call(client, one, BODIES.get(str(one), {}), headers=way(token))
                    assert answer.status == 401, f"{what}, {one}: {answer.text}"
                    assert PLANTED not in answer.text

        await asyncio.gather(*(try_all(what, token) for what, token in false_tokens(issuer)))
    right = named(issuer.issue_to(PEOPLE["sam"]))
    async with httpx.AsyncClient(base_url=world.url, headers=right, timeout=20) as sam:
        assert (await sam.get("/v1/runs/TCK-2004-1")).status_code == 200


# Cookies


async def test_a_cookie_writes_nothing_for_another_site(world: World) -> None:
    await plant(world)
    history = (await world.runs.history("acme", "TCK-2004-1")).events
    forms = [Operation(call.method, call.path) for call in authority.calls() if call.method != "GET" and call.scopes]
    cookie = {"turngate_session": world.token("sam")}
    async with httpx.AsyncClient(base_url=world.url, cookies=cookie, timeout=20) as sam:
        for one in forms:
            for site in (
                {},
                {"Origin": "null"},
                {"Origin": "https://evil.example"},
                {"Origin": world.url.replace("http:", "https:")},
                {"Origin": world.url, "Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"},
                {"Sec-Fetch-Site": "none"},
                {"Referer": world.url},
            ):
                answer = await call(sam, one, BODIES.get(str(one), {}), headers=site)
                assert answer.status == 403, f"{one} {site}: {answer.text}"
                assert "another site" in answer.text
    assert (await world.runs.history("acme", "TCK-2004-1")).events == history
