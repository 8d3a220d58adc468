"""What policy hears and is asked: quotes, decisions and expiries; promoted packs, and whether a pack can be read."""

import asyncio
from collections.abc import Mapping, Sequence

from contracts.answers import No
from contracts.asks import AskCheckPack
from contracts.bus import Answer, Handler
from contracts.events import Draft, Event
from contracts.handler import respond
from contracts.history import History
from contracts.log import Log
from contracts.parts import Json, Person
from contracts.validation import explain
from pydantic import ValidationError

from policy import domain
from policy.pack import InvalidPack, check_currency, parse
from policy.packs import Packs
from policy.reach import unmet


def judging(log: Log, packs: Packs) -> Handler:
    """Each quote, decision and expiry may bring one verdict over its turn."""

    async def judge(event: Event) -> None:
        pack = packs.of(event.key.tenant)

        def react(history: History, event: Event) -> Draft | None:
            return domain.react(history, event, pack)

        await respond(log, event, react)

    return judge


def checking(packs: Packs, known: Mapping[str, Sequence[Person]] | None = None) -> Answer:
    """Whether a text is a pack that this tenant could be judged by, and what of it nobody could release.

    known: by tenant all who decide there, where that is known.
    """

    async def check(request: Json) -> Json:
        try:
            asked = AskCheckPack.model_validate(request)
        except ValidationError as error:
            return _no("Nothing to check", f"{explain(error)}. Nothing was changed.")
        try:
            # In a thread: a text that somebody sends must hold up no turn.
            pack = await asyncio.to_thread(parse, asked.text, source="pack")
            check_currency(pack, source="pack")
        except InvalidPack as error:
            return _no("Not a policy pack", str(error)[:4000])
        currency = packs.currency(asked.tenant) or pack.currency
        if pack.currency != currency:
            why = (
                f"pack, currency: {asked.tenant} pays in {currency}; in {pack.currency} every refund would be refused."
            )
            return _no("Another currency", why)
        answer: Json = {"status": 200, "pack": pack.stamp.model_dump(mode="json")}
        people = (known or {}).get(asked.tenant)
        warnings = unmet(pack, people) if people is not None else []
        return answer | ({"warnings": warnings} if warnings else {})

    return check


def _no(title: str, detail: str) -> Json:
    return No(422, title, detail).on_the_wire()
