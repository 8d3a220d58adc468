"""How much of an order to pay back: what the customer asks for, as far as the order bears it out, and no more."""

import re
from collections.abc import Sequence

from standin.intents import speaks_of_fault
from standin.order import Item, Order, amounts
from standin.words import clauses

_KEPT = re.compile(
    r"\b(?:fine|perfect(?! condition)|keep(?:ing)?|great|happy with|no problems? with|okay|works? (?:well|fine))\b",
    re.I,
)
_ASKED = re.compile(r"\b(?:refund\w*|money back|return\w*|back)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:both|all|two|pairs|each|every\w*)\b", re.IGNORECASE)
_ONE = re.compile(r"\bone\b", re.IGNORECASE)
_USED = re.compile(r"(?<!never )(?<!not )(?<!n't )\b(?:used|worn|wore|washed)\b(?! to\b)", re.IGNORECASE)


def is_owed(words: str) -> bool:
    """Not for something that was used and is merely no longer wanted."""
    return speaks_of_fault(words) or not _USED.search(words)


def asked(words: str, order: Order) -> int:
    """The amount in minor units that the customer asks for and the order bears out, refunded before or not."""
    stated = amounts(words)
    wanted = _wanted(words, order)
    priced = sum(minor for _, minor in wanted)
    if priced and sum(set(stated)) == priced:
        return priced
    if not wanted:
        due = order.refundable_minor
    elif len(wanted) < len(order.items):
        due = priced
    else:
        due = priced + order.delivery_minor
    return min(due, max(stated)) if stated else due


def _wanted(words: str, order: Order) -> list[tuple[Item, int]]:
    """The items that the customer wants money for, and how much: those named where they speak of a fault, of sending
    back or of money, else all that they name, without those that they are happy with."""
    mentions = [(clause, _named(clause, order.items)) for clause in clauses(words)]
    kept = {item for clause, items in mentions for item in items if _KEPT.search(clause)}
    pointed = [(clause, items) for clause, items in mentions if _ASKED.search(clause) or speaks_of_fault(clause)]
    for chosen in (pointed, mentions):
        found = {item: clause for clause, items in reversed(chosen) for item in items if item not in kept}
        if found:
            return [(item, _price(item, found[item])) for item in order.items if item in found]
    return []


def _named(clause: str, items: Sequence[Item]) -> list[Item]:
    """The items that a clause speaks of: the ones whose titles fit best."""
    scores = [(item.named_in(clause), item) for item in items]
    best = max((score for score, _ in scores), default=0)
    return [item for score, item in scores if score == best > 0]


def _price(item: Item, clause: str) -> int:
    several = _SEVERAL.search(clause) and not _ONE.search(clause)
    return item.unit_minor * (item.quantity if several else 1)
