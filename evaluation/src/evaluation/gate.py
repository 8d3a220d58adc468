"""The policy's gate tried either side of every limit of a pack, without any service."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from contracts.parts import CallQuote, Effect, Needs, QuoteFacts
from policy.limits import About
from policy.pack import PolicyPack
from policy.rules import AskPeople, Refuse, judge

_NOW = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_ABOUT = About(tenant="tenant", profile="support", customer="customer", now=_NOW)


@dataclass(frozen=True, slots=True)
class Trial:
    """One turn that refunds these amounts (minor units) to one customer, what the pack says of it, and what became."""

    amounts: tuple[int, ...]
    expected: str
    found: str

    @property
    def right(self) -> bool:
        return self.expected == self.found


def trials(pack: PolicyPack) -> Iterator[Trial]:
    """Each limit alone, one unit above it, both split in two, and what is no amount at all."""
    limits = [pack.refund.automatic_up_to, *(tier.up_to for tier in pack.refund.tiers)]
    for amount in (amount for limit in limits for amount in (limit, limit + 1)):
        for amounts in ((amount,), (amount // 2, amount - amount // 2)):
            yield Trial(amounts, _expected(amount, pack), _found(amounts, pack))
    for amount in (0, -1):
        yield Trial((amount,), "refused", _found((amount,), pack))


def _expected(amount: int, pack: PolicyPack) -> str:
    if amount <= pack.refund.automatic_up_to:
        return "runs"
    tier = next((tier for tier in pack.refund.tiers if amount <= tier.up_to), None)
    return _held(tier.needs) if tier else "refused"


def _found(amounts: tuple[int, ...], pack: PolicyPack) -> str:
    """What becomes of the whole turn: one refused, none runs; one held, all wait."""
    judgements = judge([_quote(amounts, at, pack) for at in range(len(amounts))], pack, _ABOUT)
    if any(isinstance(judgement, Refuse) for judgement in judgements):
        return "refused"
    needs = [judgement.needs for judgement in judgements if isinstance(judgement, AskPeople)]
    return _held(needs[-1]) if needs else "runs"


def _quote(amounts: tuple[int, ...], at: int, pack: PolicyPack) -> CallQuote:
    """The refund as the shop would quote it for somebody who never had one: its facts have seen the turn's earlier."""
    total = sum(amounts[: at + 1])
    return CallQuote(
        call_id=f"call-{at}",
        tool="issue_refund",
        kind="write",
        arguments={},
        subject="customer",
        effect=Effect(summary="", object=f"order-{at}", amount_minor=amounts[at], currency=pack.currency),
        facts=QuoteFacts(
            refunded_today_minor=total,
            refunds_today_by_customer=at + 1,
            refunded_today_by_profile_minor=total,
            refunded_today_of_tenant_minor=total,
            refunds_today_of_tenant=at + 1,
            last_refund_at=_NEVER,
            last_declined_at=_NEVER,
            window_from=_NOW - timedelta(days=1),
        ),
        digest="0" * 64,
    )


def _held(needs: Needs) -> str:
    higher = f", one of them a {needs.one_of_role}" if needs.one_of_role else ""
    if needs.count_of_role:
        higher = f", {needs.count_of_role} of them {needs.one_of_role}s"
    return f"held for {needs.people} {needs.role}{higher}"
