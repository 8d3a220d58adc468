"""Personal data taken out of texts: names that the case knows, and what patterns find. Customers become pseudonyms.

What no pattern finds stays: a person whom nothing in the case names, such as a neighbour in a note. `docs/audit.md`
says so to those who read the result.
"""

import hashlib
import hmac
import re
from typing import Literal

import phonenumbers
import pyap
from contracts.parts import Customer
from contracts.personal import ERASED

_EMAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_CARD = re.compile(r"(?<![\d-])(?:\d[ -]?){12,18}\d(?![\d-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{2,4}){3,8}\b")
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
# What stands before digits that are an amount or part of a reference, and no phone number.
_NO_PHONE_BEHIND = re.compile(r"[\w£$€.,/-]$")
_SHORTEST_PHONE = 9  # digits
# Where a tenant's phone numbers and addresses are from, as far as its currency tells; else from any of these. A number
# with its + is found wherever it is from.
Region = Literal["GB", "US", "CA"]
REGIONS: dict[str, Region] = {"GBP": "GB", "USD": "US", "CAD": "CA"}
# Shorter parts of a name are words too often.
_SHORTEST_NAME = 3


class Redaction:
    """For one tenant. `key` is the tenant's own, so that nobody can tell a pseudonym's customer by trying."""

    def __init__(self, key: bytes, currency: str = "") -> None:
        self._key = key
        self._regions = [REGIONS[currency]] if currency in REGIONS else sorted(REGIONS.values())

    def pseudonym(self, customer: Customer) -> str:
        """The same for a customer in all their runs, `customer-jfpagcihdk`: letters, so no number."""
        if customer.email == ERASED:
            return ERASED
        who = customer.email.strip().casefold().encode()
        return f"customer-{hmac.new(self._key, who, hashlib.sha256).hexdigest()[:10].translate(_LETTERS)}"

    def text(self, text: str, customer: Customer | None = None) -> str:
        """The text without e-mail addresses, card and account numbers, phone numbers, addresses, and this customer."""
        if customer is not None:
            text = self._known(text, customer)
        text = _EMAIL.sub("[e-mail]", text)
        if not any(character.isdecimal() for character in text):
            return text
        text = _CARD.sub(lambda found: "[card]" if _is_card(_digits(found[0])) else found[0], text)
        text = _IBAN.sub(lambda found: "[account]" if _is_account(found[0]) else found[0], text)
        for region in self._regions:
            text = self._addresses(self._phones(text, region), region)
        return text

    def _known(self, text: str, customer: Customer) -> str:
        alias = self.pseudonym(customer)
        for name in (customer.email, f"cust-{customer.id}", customer.id, customer.name):
            if name and len(name) >= _SHORTEST_NAME:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", alias, text, flags=re.IGNORECASE)
        for part in (customer.name or "").split():
            # As it is written: a Ms Price is no price.
            if len(part) >= _SHORTEST_NAME:
                text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", alias, text)
        return text

    def _phones(self, text: str, region: Region) -> str:
        matches = phonenumbers.PhoneNumberMatcher(text, region, phonenumbers.Leniency.POSSIBLE)
        spans = [
            (match.start, match.end)
            for match in matches
            if len(_digits(match.raw_string)) >= _SHORTEST_PHONE and not _NO_PHONE_BEHIND.search(text[: match.start])
        ]
        return _without(text, spans, "[phone]")

    def _addresses(self, text: str, region: Region) -> str:
        found = pyap.parse(text, country=region)
        return _without(text, [(address.match_start, address.match_end) for address in found], "[address]")


def _without(text: str, spans: list[tuple[int, int]], instead: str) -> str:
    for start, end in sorted(spans, reverse=True):
        blanks = len(text[start:end]) - len(text[start:end].lstrip())
        text = text[: start + blanks] + instead + text[end:]
    return text


def _is_card(digits: str) -> bool:
    """By the check digit of ISO/IEC 7812: every second digit from the right counts twice, as the sum of its digits."""
    counted = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number // 10 + number % 10 for number in counted) % 10 == 0


def _is_account(text: str) -> bool:
    """By the check digits of an IBAN (ISO 13616): with its first four behind, and letters as numbers, 1 modulo 97."""
    plain = text.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)
