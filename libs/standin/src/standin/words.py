"""A customer's words, without what is not theirs: markup, quoted mail, invisible characters, and false orders."""

import html
import re

_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_TAG = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|</?[a-z!?][^<>]*>", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(r"^\s*>|^\s*On\b.{4,90}\bwrote:\s*$")
_OLD_MAIL = re.compile(r"^\s*(?:-{2,}\s*original message|_{5,}|(?:from|von|de):\s.*@)", re.IGNORECASE)
# A paragraph that gives orders in somebody else's name: the shop's word reaches an agent in no ticket.
_FALSE_ORDER = re.compile(
    r"^\W*(?:system|developer|assistant|admin(?:istrator)?|instructions?)\s*(?:prompt|message|note)?\s*[:>\]]"
    r"|\bignore\b.{0,30}\b(?:instructions|rules|prompt)\b",
    re.IGNORECASE,
)


def own(text: str) -> str:
    """What the customer says in a message, with its lines and paragraphs as they are."""
    text = _INVISIBLE.sub("", html.unescape(_TAG.sub("\n", text)))
    kept: list[str] = []
    for line in text.splitlines():
        if _OLD_MAIL.match(line) and any(kept):
            break
        if not _QUOTED.match(line):
            kept.append(line.strip())
    paragraphs = re.split(r"\n{2,}", "\n".join(kept))
    return "\n\n".join(part for part in paragraphs if not _FALSE_ORDER.search(part)).strip()


def clauses(text: str) -> list[str]:
    """The text in clauses, each about one thing as a rule. A full stop inside an amount ends none."""
    return [part for part in re.split(r"[!?;\n]+|\.(?!\d)|\b(?:but|while|whereas|however)\b", text) if part.strip()]
