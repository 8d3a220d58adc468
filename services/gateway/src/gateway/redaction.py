"""Personal data taken out of texts: names that the case knows, and what is found in them. Customers become pseudonyms.

What nothing finds stays: `docs/audit.md` says to those who read the result how much that is.
"""

import hashlib
import hmac
import re
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Literal

import phonenumbers
import structlog
from contracts.addresses import comparable
from contracts.parts import Customer
from contracts.personal import ERASED

from gateway import spelling
from gateway.known_customer import named
from gateway.postal_addresses import Region, addresses
from gateway.recognition import Unavailable, spans

NOT_SHOWN = "[not shown: it could not be looked for personal data]"
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
AHEAD = 200  # characters behind a cut that are looked at too, for what lies across it
# References, amounts, dates and times: their digits begin no phone number.
_NO_PHONE = re.compile(
    r"(?<!\w)[A-Z]{1,5}-(?!\d{9})\w{1,12}(?:-\d{1,3})?(?![\w-])"
    r"|[£$€]\s?\d[\d,]*(?:\.\d+)?"
    r"|\d{4}-\d\d-\d\d(?!\d)|\d\d?:\d\d(?::\d\d)?"
)
_NO_PHONE_BEHIND = re.compile(r"[\w£$€.,/]\Z")
_SHORTEST_PHONE = 9  # digits
# Where a tenant's phone numbers and addresses are from, as far as its currency tells; else from any of these. A number
# with its + is found wherever it is from.
REGIONS: dict[str, Region] = {"GBP": "GB", "USD": "US", "CAD": "CA"}
# Where two overlap, what comes later here has the text that both found.
Kind = Literal["name", "customer", "address", "phone", "card", "account", "e-mail", "customer's"]
_ORDER: list[Kind] = ["name", "customer", "address", "phone", "card", "account", "e-mail", "customer's"]
Found = tuple[int, int, Kind]

logger = structlog.get_logger()


class Redaction:
    """For one tenant. `key` is the tenant's own, so that nobody can tell a pseudonym's customer by trying."""

    def __init__(self, key: bytes, currency: str = "") -> None:
        self._key = key
        self._regions = [REGIONS[currency]] if currency in REGIONS else sorted(REGIONS.values())

    def pseudonym(self, customer: Customer) -> str:
        """The same for a customer in all their runs, `customer-jfpagcihdkmnbael`: letters, so no number.

        Of 64 bits: with 40 two of a million customers were likely to share one, and to be taken for one person.
        """
        if customer.email == ERASED:
            return ERASED
        who = comparable(customer.email) or customer.email.strip()
        return f"customer-{hmac.new(self._key, who.encode(), hashlib.sha256).hexdigest()[:16].translate(_LETTERS)}"

    def text(
        self, text: str, customer: Customer | None = None, known: Collection[str] = (), most: int | None = None
    ) -> str:
        """The text without this customer, and without the names, addresses and numbers that are found in it.

        What is `known` may stay, such as who decided and the order's number: the columns beside the text have it, and
        it is nobody's name or number because it looks like one. Where a text cannot be looked through, none of
        it is given; of a longer one than `most` its beginning. Slow: not to be called on the event loop.
        """
        try:
            return self._without(text, customer, known, len(text) if most is None else most)
        except Exception as error:
            # Not what others say of it: that can hold the text.
            logger.error("not redacted", why=str(error) if isinstance(error, Unavailable) else type(error).__name__)
            return NOT_SHOWN

    def _without(self, text: str, customer: Customer | None, known: Collection[str], most: int) -> str:
        shown, rest_of_it = (text[:most].rstrip(), " …") if len(text) > most else (text, "")
        plain, at = spelling.plain(text[: most + AHEAD])
        if not any(character.isalnum() for character in plain):
            return shown + rest_of_it
        found: list[Found] = [
            one for one in spans(plain) if one.kind != "name" or plain[one.start : one.end] not in known
        ]
        if customer is not None:
            found += named(plain, customer)
        if any(character.isdecimal() for character in plain):
            rest = _starred(plain, found)
            for words in known:
                rest = rest.replace(words, "*" * len(words))
            bare = _NO_PHONE.sub(lambda one: "*" * len(one[0]), rest)
            for region in self._regions:
                found += [*_phones(bare, region), *addresses(rest, region)]
        alias = self.pseudonym(customer) if customer is not None else ""
        return _rewritten(shown, [(at[start], at[end], kind) for start, end, kind in found], alias) + rest_of_it


def _starred(text: str, found: list[Found]) -> str:
    """As long as it was, without what is known to be something else than a phone number or an address."""
    for start, end, kind in found:
        if kind in ("card", "account", "e-mail"):
            text = text[:start] + "*" * (end - start) + text[end:]
    return text


def _phones(text: str, region: Region) -> Iterator[Found]:
    for match in phonenumbers.PhoneNumberMatcher(text, region, phonenumbers.Leniency.POSSIBLE):
        long_enough = sum(character.isdecimal() for character in match.raw_string) >= _SHORTEST_PHONE
        if long_enough and not _NO_PHONE_BEHIND.search(text[: match.start]):
            yield match.start, match.end, "phone"


def _rewritten(text: str, found: list[Found], alias: str) -> str:
    """The text with one mark for each run of characters of a kind. Blanks at its ends stay."""
    kinds: list[Kind | None] = [None] * len(text)
    for start, end, kind in sorted(found, key=lambda one: _ORDER.index(one[2])):
        for place in range(start, min(end, len(text))):
            kinds[place] = kind
    parts = []
    for kind, run in groupby(zip(kinds, text, strict=True), key=lambda one: one[0]):
        part = "".join(character for _, character in run)
        bare = part.strip()
        if kind is not None and any(character.isalnum() for character in bare):
            mark = alias if kind in ("customer", "customer's") else f"[{kind}]"
            part = part.replace(bare, mark, 1)
        parts.append(part)
    return "".join(parts)
