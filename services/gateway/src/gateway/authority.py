"""Who may call what: what the routes ask for, held against what the roles have; prints the page of the docs."""

from dataclasses import dataclass

from contracts.identity import ROLES
from fastapi.routing import APIRoute

from gateway.access import scopes_of
from gateway.web import CONSOLE, PLAIN, ROUTERS

# What needs no sign-in, and why. Everything else asks for a scope; a test finds what does neither.
OPEN = {
    "GET /healthz": "whether the process lives",
    "GET /readyz": "whether it can answer",
    "GET /metrics": "counts, without a tenant, a name or a text",
    "GET /asyncapi.json": "what the facts are made of",
    "GET /openapi.json": "this interface",
    "GET /": "leads to the tickets",
    "GET /sign-in": "leads to the issuer",
    "GET /sign-in/done": "comes back from it: with the browser's own state, nonce and PKCE verifier, or not at all",
    "POST /sign-out": "forgets who was signed in; from the console's own pages only",
    "GET /signed-out": "says so",
    "GET /static/{path}": "styles and scripts",
}


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    scopes: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def may(self, role: str) -> bool:
        return self.scopes is not None and not ROLES[role].isdisjoint(self.scopes)


def calls() -> list[Call]:
    """Every route, as it declares itself."""
    return [
        Call(method, route.path, scopes_of(route.dependant))
        for router in (*ROUTERS, PLAIN, *CONSOLE)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in sorted(route.methods or ())
    ]


def page() -> str:
    found = calls()
    api = [call for call in found if call.path.startswith("/v1")]
    console = [call for call in found if call.scopes and call not in api]
    return f"""# Who may call what

Made by `python -m gateway.authority` from what each route declares. A test holds this page against the code, and calls
every route of the API as every role. A call of a role that is not marked is answered with 403, one without a token with
401; another tenant's run or ticket is answered as one that does not exist: 404.

A token can carry less than its role has (its `scope`), never more. What is marked may still be refused for what it is
about: nobody decides on a run that they started or a ticket that is their own, beyond their own limit, or twice; a
customer writes in their own chats only; who may release what a customer asks for writes to them in a run that was taken
over, and never in their name; a lead raises a run's limits, others can lower them.

Who reads without `personal` is shown pseudonyms for customers and texts without what is found of them, and facts as
they are sealed: [the audit](audit.md) says how, and what stays.

## The API

{_table(api)}
## The console's pages, forms and streams

{_table(console)}
## What needs no sign-in

| call | what it gives |
|---|---|
{"".join(f"| `{call}` | {what} |{chr(10)}" for call, what in OPEN.items())}
## What the roles have

| role | scopes |
|---|---|
{"".join(f"| {role} | {', '.join(sorted(scopes))} |{chr(10)}" for role, scopes in ROLES.items())}"""


def _table(calls: list[Call]) -> str:
    head = f"| call | needs | {' | '.join(ROLES)} |\n|---|---|{'---|' * len(ROLES)}\n"
    return head + "".join(f"| `{call}` | {' or '.join(call.scopes or ())} | {_marks(call)} |\n" for call in calls)


def _marks(call: Call) -> str:
    return " | ".join("yes" if call.may(role) else "" for role in ROLES)


if __name__ == "__main__":
    print(page(), end="")
