"""Who hears what, and the streams that carry it: the one table that set-up, services and the broker's permissions read."""

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
        "agent.handed-over",
    ),
    "policy": ("tools.turn-quoted", "approvals.call-decided", "approvals.hold-expired"),
    "tools-shop": ("agent.turn-proposed", "policy.turn-forwarded"),
    "approvals": ("policy.turn-held",),
}

# Requests that a service answers.
ANSWERS: dict[str, tuple[str, ...]] = {
    "approvals": ("ask.approvals.decide",),
    "tools-shop": ("ask.tools.catalogue", "ask.tools.quote"),
}

# Requests that a service makes.
ASKS: dict[str, tuple[str, ...]] = {
    "gateway": ("ask.approvals.decide", "ask.tools.quote"),
    "agent-runner": ("ask.tools.catalogue",),
}
