"""Who hears what, and over which streams: read by set-up, the services and the permissions of the broker."""

from typing import Any

from contracts import asks
from contracts.facts import CATALOGUE
from contracts.subjects import token
from contracts.tenant_facts import TENANT_FACTS

AUTHORS = {
    "gateway": "desk",
    "agent-runner": "agent",
    "tools-shop": "tools",
    "policy": "policy",
    "approvals": "approvals",
}

# The kinds of fact that each service's durable consumer delivers. The gateway follows the accepted facts instead.
HEARS: dict[str, tuple[str, ...]] = {
    "agent-runner": (
        "desk.run-started",
        "desk.customer-said",
        "tools.turn-executed",
        "policy.turn-refused",
        "agent.reply-given",
        "agent.answer-unfinished",
    ),
    "policy": ("tools.turn-quoted", "approvals.call-decided", "approvals.hold-expired"),
    "tools-shop": ("agent.turn-proposed", "policy.turn-forwarded", "approvals.call-decided"),
    "approvals": ("policy.turn-held",),
    "notifications": (
        "policy.turn-held",
        "approvals.reminder-sent",
        "approvals.hold-escalated",
        "approvals.hold-expired",
    ),
}

# Lines that a service has beside its own, each with a consumer, timers and dead letters of its own: what waits there
# (a receiver that is slow, say) is in nobody's way.
BESIDE: dict[str, tuple[str, ...]] = {"approvals": ("notifications",)}

# The kinds of tenants' facts that a service has to have heard, whichever of its processes it is: what it then keeps.
HEARS_TENANTS: dict[str, tuple[str, ...]] = {
    "agent-runner": ("approvals.budget-set",),
    "tools-shop": ("approvals.stop-set", "approvals.stop-lifted"),
}
# Who says, and who reads along in every process.
SAYS_TENANTS = ("approvals",)
READS_TENANTS = ("policy", "gateway", "tools-shop", "agent-runner")

# Requests that a service answers.
ANSWERS: dict[str, tuple[str, ...]] = {
    "approvals": (asks.DECIDE, asks.OF_TENANT),
    "policy": (asks.CHECK_PACK,),
    "tools-shop": (asks.CATALOGUE, asks.QUOTE),
    "agent-runner": (asks.SPEND,),
}

# Requests that a service makes.
ASKS: dict[str, tuple[str, ...]] = {
    "gateway": (
        asks.DECIDE,
        asks.OF_TENANT,
        asks.QUOTE,
        asks.CATALOGUE,
        asks.SPEND,
    ),
    "approvals": (asks.QUOTE, asks.CHECK_PACK),
    "agent-runner": (asks.CATALOGUE,),
}

HEARS_TIMERS = ("approvals", "agent-runner", "notifications")
HEARS_DEAD = ("agent-runner", "gateway")

# Who may see personal data: the keys that the runs' facts are sealed with. Policy judges without it.
OPENS = ("gateway", "agent-runner", "tools-shop", "approvals")
# Who begins runs makes their keys. Nobody here erases them: that is the set-up user's.
MAKES_KEYS = ("gateway",)


def permissions(service: str) -> dict[str, Any]:
    """What a service's broker user may publish and subscribe: its own facts, its own messages, and no more."""
    author = AUTHORS[service]
    publish = [
        *(f"run.*.*.{kind}" for kind, fact in CATALOGUE.items() if fact.author == author),
        "$JS.API.DIRECT.GET.RUNS",
        f"dead.{service}",
        *ASKS.get(service, ()),
    ]
    subscribe = [f"_INBOX_{service}.>", *ANSWERS.get(service, ())]
    if service in HEARS:
        publish.append(f"$JS.ACK.RUNS.{service}.>")
        subscribe.append(f"deliver.{service}")
    if service in HEARS_TENANTS:
        publish.append(f"$JS.ACK.TENANTS.{service}.>")
        subscribe.append(f"deliver.tenant.{service}")
    if service in SAYS_TENANTS:
        publish += [f"tenant.*.{kind}" for kind, fact in TENANT_FACTS.items() if fact.author == author]
        publish.append("$JS.API.DIRECT.GET.TENANTS")
    if service in READS_TENANTS:
        publish.append("$JS.API.DIRECT.GET.TENANTS")
        subscribe.append("log.tenant.>")
    if service in OPENS:
        publish.append("$JS.API.DIRECT.GET.KEYS")
    if service in MAKES_KEYS:
        publish.append("keys.*.*")
    if service in HEARS_TIMERS:
        publish += [f"timer.set.{service}.>", f"$JS.ACK.TIMERS.{service}.>"]
        subscribe.append(f"deliver.timer.{service}")
    if service in HEARS_DEAD:
        publish.append(f"$JS.ACK.DEAD.{service}.>")
        subscribe.append(f"deliver.dead.{service}")
    if service == "agent-runner":
        publish.append("live.>")
    if service == "gateway":
        subscribe += ["log.run.>", "live.>"]
    for line in BESIDE.get(service, ()):
        publish += [f"$JS.ACK.RUNS.{line}.>", f"$JS.ACK.TIMERS.{line}.>", f"timer.set.{line}.>", f"dead.{line}"]
        subscribe += [f"_INBOX_{line}.>", f"deliver.{line}", f"deliver.timer.{line}"]
    return {"publish": publish, "subscribe": subscribe, "allow_responses": service in ANSWERS}


READER = {
    "publish": ["$JS.API.DIRECT.GET.RUNS", "$JS.API.DIRECT.GET.TENANTS"],
    "subscribe": ["_INBOX_reader.>", "log.run.>", "log.tenant.>", "live.>"],
    "allow_responses": False,
}


def subscriber(name: str) -> str:
    """The broker user of another system, which is also the name of its consumer on RUNS."""
    return f"subscriber-{token(name)}"


def subscriber_permissions(name: str, tenant: str) -> dict[str, Any]:
    """What another system may: hear its tenant's accepted facts, live and, by its own consumer, from where it was."""
    user = subscriber(name)
    return {
        "publish": [f"$JS.API.CONSUMER.MSG.NEXT.RUNS.{user}", f"$JS.ACK.RUNS.{user}.>"],
        "subscribe": [f"_INBOX_{user}.>", f"log.run.{token(tenant)}.>"],
        "allow_responses": False,
    }
