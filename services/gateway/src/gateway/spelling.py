"""A text as it is looked through: its spelling made plain, and where each character of that stands in the text."""

import re
import unicodedata

# Mails bring blanks, dashes, apostrophes and letters of many kinds.
_SPELT = (
    dict.fromkeys(map(ord, "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"), " ")
    | dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
    | dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'")
    | {0xFF01 + n: chr(0x21 + n) for n in range(0x5E)}
)
BLANKS = re.compile(r"[ \t]+|[\u00ad\u200b-\u200d\u2060\ufeff]+")
# Scripts without blanks between words (and Korean, whose particles follow the name): a name has no edges there.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
# The dotless and the dotted i are one letter here: whoever hides a name from an auditor too much does no harm.
_TURKISH = str.maketrans({"\u0131": "i", "\u0307": ""})
Places = list[int]  # for each character, and for the end


def plain(text: str, runs: re.Pattern[str] = BLANKS) -> tuple[str, Places]:
    """The text with its letters composed (NFC) and each of the `runs` as short as can be."""
    text, composed_at = _composed(text.translate(_SPELT))
    parts, at, end = [], [], 0
    for run in runs.finditer(text):
        short = ", " if "," in run[0] else " " if run[0][0] in " \t" else ""
        parts += [text[end : run.start()], short]
        at += [*range(end, run.start()), *(min(run.start() + n, run.end()) for n in range(len(short)))]
        end = run.end()
    at += range(end, len(text) + 1)
    return "".join(parts) + text[end:], at if composed_at is None else [composed_at[place] for place in at]


def folded(text: str) -> tuple[str, Places]:
    """The text without a difference between capitals and small letters: `STRASSER` and `Straßer` are the same."""
    if text.isascii():
        return text.lower(), list(range(len(text) + 1))
    parts, at = [], []
    for place, character in enumerate(text):
        part = character.casefold().translate(_TURKISH)
        parts.append(part)
        at += [place] * len(part)
    return "".join(parts), [*at, len(text)]


def _composed(text: str) -> tuple[str, Places | None]:
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text, None
    parts, at, start = [], [], 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not _belongs_to_the_one_before(text[place]):
            part = unicodedata.normalize("NFC", text[start:place])
            parts.append(part)
            at += [start] * len(part)
            start = place
    return "".join(parts), [*at, len(text)]


def _belongs_to_the_one_before(character: str) -> bool:
    """Marks, and the vowels and ends of Korean syllables."""
    return "\u1160" <= character <= "\u11ff" or unicodedata.category(character) in ("Mn", "Mc")
