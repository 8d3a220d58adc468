"""Tool arguments as the model spelled them, read strictly: what cannot be carried exactly is not guessed at."""

import json
from typing import Any

from contracts.canonical import LARGEST
from contracts.parts import UNREADABLE, Json

LONGEST = 32_000  # characters of one call's arguments
DEEPEST = 32
_SHOWN = 200


class _Unreadable(ValueError):
    pass


def read(text: str) -> Json:
    """The arguments, or {"$unreadable": "<reason>: <the text's beginning, escaped>"}.

    Unreadable is what is no JSON object, and what RFC 8785 cannot carry or readers would take differently: NaN and
    infinities, integers beyond 2^53, lone surrogates, repeated keys; also what is too deep or too long.
    """
    try:
        return _read(text)
    except _Unreadable as error:
        return unreadable(str(error), text)


def unreadable(why: str, text: str) -> Json:
    return {UNREADABLE: f"{why}: {ascii(text[:_SHOWN])[1:-1]}{'…' if len(text) > _SHOWN else ''}"}


def _read(text: str) -> Json:
    if not text:
        return {}  # the API streams nothing for a call without arguments
    if len(text) > LONGEST:
        raise _Unreadable(f"longer than {LONGEST} characters")
    _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_no)
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
    except _Unreadable:
        raise
    except UnicodeEncodeError:
        raise _Unreadable("half a character") from None
    except ValueError:
        raise _Unreadable("not JSON") from None
    if not isinstance(value, dict):
        raise _Unreadable("not a JSON object")
    return value


def _check_depth(text: str) -> None:
    """Before parsing, which recurses. Brackets inside strings count too: arguments have no use for that many."""
    depth = 0
    for character in text:
        if character in "{[":
            depth += 1
            if depth > DEEPEST:
                raise _Unreadable(f"nested deeper than {DEEPEST}")
        elif character in "}]":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Unreadable("a key is there twice")
    return found


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > LARGEST:
        raise _Unreadable("an integer beyond 2^53")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if abs(value) == float("inf"):
        raise _Unreadable("a number without end")
    return value


def _no(constant: str) -> None:
    raise _Unreadable(f"{constant} is no number")
