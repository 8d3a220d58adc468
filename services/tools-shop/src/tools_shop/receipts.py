"""Receipts: what a turn did, kept in the transaction that did it, so that it is told again and never done again."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.parts import CallResult

from tools_shop.caller import Caller
from tools_shop.transaction import Connection

_NAMESPACE = uuid.UUID("1f6f8a52-5d0e-5b57-9a33-5f0b6e1f0b8d")
_KEEP = """
insert into shop.receipts (tenant, run, turn, id, proposal_id, attempt, digests, results, approved_by)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s)
on conflict on constraint receipts_pkey do nothing returning id
"""
_FIND = """
select id::text, proposal_id::text, attempt, digests, results, approved_by
from shop.receipts where run = %s and turn = %s
"""


class ReceiptMismatch(Exception):
    """There is a receipt for this turn, but for another proposal or other digests: somebody has to look into it."""


class WrittenAlready(Exception):
    """A concurrent execution of the same turn committed first."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Of one executed turn. `digests` are those that were forwarded, by call id."""

    id: str
    proposal_id: str
    attempt: int
    digests: Mapping[str, str]
    results: Sequence[CallResult]
    approved_by: Mapping[str, Sequence[str]]

    def must_be_for(self, proposal_id: str, digests: Mapping[str, str]) -> None:
        if self.proposal_id != proposal_id or dict(self.digests) != dict(digests):
            raise ReceiptMismatch(
                f"Receipt {self.id} was given for another turn than the one that was forwarded. Nothing was done. "
                "Compare the receipt's proposal and digests with the log before going on."
            )


def of_row(row: Mapping[str, Any]) -> Receipt:
    return Receipt(
        row["id"],
        row["proposal_id"],
        row["attempt"],
        row["digests"],
        [CallResult.model_validate(result) for result in row["results"]],
        row["approved_by"],
    )


def new(caller: Caller, proposal_id: str, attempt: int, digests: Mapping[str, str], results: Sequence[CallResult],
        approved_by: Mapping[str, Sequence[str]]) -> Receipt:  # fmt: skip
    name = f"{caller.tenant}/{caller.run}/{caller.turn}"
    return Receipt(str(uuid.uuid5(_NAMESPACE, name)), proposal_id, attempt, digests, results, approved_by)


async def keep(connection: Connection, caller: Caller, receipt: Receipt) -> None:
    """Raises WrittenAlready if another execution of the turn came first: then roll back, and answer with its own."""
    results = [result.model_dump(mode="json") for result in receipt.results]
    cursor = await connection.execute(
        _KEEP,
        [caller.tenant, caller.run, caller.turn, receipt.id, receipt.proposal_id, receipt.attempt,
         json.dumps(dict(receipt.digests)), json.dumps(results), json.dumps(dict(receipt.approved_by))],
    )  # fmt: skip
    if await cursor.fetchone() is None:
        raise WrittenAlready(f"{caller.run}, turn {caller.turn} has its receipt already.")


async def find(connection: Connection, caller: Caller) -> Receipt | None:
    """The receipt of the turn, inside a transaction that is bound to its tenant."""
    cursor = await connection.execute(_FIND, [caller.run, caller.turn])
    row = await cursor.fetchone()
    return of_row(row) if row else None
