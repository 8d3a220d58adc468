"""Postal addresses, as pyap2 finds them. It takes its time, so it looks only around what each of its addresses has."""

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Literal

import pyap

from gateway.spelling import plain

Region = Literal["GB", "US", "CA"]
# As pyap spells texts before it looks, so that its places are places in what it was given.
_COMMAS = re.compile(r"[ \t]*(?:,[ \t]*)+|[ \t]+")
# How far an address reaches before its postal code or state, and behind it, in characters.
BEFORE, BEHIND = 200, 60


def addresses(text: str, region: Region) -> Iterator[tuple[int, int, Literal["address"]]]:
    text, at = plain(text, _COMMAS)
    for start, end in _around_the_ends(text, region):
        for address in pyap.parse(text[start:end], country=region):
            yield at[start + address.match_start], at[start + address.match_end], "address"


def _around_the_ends(text: str, region: Region) -> list[tuple[int, int]]:
    """Parts of the text, none of which begins within a word or overlaps another."""
    parts: list[tuple[int, int]] = []
    for found in _end_of(region).finditer(text):
        start, end = max(0, found.start() - BEFORE), min(len(text), found.end() + BEHIND)
        while start > 0 and text[start - 1].isalnum():
            start -= 1
        if parts and start <= parts[-1][1]:
            parts[-1] = parts[-1][0], end
        else:
            parts.append((start, end))
    return parts


@lru_cache
def _end_of(region: Region) -> re.Pattern[str]:
    """A postal code; a state or province, where pyap takes an address without one."""
    rules = import_module(f"pyap.source_{region}.data")
    if region == "GB":
        return re.compile(rules.postal_code, re.VERBOSE)
    if region == "CA":
        return re.compile(rules.region1, re.VERBOSE)
    return re.compile(rf"(?<![^\W_])(?:{rules.make_region1()})(?![^\W\d_])|{rules.postal_code}", re.VERBOSE)
