"""What somebody tried whose decision on a held call did not count, in words that are true of its reason."""

from contracts.facts import DecisionRefused

# By the title that begins the reason. What is not here was not theirs to decide, or is of another version.
_NOT_THEIRS = "and may not"
CIRCUMSTANCES = {
    "Not yours to decide": _NOT_THEIRS,
    "Above your role": _NOT_THEIRS,
    "Above your limit": _NOT_THEIRS,
    "A lead has to": _NOT_THEIRS,
    "The run has ended": "after the run had ended",
    "No such held call": "where no such call was held",
    "Decided already": "where a decision stood already",
    "Moved on": "when it was no longer held",
    "Stopped": "while it was stopped",
    "Expired": "after its time had run out",
    "Recorded too late": "after its time had run out",
    "Another effect": "as something else than it had come to be",
    "Not to be changed": "with changes, which were not possible",
    "Not to be changed like this": "with changes, which were not possible",
    "Not to be changed again": "with changes, after it had been changed as often as may be",
}
_UNKNOWN = "and it did not count"


def attempt(refused: DecisionRefused, what: str) -> str:
    """`tried to decline it after the run had ended`."""
    title, _, _ = refused.reason.partition(":")
    return f"tried to {refused.decision} {what} {CIRCUMSTANCES.get(title, _UNKNOWN)}"
