"""What tools-shop is asked: its catalogue, and what a call would do if a person changed it."""

import asyncio
from collections.abc import Mapping

from contracts.identity import InvalidToken, Verifier
from contracts.log import Log
from contracts.parts import CallQuote, Json
from contracts.subjects import BadToken, RunKey

from tools_shop.domain import open_turn
from tools_shop.edits import Edit
from tools_shop.toolset import Toolset
from tools_shop.turns import Turn, Turns


class Asked:
    def __init__(self, log: Log, turns: Turns, toolsets: Mapping[str, Toolset], verifier: Verifier) -> None:
        self._log = log
        self._turns = turns
        self._toolsets = toolsets
        self._verifier = verifier

    async def catalogue(self, request: Json) -> Json:
        """The tools of a toolset."""
        toolset = self._toolsets.get(str(request.get("toolset", "shop")))
        if toolset is None:
            return _no(404, "No such toolset", f"This service offers: {', '.join(self._toolsets)}.")
        return toolset.catalogue

    async def quote(self, request: Json) -> Json:
        """{"status": 200, "was": the call as it was quoted last, "quote": what it would do as `edited`}, or why not.

        Nothing is changed and nothing is said. The tenant is the token's, whatever the request names.
        """
        try:
            principal = await asyncio.to_thread(self._verifier.verify, str(request.get("token", "")))
        except InvalidToken as error:
            return _no(403, "Not signed in", str(error))
        if not principal.may("read"):
            return _no(403, "Not yours to see", f"The role {principal.role} may not look into runs. Ask an operator.")
        number, call_id, edited = request.get("turn"), request.get("call_id"), request.get("edited")
        if not isinstance(number, int) or not isinstance(call_id, str) or not isinstance(edited, dict):
            return _no(422, "Not a question", "Give turn (a number), call_id and edited, the arguments as an object.")
        try:
            key = RunKey(principal.tenant, str(request.get("run")))
        except BadToken:
            return _no(404, "No such run", "There is no run of that name.")
        return await self._changed(key, number, call_id, edited)

    async def _changed(self, key: RunKey, number: int, call_id: str, edited: Json) -> Json:
        history = await self._log.read(key)
        if history.head is None:
            return _no(404, "No such run", "There is no run of that name.")
        turn = open_turn(history, number)
        if turn is None:
            return _no(409, "Moved on", f"Turn {number} does not wait for anybody. Nothing was done; reload the run.")
        was = _of(turn.quoted.quotes, call_id)
        if was is None:
            return _no(404, "No such call", f"Turn {number} has no call {call_id[:80]}.")
        edits = {**turn.edits, call_id: Edit(was.digest, edited)}
        toolset = self._toolsets.get(turn.started.toolset)
        changed = Turn.of(key, turn.started, toolset, turn.proposal_id, turn.proposed, edits)
        now = _of(await self._turns.quote(changed, turn.declined.keys() - {call_id}), call_id)
        if now is None:
            raise LookupError(f"Call {call_id} of {key.run} was quoted and has no quote.")
        return {"status": 200, "was": was.model_dump(mode="json"), "quote": now.model_dump(mode="json")}


def _of(quotes: list[CallQuote], call_id: str) -> CallQuote | None:
    return next((quote for quote in quotes if quote.call_id == call_id), None)


def _no(status: int, title: str, detail: str) -> Json:
    return {"status": status, "title": title, "detail": detail}
