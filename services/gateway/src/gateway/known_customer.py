"""Where a text names the customer of its case, in whatever spelling: by name, by address or by the shop's id."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from contracts.addresses import same_mailbox
from contracts.parts import Customer

from gateway.spelling import UNSPACED, folded, plain


class Named(NamedTuple):
    start: int
    end: int
    kind: Literal["customer", "customer's"]


# Shorter parts of a name are words too often. Where a character is a syllable or a word, two are a name.
_SHORTEST = 3
_SHORTEST_UNSPACED = 2
_BETWEEN = re.compile(r"[\s,·・]+")
_ADDRESS = re.compile(r"""[^\s<>()\[\]{}"',;:@]{1,64}@[^\s<>()\[\]{}"',;:@]{1,255}""")
_AT_THE_END = ".!?…*_"


def named(text: str, customer: Customer) -> Iterator[Named]:
    """In a text that is spelt plainly."""
    low, at = folded(text)
    if customer.id and len(customer.id) >= _SHORTEST:
        yield from _whole(low, at, f"(?:cust-)?{re.escape(_folded(customer.id))}")
    name = _folded(customer.name or "").strip()
    if _long_enough(name):
        words = _BETWEEN.split(name)
        yield from _whole(low, at, r"[\s,·・]+".join(map(re.escape, words)), name)
        if all(map(UNSPACED.match, "".join(words))):
            yield from _whole(low, at, r"[\s·・]*".join(map(re.escape, "".join(words))), name)
    for part in _BETWEEN.split(plain(customer.name or "")[0]):
        if not _long_enough(part):
            continue
        suffix = "" if UNSPACED.match(part[-1]) else "(?:e?s)?"
        for found in _whole(low, at, re.escape(_folded(part)) + suffix, _folded(part)):
            # As it is written, or in capitals: a Ms Price is no price. Of several with that name, too.
            if not text[found.start].islower() or part[0].islower():
                yield found
    yield from _addresses(text, low, at, customer.email)


def _addresses(text: str, low: str, at: list[int], email: str) -> Iterator[Named]:
    # Whole, and not the beginning of another.
    known = re.escape(_folded(email))
    for match in re.finditer(rf"(?<![\w.+-]){known}(?![\w-]|\.\w)", low) if email else ():
        yield Named(at[match.start()], at[match.end()], "customer's")
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(_AT_THE_END).lstrip("*_")
        if not address.isascii() and same_mailbox(address, email):
            start = match.start() + match[0].index(address)
            yield Named(start, start + len(address), "customer's")
        elif address.isascii() and not email.isascii() and same_mailbox(address, email):
            yield Named(match.start(), match.start() + len(address), "customer's")


def _whole(low: str, at: list[int], regex: str, name: str = "x") -> Iterator[Named]:
    before = "" if UNSPACED.match(name[0]) else r"(?<!\w)"
    behind = "" if UNSPACED.match(name[-1]) else r"(?!\w)"
    for match in re.finditer(f"{before}{regex}{behind}", low):
        yield Named(at[match.start()], at[match.end()], "customer")


def _folded(text: str) -> str:
    return folded(plain(text)[0])[0]


def _long_enough(name: str) -> bool:
    return len(name) >= _SHORTEST or (len(name) >= _SHORTEST_UNSPACED and all(map(UNSPACED.match, name)))
