"""CSV for people who open it in a spreadsheet: no cell becomes a formula there."""

import csv
import io
from collections.abc import Iterable, Sequence

# What spreadsheets take for the beginning of a formula, wide forms and control characters before it included.
_BEGINS_A_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20|%\t\r\n")


def lines(rows: Iterable[Sequence[object]]) -> str:
    """The rows as RFC 4180 has them."""
    text = io.StringIO()
    csv.writer(text).writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


def cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\x00", "")
    return f"'{text}" if text.startswith(_BEGINS_A_FORMULA) or text.lstrip().startswith(_BEGINS_A_FORMULA) else text
