"""The facts of a tenant's own line, one frozen class each: what holds for all its runs."""

from typing import Annotated

from pydantic import Field

from contracts.facts import Fact, said_by
from contracts.parts import Added, Count, Json, Minor, Name, Pack, Person, Text

# By kind, as in the catalogue of the facts of runs.
TENANT_FACTS: dict[str, type[Fact]] = {}


@said_by("approvals", "stop-set", catalogue=TENANT_FACTS)
class StopSet(Fact):
    """From now on no write of this tool (None: of any) is done that takes what its customer is refunded that day above
    this (None: or anything at all)."""

    stop_id: Name
    tool: Name | None = None
    above_minor: Minor | None = None
    reason: Text
    by: Person


@said_by("approvals", "stop-lifted", catalogue=TENANT_FACTS)
class StopLifted(Fact):
    stop_id: Name
    reason: Text = ""
    by: Person


@said_by("approvals", "policy-promoted", catalogue=TENANT_FACTS)
class PolicyPromoted(Fact):
    """From now on policy judges by this pack; `report` is what its promoter was shown.

    warnings: what of it nobody could release, as far as it is known who decides there.
    """

    pack: Pack
    text: Text
    report: Json = {}
    by: Person
    warnings: Added[Annotated[list[Text], Field(max_length=64)]] = None


@said_by("approvals", "budget-set", catalogue=TENANT_FACTS)
class BudgetSet(Fact):
    """What the tenant's model calls may cost a day (UTC); None: no limit."""

    day_micro_usd: Count | None
    by: Person


@said_by("approvals", "customer-erased", catalogue=TENANT_FACTS)
class CustomerErased(Fact):
    """From now on nothing of this customer's is to be known here: `customer` is the shop's id."""

    customer: Name
    by: Person


@said_by("approvals", "subscriber-added", catalogue=TENANT_FACTS)
class SubscriberAdded(Fact):
    """From now on another system hears the tenant's facts, their personal data sealed."""

    subscriber: Name
    by: Person


@said_by("approvals", "subscriber-removed", catalogue=TENANT_FACTS)
class SubscriberRemoved(Fact):
    subscriber: Name
    by: Person
