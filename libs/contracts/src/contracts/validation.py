"""What is wrong with given data, in plain words: Pydantic's findings for the person who gave the data."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

MAX_REPEATED = 64  # characters of a wrong name that are given back
MAX_TEXT = 2000  # characters

_MOMENT = "must be a date and time with a zone, as in 2026-11-29T00:00:00Z"
_OBJECT = "must be an object of names and values"
# By Pydantic's error type; the fields are those of its context.
# Source: https://docs.pydantic.dev/latest/errors/validation_errors/
_WORDS = {
    "missing": "is missing",
    "missing_argument": "is missing",
    "extra_forbidden": "is not known here: leave it out",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_type": "must be a text",
    "string_unicode": "has characters that no text may have",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "may have at most {max_length} characters",
    "string_pattern_mismatch": "must have the form {pattern}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "may have at most {max_length} entries",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "timezone_aware": _MOMENT,
    "json_invalid": "is not JSON: {error}",
    "value_error": "{error}",
    "assertion_error": "{error}",
}
# By the beginning of the type, where many say the same.
_KINDS = {"int_": "must be a whole number", "datetime_": _MOMENT, "date_": "must be a date, as in 2026-11-29"}


def explain(error: ValidationError) -> str:
    """Each field with what is wrong with it, as in `status: must be 'open' or 'done', not 'odd'; text: is missing`."""
    return sentences((path(finding["loc"]), words(finding)) for finding in error.errors())


def sentences(findings: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{where}: {what}" if where else what for where, what in findings)[:MAX_TEXT]


def path(location: Iterable[str | int]) -> str:
    return ".".join(map(str, location))


def words(finding: Mapping[str, Any]) -> str:
    """What is wrong with one field. Of what was given only a wrong name is repeated: all else may be a secret."""
    kind, context = str(finding["type"]), finding.get("ctx") or {}
    text = _WORDS.get(kind) or next((said for start, said in _KINDS.items() if kind.startswith(start)), None)
    if text is None:
        return str(finding["msg"]).replace("Input should be", "must be")
    try:
        text = text.format(**context)
    except (KeyError, IndexError):
        return str(finding["msg"])
    if kind in ("literal_error", "enum") and isinstance(given := finding.get("input"), str):
        text += f", not {repeated(given)}"
    return text


def repeated(name: str) -> str:
    """A stranger's word, short and with nothing in it that could steer what shows it."""
    shown = "".join(character if character.isprintable() else "�" for character in name)
    return f"'{shown if len(shown) <= MAX_REPEATED else shown[: MAX_REPEATED - 1] + '…'}'"
