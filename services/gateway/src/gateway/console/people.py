"""Signing in the people of the demo, through the embedded issuer. With any other issuer there is no list of people."""

from dataclasses import dataclass
from typing import Any

import httpx

from gateway.problems import Problem

DOES = {
    "operator": "starts runs, watches, stops, takes over; decides nothing",
    "approver": "the same, and decides on what is held",
    "lead": "decides on any hold, raises limits",
    "auditor": "reads everything, changes nothing",
    "admin": "stop switch, subscribers, erasure",
}


@dataclass(frozen=True, slots=True)
class Somebody:
    subject: str
    tenant: str
    role: str
    name: str

    @property
    def does(self) -> str:
        return DOES.get(self.role, "")


class SignIn:
    def __init__(self, url: str | None) -> None:
        self._url = url.rstrip("/") if url else None

    async def people(self) -> dict[str, list[Somebody]]:
        """Who can sign in here, by tenant; customers have no console. Raises a 503 while the issuer is away."""
        if self._url is None:
            return {}
        found: dict[str, list[Somebody]] = {}
        for one in (await self._ask("GET", "/people"))["people"]:
            if one["role"] in DOES:
                who = Somebody(
                    one.get("subject") or one["as"], one["tenant"], one["role"], one.get("name") or one["as"]
                )
                found.setdefault(who.tenant, []).append(who)
        return found

    async def token(self, subject: str, tenant: str) -> tuple[str, int]:
        """A token for one of them, and for how many seconds it holds."""
        if self._url is None:
            raise Problem(404, "No sign-in here", "This gateway signs nobody in by name. Use a token of your issuer.")
        answer = await self._ask("POST", "/token", {"as": subject, "tenant": tenant})
        return answer["access_token"], int(answer.get("expires_in", 3600))

    async def _ask(self, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=5) as client:
                response = await client.request(method, f"{self._url}{path}", json=body)
        except httpx.HTTPError as error:
            raise Problem(
                503, "Sign-in is away", "The issuer of tokens does not answer. Try again in a moment."
            ) from error
        if response.status_code == 404:
            raise Problem(404, "Nobody of that name", "Choose one of the people below.")
        if response.is_error:
            raise Problem(502, "Sign-in failed", "The issuer of tokens refused. Try again in a moment.")
        answer: dict[str, Any] = response.json()
        return answer
