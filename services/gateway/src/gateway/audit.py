"""Who did what, on whose behalf and why: one row of it, and what of a row is not for everybody."""

import re
from datetime import datetime
from typing import Any, Literal

from contracts.addresses import same_mailbox
from contracts.events import Event
from contracts.parts import Customer, Pack
from pydantic import BaseModel

from gateway.redaction import AHEAD, Redaction

_BLANKS = re.compile(r"[^\S\u00a0\u202f]+")
LONGEST = 500  # characters of a text in a row
TEXTS = ("did", "what", "why", "releases")
Actor = Literal["person", "customer", "agent", "policy", "shop", "system"]


class Row(BaseModel):
    """One thing that was done. `who` did it; an agent, the policy and the shop act for `on_behalf_of`, who started the
    run, and it concerns `customer`. `released_by` are the people who approved what was carried out.

    object is what of the shop's it is about: the order. amount_minor is how much: of an approval with changes what they
    came to, none before that is known. asked_minor is what had been asked for, where that was changed. moved_minor is
    what was paid by it. released_minor is what the turn moves all together that a decision released, in `currency`, and
    releases names it with its calls; empty for a decision that releases nothing by itself, as others have to follow.
    """

    sequence: int
    event: str
    kind: str
    at: datetime
    run: str | None = None
    ticket: str | None = None
    actor: Actor
    who: str
    who_issuer: str | None = None
    role: str | None = None
    did: str
    what: str = ""
    object: str | None = None
    amount_minor: int | None = None
    asked_minor: int | None = None
    moved_minor: int | None = None
    currency: str | None = None
    customer: str | None = None
    on_behalf_of: str | None = None
    released_by: list[str] = []
    why: str = ""
    policy: str | None = None
    releases: str = ""
    released_minor: int | None = None


def redacted(row: Row, redaction: Redaction, customer: Customer | None) -> Row:
    """The row for somebody who may not see customers."""
    others = [name for name in (row.who, *row.released_by, row.on_behalf_of, row.object) if name]
    changes: dict[str, Any] = {name: redaction.text(getattr(row, name), customer, others, LONGEST) for name in TEXTS}
    if customer is not None:
        alias = redaction.pseudonym(customer)
        changes["customer"] = alias
        changes |= {"who": alias} if row.actor == "customer" else {}
        for name in ("object", "on_behalf_of"):
            changes |= {name: alias} if _is(customer, getattr(row, name)) else {}
    return row.model_copy(update=changes)


def place(event: Event) -> dict[str, Any]:
    """Where a row is from."""
    return {"sequence": event.sequence, "event": event.id, "kind": event.kind, "at": event.time}


def named(pack: Pack) -> str:
    return f"{pack.name} v{pack.version} {pack.digest[:8]}"


def line(text: str) -> str:
    """On one line, and as much of it as has to be looked through where a row may hold `LONGEST`."""
    # Blanks that hold an amount together stay what they are.
    return _BLANKS.sub(" ", text).strip()[: LONGEST + AHEAD]


def cut(row: Row) -> Row:
    """The row for somebody who may see customers."""
    return row.model_copy(
        update={name: f"{text[:LONGEST]} …" for name in TEXTS if len(text := getattr(row, name)) > LONGEST}
    )


def _is(customer: Customer, named: str | None) -> bool:
    if named is None:
        return False
    ids = {customer.email, customer.name, customer.id, f"cust-{customer.id}"}
    return named in ids or same_mailbox(named, customer.email)
