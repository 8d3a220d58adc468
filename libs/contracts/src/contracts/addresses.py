"""By what an e-mail address is compared, everywhere: is this mailbox that one?"""

import re
import unicodedata

from email_validator import EmailNotValidError, validate_email

MAX_LENGTH = 320
# Two capitals of one small letter, and one whose small letter is written as two: in small letters they would be another
# mailbox's. They stay as they are.
_CAPITALS_OF_THEIR_OWN = re.compile("([\u0130\u03f4\u01c5\u01c8\u01cb\u01f2])")
# Python writes the sigma at a word's end as people do, but takes a word to go on behind these.
_WORD = re.compile("[^.'’]+")
# Nobody sees them and Unicode does not count them among the control characters: joiners of glyphs, fillers, variation
# selectors, and the empty Braille cell.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def comparable(address: str | None) -> str | None:
    """The one form of an e-mail address: two addresses are one mailbox where both have the same. None for what cannot
    be an address that reaches somebody: it is nobody's, and two of them are not the same.

    Blanks around it, capitals, NFC and the ways to write a domain (IDNA 2008, UTS #46) do not matter. Everything else
    does: `straßer` is not `strasser`, wide letters and letters of other scripts that look alike are other letters, and
    what stands behind a `+` counts. Characters that nobody sees make an address unusable, and so do those of which NFC
    makes one of ASCII, as of the Kelvin sign.
    """
    text = (address or "").strip()
    if len(text) > MAX_LENGTH or _UNSEEN.search(text) or any(map(_misleads, text)):
        return None
    try:
        found = validate_email(
            text.removesuffix("."),  # of a domain in full
            allow_smtputf8=True,
            allow_empty_local=False,
            allow_quoted_local=False,
            allow_domain_literal=False,
            allow_display_name=False,
            strict=True,
            check_deliverability=False,
            globally_deliverable=False,  # a domain may be one of the shop's own network,
            test_environment=True,  # or one under `.test`; nobody is under `.invalid`, as who was erased is
        )
    except EmailNotValidError:
        return None
    return f"{_small(found.local_part)}@{found.domain}"


def same_mailbox(one: str | None, other: str | None) -> bool:
    """Whether both addresses are usable, and of one mailbox."""
    known = comparable(one)
    return known is not None and known == comparable(other)


def _misleads(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() or character == " "
    unseen = unicodedata.category(character)[0] in "CZ"
    return unseen or unicodedata.normalize("NFC", character).isascii()


def _small(local: str) -> str:
    parts = _CAPITALS_OF_THEIR_OWN.split(local)
    small = (part if n % 2 else _WORD.sub(lambda word: word[0].lower(), part) for n, part in enumerate(parts))
    return unicodedata.normalize("NFC", "".join(small))
