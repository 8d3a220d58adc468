"""escalate_to_human: hands the ticket to a person. Never refused for how it was asked."""

import hashlib

from contracts.parts import Effect

from tools_shop.arguments import note
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Done, Refusal
from tools_shop.toolset import Write, object_schema
from tools_shop.transaction import Lock, Transaction

_MOST_NOTES = 20
_OPEN = "select id from shop.escalations where run = %s"
_ESCALATE = """
insert into shop.escalations (tenant, run, id, ticket, customer_id, notes) values (%s, %s, %s, %s, %s, array[%s])
on conflict (tenant, run) do update set notes =
    case when excluded.notes[1] = any(escalations.notes) then escalations.notes
         else (escalations.notes || excluded.notes)[:%s] end
returning id
"""


async def apply(tx: Transaction, arguments: Arguments, caller: Caller, call_id: str) -> Done | Refusal:
    known = await tx.row(_OPEN, [caller.run])
    case = known["id"] if known else case_of(caller.tenant, caller.run)
    written = f"{arguments['summary']} Reason: {arguments['reason']}"
    await tx.row(_ESCALATE, [caller.tenant, caller.run, case, caller.ticket, tx.customer, written, _MOST_NOTES])
    said = "was open already; the note was added to it" if known else "was opened"
    return Done(
        f"Passed to a person: case {case} {said}. A colleague will read the ticket and answer the customer.",
        Effect(
            summary=f'Pass {caller.ticket} to a person. The agent wrote: "{written}"',
            object=caller.ticket,
            before={"case": case if known else None},
            after={"case": case},
        ),
        tx.customer,
        {"case": case, "added": bool(known)},
    )


def case_of(tenant: str, run: str) -> str:
    """What people call the case of a run: long enough for no two runs of a tenant to have the same."""
    return f"ESC-{hashlib.sha256(f'{tenant} {run}'.encode()).hexdigest()[:16].upper()}"


def _locks(arguments: Arguments) -> frozenset[Lock]:
    return frozenset()


ESCALATE_TO_HUMAN = Write(
    name="escalate_to_human",
    description=(
        "Passes the ticket to a person: complaints, legal matters, chargebacks, safety, anything that you may not or "
        "cannot do, and whenever the customer asks for a person."
    ),
    takes="summary (text) and reason (text)",
    schema=object_schema(
        ["summary", "reason"],
        summary={"type": "string", "description": "What the customer wants and what was found, for the colleague."},
        reason={"type": "string", "description": "Why a person is needed, in a few words."},
    ),
    fields={
        "summary": note("The agent passed this on without a note.", 2000),
        "reason": note("None was given.", 500),
    },
    hint="Who takes the case, and how urgent it is, is not for a call to say.",
    forgiving=True,
    free_text=frozenset({"summary", "reason"}),
    locks=_locks,
    apply=apply,
    harmless=True,  # what remains to be done when all is stopped
)
