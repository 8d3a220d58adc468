"""What tools-shop is asked: its catalogue, and what a call would do if a person changed it."""

import asyncio
from collections.abc import Mapping

from contracts.answers import No, no_such
from contracts.asks import AskQuote
from contracts.identity import InvalidToken, Verifier
from contracts.log import Log
from contracts.parts import CallQuote, Json
from contracts.subjects import BadToken, RunKey
from contracts.validation import explain
from pydantic import ValidationError

from tools_shop.domain import open_turn
from tools_shop.edits import Edit
from tools_shop.toolset import Toolset
from tools_shop.turn import Turn
from tools_shop.turns import Turns
from tools_shop.unit import Unit


class Asked:
    def __init__(self, log: Log, turns: Turns, toolsets: Mapping[str, Toolset], verifier: Verifier) -> None:
        self._log = log
        self._turns = turns
        self._toolsets = toolsets
        self._verifier = verifier

    async def catalogue(self, request: Json) -> Json:
        """The tools of a toolset, in words that speak of the currency in the way of the locale, if they are named."""
        toolset = self._toolsets.get(str(request.get("toolset", "shop")))
        if toolset is None:
            return No(404, "No such toolset", f"This service offers: {', '.join(self._toolsets)}.").on_the_wire()
        return toolset.of(Unit(*(str(request.get(name) or "")[:64] for name in ("currency", "locale")))).catalogue

    async def quote(self, request: Json) -> Json:
        """{"status": 200, "was": the call as it was quoted last, "quote": what it would do as `edited`}, or why not.

        Nothing is changed and nothing is said. The tenant is the token's, whatever the request names.
        """
        answer = await self._quote(request)
        return answer.on_the_wire() if isinstance(answer, No) else answer

    async def _quote(self, request: Json) -> Json | No:
        try:
            principal = await asyncio.to_thread(self._verifier.verify, str(request.get("token", "")))
        except InvalidToken as error:
            return No(403, "Not signed in", str(error))
        if not principal.may("read"):
            return No(403, "Not yours to see", f"The role {principal.role} may not look into runs. Ask an operator.")
        try:
            ask = AskQuote.model_validate(request)
        except ValidationError as error:
            return No(422, "Not a question", explain(error))
        try:
            return await self._changed(RunKey(principal.tenant, ask.run), ask)
        except BadToken:
            return no_such("run")

    async def _changed(self, key: RunKey, ask: AskQuote) -> Json | No:
        history = await self._log.read(key)
        if history.head is None:
            return no_such("run")
        turn = open_turn(history, ask.turn)
        if turn is None:
            return No(409, "Moved on", f"Turn {ask.turn} does not wait for anybody. Nothing was done; reload the run.")
        was = _of(turn.quoted.quotes, ask.call_id)
        if was is None:
            return No(404, "No such call", f"Turn {ask.turn} has no call {ask.call_id[:80]}.")
        edits = {**turn.edits, ask.call_id: Edit(was.digest, ask.edited)}
        toolset = self._toolsets.get(turn.started.toolset)
        changed = Turn.of(key, turn.started, toolset, turn.proposal_id, turn.proposed, edits)
        now = _of(await self._turns.quote(changed, turn.declined.keys() - {ask.call_id}), ask.call_id)
        if now is None:
            raise LookupError(f"Call {ask.call_id} of {key.run} was quoted and has no quote.")
        return {"status": 200, "was": was.model_dump(mode="json"), "quote": now.model_dump(mode="json")}


def _of(quotes: list[CallQuote], call_id: str) -> CallQuote | None:
    return next((quote for quote in quotes if quote.call_id == call_id), None)
