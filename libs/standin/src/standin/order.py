"""An order as `get_order` tells of it, read line by line."""

import re
from dataclasses import dataclass

_AMOUNT = re.compile(
    r"[£$€]\s?(\d[\d,]*)(?:\.(\d\d))?(?!\d)|\b(\d[\d,]*)(?:\.(\d\d))?\s?(?:pounds?|quid|dollars?|euros?)\b"
)
_HEAD = re.compile(r"^Order (\S+), (.+?), placed on .*? by (.+)\.$", re.MULTILINE)
_ITEM = re.compile(r"^Item: (\d+) × (.+), \S+ \((\d+) [^)]*\)(?: each)?\.$", re.MULTILINE)
_DELIVERY = re.compile(r"^Delivery: (.+)\.$", re.MULTILINE)
_PAYMENT = re.compile(r"^Payment: (\S+) by .+? on [^(]+?(\(.+\))?\.$", re.MULTILINE)
_LEFT = re.compile(r"Still refundable: \S+ \((\d+) ")
_EARLIER = re.compile(r"ALREADY REFUNDED: \S+ \(\d+ [^)]*\), as (.+?)\. ?(?:Still|Nothing)", re.DOTALL)
_WORD = re.compile(r"[a-z]{3,}")
_HOLLOW = frozenset(("and", "for", "the", "with", "pair", "set", "two", "one", "age", "size", "from"))


@dataclass(frozen=True, slots=True)
class Item:
    title: str
    quantity: int
    unit_minor: int

    def named_in(self, clause: str) -> int:
        """How many of the title's words the clause uses, in the singular or plural."""
        return len((_words(self.title) - _HOLLOW) & _words(clause))


@dataclass(frozen=True, slots=True)
class Order:
    """Amounts in minor units. `payments` are those that were taken; `refunds` the earlier ones."""

    reference: str
    status: str
    customer: str
    items: tuple[Item, ...]
    delivery_minor: int
    payments: tuple[int, ...]
    refunds: tuple[int, ...]
    refundable_minor: int
    sign: str

    def money(self, *amounts: int) -> str:
        """Sums as people write them: `£9.00 and £34.00`."""
        return " and ".join(f"{self.sign}{minor // 100:,}.{minor % 100:02d}" for minor in amounts)


def read(text: str) -> Order | None:
    """The order that the text tells of, or None if it tells of none."""
    head = _HEAD.search(text)
    if head is None:
        return None
    left, delivery, earlier = _LEFT.search(text), _DELIVERY.search(text), _EARLIER.search(text)
    sign = re.search(r"[£$€]", text)
    return Order(
        reference=head[1],
        status=head[2],
        customer=head[3],
        items=tuple(Item(title, int(quantity), int(unit)) for quantity, title, unit in _ITEM.findall(text)),
        delivery_minor=sum(amounts(delivery[1])) if delivery else 0,
        payments=tuple(minor for paid, note in _PAYMENT.findall(text) if not note for minor in amounts(paid)),
        refunds=tuple(amounts(earlier[1])) if earlier else (),
        refundable_minor=int(left[1]) if left else 0,
        sign=sign[0] if sign else "",
    )


def amounts(text: str) -> list[int]:
    """Every sum of money in a text, in minor units."""
    found = []
    for whole, part, whole_in_words, part_in_words in _AMOUNT.findall(text):
        found.append(int((whole or whole_in_words).replace(",", "")) * 100 + int(part or part_in_words or 0))
    return found


def _words(text: str) -> set[str]:
    return {word[:-1] if word.endswith("s") and len(word) > 3 else word for word in _WORD.findall(text.lower())}
