"""A page of a long list: what of it is shown, of how many, and what comes before and behind it."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from gateway import paging
from gateway.problems import Problem

T = TypeVar("T")
# What a list is in the order of: its part, the time within that, and a name.
Key = tuple[int, datetime, str]


@dataclass(frozen=True, slots=True)
class Paged(Generic[T]):
    """`first` and `last` count from 1. previous, next: the cursors of those pages, empty for the first page; None where
    there is no such page."""

    items: tuple[T, ...]
    first: int
    last: int
    total: int
    previous: str | None
    next: str | None


def page_of(items: Sequence[T], key: Callable[[T], Key], cursor: str | None, size: int) -> Paged[T]:
    """The items behind the cursor, of a list in the order of its keys: one that has left it meanwhile makes no gap."""
    keys = [key(item) for item in items]
    start = bisect_right(keys, _read(cursor)) if cursor else 0
    end = min(start + size, len(items))
    return Paged(
        items=tuple(items[start:end]),
        first=min(start + 1, end),
        last=end,
        total=len(items),
        previous=None if start == 0 else _write(keys[start - size - 1]) if start > size else "",
        next=_write(keys[end - 1]) if 0 < end < len(items) else None,
    )


def _write(key: Key) -> str:
    part, time, name = key
    return paging.write((time, f"{part}-{name}"))


def _read(cursor: str) -> Key:
    place = paging.read(cursor)
    part, _, name = place[1].partition("-") if place else ("", "", "")
    if place is None or not (part.isascii() and part.isdigit() and len(part) < 4):
        raise Problem(400, "No such page", "The address is not one of ours. Leave the cursor out to begin again.")
    return int(part), place[0], name
