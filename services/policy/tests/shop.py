"""What the tools service does with quotes and guards, in little, and several runs that pay by it at once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from contracts.facts import Fact, TurnForwarded, TurnHeld
from contracts.parts import Guard
from policy.pack import PolicyPack

from .quotes import NEVER, refund
from .told import Told

Refund = tuple[str, int]  # to whom, how much


@dataclass
class Shop:
    """What the tools service does with quotes and guards, in little."""

    paid: list[tuple[str, int, datetime]] = field(default_factory=list)
    receipts: list[tuple[str, int, str]] = field(
        default_factory=list
    )  # who, what they have got today, and by whose word

    def totals(self, customer: str) -> dict[str, int]:
        own = [amount for to, amount, _ in self.paid if to == customer]
        every = [amount for _, amount, _ in self.paid]
        return {
            "refunded_today_by_customer": sum(own),
            "refunds_today_by_customer": len(own),
            "refunded_today_by_profile": sum(every),
            "refunded_today_of_tenant": sum(every),
            "refunds_today_of_tenant": len(every),
        }

    def last(self, customer: str) -> datetime:
        return max((at for to, _, at in self.paid if to == customer), default=NEVER)

    def quote(self, run: Told, calls: list[Refund], attempt: int) -> Fact | None:
        quotes, before = [], Shop(list(self.paid))
        for number, (customer, amount) in enumerate(calls):
            last = self.last(customer)
            before.paid.append((customer, amount, run.now))
            totals = before.totals(customer)
            facts: dict[str, Any] = {
                "refunds_today_by_customer": totals["refunds_today_by_customer"],
                "refunded_today_by_profile_minor": totals["refunded_today_by_profile"],
                "refunded_today_of_tenant_minor": totals["refunded_today_of_tenant"],
                "refunds_today_of_tenant": totals["refunds_today_of_tenant"],
                "last_refund_at": last,
                "last_declined_at": NEVER,
            }
            today = totals["refunded_today_by_customer"]
            quotes.append(refund(f"c{number}", amount, customer=customer, today=today, facts=facts))
        return run.quote(*quotes, attempt=attempt)

    def execute(self, run: Told, calls: list[Refund], forwarded: TurnForwarded) -> bool:
        """Whether it was paid: all of it, if every guard holds with it."""
        ids = [f"c{number}" for number in range(len(calls))]
        runs = {verdict.call_id for verdict in forwarded.verdicts if verdict.verdict == "run"}
        paying = [call for call_id, call in zip(ids, calls, strict=True) if call_id in runs]
        after = Shop([*self.paid, *((customer, amount, run.now) for customer, amount in paying)])
        if not all(self._holds(guard, after) for guard in forwarded.guards):
            return False
        self.paid = after.paid
        words = {verdict.call_id: verdict.reason for verdict in forwarded.verdicts}
        for call_id, (customer, _) in zip(ids, calls, strict=True):
            if call_id in runs:
                today = after.totals(customer)["refunded_today_by_customer"]
                self.receipts.append((customer, today, words[call_id]))
        return True

    def _holds(self, guard: Guard, after: "Shop") -> bool:
        if guard.name.startswith("last"):
            last = self.last(guard.subject) if guard.name == "last_refund_of_customer" else NEVER
            return int(last.timestamp()) <= guard.at_most
        return after.totals(guard.subject)[guard.name] <= guard.at_most


def all_at_once(
    pack: PolicyPack,
    turns: list[list[Refund]],
    order: Callable[[list[int]], None],
    decide: Callable[[Told], Fact | None],
) -> tuple[Shop, list[Told]]:
    """Every run is quoted before any pays; then they go on one step at a time, in any order."""
    shop, runs = Shop(), [Told(pack) for _ in turns]
    said = [shop.quote(run, calls, 1) for run, calls in zip(runs, turns, strict=True)]
    going = list(range(len(runs)))
    while going:
        order(going)
        one = going.pop()
        run, calls, answer = runs[one], turns[one], said[one]
        if isinstance(answer, TurnHeld):
            said[one] = decide(run)
        elif isinstance(answer, TurnForwarded) and not shop.execute(run, calls, answer):
            said[one] = shop.quote(run, calls, answer.attempt + 1)
        else:
            continue
        if said[one] is not None:
            going.append(one)
    return shop, runs
