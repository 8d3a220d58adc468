"""CSV for people who open it in a spreadsheet: no cell becomes a formula there, or hides something."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence

# What spreadsheets take for the beginning of a formula, wide forms and control characters before it included.
_BEGINS_A_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20|%\t\r\n")
# Within words and signs of some scripts.
_JOIN = "\u200c\u200d"


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
    text = str(value)
    shown = "".join(map(_visible, text))
    return f"'{shown}" if text.startswith(_BEGINS_A_FORMULA) or text.lstrip().startswith(_BEGINS_A_FORMULA) else shown


def _visible(letter: str) -> str:
    """Control characters, and those that change how what stands around them is read, by their numbers."""
    hidden = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") and letter not in _JOIN
    return f"⟨U+{ord(letter):04X}⟩" if hidden else letter
