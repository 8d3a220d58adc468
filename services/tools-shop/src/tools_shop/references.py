"""References as people and models write them, read to the one form that the shop stores; nothing is guessed."""

import re
from typing import Any

from tools_shop.outcomes import Refusal
from tools_shop.texts import shown

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_WRAPPING = "\"'`“”‘’«»"
# Hexadecimal digits of a refund's intent that its reference shows; all of them are no other refund's.
REFERENCE_LENGTHS = (16, 32, 64)
_LOOKS = {
    "order": (re.compile(r"ORD-[0-9]{1,12}"), "ORD-12345"),
    "subscription": (re.compile(r"SUB-[0-9]{1,12}"), "SUB-12345"),
    "refund": (re.compile(r"RF-[0-9A-F]{10,64}"), "RF-0123456789ABCDEF"),  # older ones have 10
}
_LONGEST = 96


def read(kind: str, value: Any) -> str | Refusal:
    """The reference of this kind that `value` holds. Case, blanks, dashes, quotes and a `#` around it do not matter."""
    pattern, example = _LOOKS[kind]
    article = "an" if kind == "order" else "a"
    ask = f"Which {kind}? Give its reference, such as {example}."
    if value is None:
        return Refusal("reference-missing", ask)
    if isinstance(value, list | tuple):
        return Refusal("reference-list", f"One {kind} reference is expected, as text such as {example}, not a list.")
    if not isinstance(value, str):
        return Refusal("reference-type", f"{article.capitalize()} {kind} reference is text, such as {example}.")
    if len(value) > _LONGEST:
        return Refusal(
            "reference-long", f"That is too long for {article} {kind} reference, which looks like {example}."
        )
    text = _unwrapped(value)
    if not text or text.lower() in ("all", "any", "every"):
        return Refusal("reference-missing", ask)
    plain = text.translate(_DASHES).upper() if text.translate(_DASHES).isascii() else text
    if pattern.fullmatch(plain):
        return plain
    for other, (looks, _) in _LOOKS.items():
        if looks.fullmatch(plain):
            return Refusal("reference-kind", f"{plain} is the reference of {_a(other)}, not of {_a(kind)}. {ask}")
    if len(pattern.findall(plain)) > 1:
        return Refusal("reference-many", f"One {kind} reference is expected. Make one call for each {kind}.")
    return Refusal(
        "reference-unrecognised",
        f"{shown(value)} is not recognised as {article} {kind} reference, which looks like {example}. "
        "Use it exactly as the customer or the shop wrote it.",
    )


def _unwrapped(value: str) -> str:
    text = value.strip()
    for _ in range(2):
        text = text.strip(_WRAPPING).strip()
    return text.removeprefix("#").rstrip(".,;:!?").strip()


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "order" else f"a {kind}"
