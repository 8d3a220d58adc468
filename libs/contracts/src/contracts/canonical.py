"""RFC 8785 canonical JSON, and SHA-256 over it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import rfc8785

LARGEST = 2**53 - 1
_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value, as UTF-8.

    Raises ValueError for what the form cannot carry: NaN, integers beyond 2^53 (also when they are floats: the form
    would spell them as integers, which nobody could read and write again), lone surrogates, keys that are no text.
    """
    try:
        if _is_plain(value):
            return _encode(value).encode()
        _refuse_large(value)
        return rfc8785.dumps(value)
    except RecursionError as error:
        raise ValueError("The value is nested too deeply.") from error


def sha256(value: Any) -> str:
    """Lower-case hex of the SHA-256 over a value's canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _is_plain(value: Any) -> bool:
    """Whether the standard library's encoder writes this value exactly as RFC 8785 asks.

    It differs in the spelling of floats, the order of keys that hold characters outside the basic plane, and in taking
    any integer; everything else is the same.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return bool(-LARGEST <= value <= LARGEST)
    if kind is dict:
        return all(type(key) is str and key.isascii() and _is_plain(item) for key, item in value.items())
    if kind is list or kind is tuple:
        return all(_is_plain(item) for item in value)
    return False


def _refuse_large(value: Any) -> None:
    if isinstance(value, float):
        if LARGEST < abs(value) < 1e21:  # from 1e21 on the form keeps the exponent
            raise ValueError(f"{value!r} is beyond the integers that JSON carries.")
    elif isinstance(value, Mapping):
        for item in value.values():
            _refuse_large(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_large(item)
