"""find_customer: is the person named here the one whose ticket this is, and which orders have they?"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from contracts.addresses import comparable

from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Found, Refusal
from tools_shop.texts import masked, more, one_line, shown, storable
from tools_shop.toolset import Query, Read, Row, object_schema

_LONGEST = 254
_ASK = "Give the customer's e-mail address, or their first and last name."
_ACCOUNT = """
select c.id, c.name, c.email, c.address,
       array(select o.reference from shop.orders o
             where o.tenant = c.tenant and o.customer_id = c.id order by o.placed_at desc limit 20) as orders,
       (select count(*) from shop.orders o where o.tenant = c.tenant and o.customer_id = c.id) as order_count
from shop.customers c where c.tenant = bound.tenant and c.address = %s
"""


def who(value: Any) -> str | Refusal:
    """An e-mail address as it is compared, or a part of one or of a name, its letters composed (NFC)."""
    if isinstance(value, list | dict):
        return Refusal("customer-list", f"One customer at a time: one address, as text. {_ASK}")
    if value is not None and not isinstance(value, str):
        return Refusal("customer-type", f"An e-mail address or a name is text. {_ASK}")
    text = (value or "").strip()
    if not any(character.isalpha() for character in text):
        return Refusal("customer-missing", f"No customer is found by that. {_ASK}")
    if len(text) > _LONGEST:
        return Refusal("customer-long", f"That is too long for an e-mail address or a name. {_ASK}")
    if text.count("@") > 1 and storable(text) and text.isprintable():
        return Refusal("customer-list", f"One customer at a time: one address, as text. {_ASK}")
    if "<" in text or text.lower().startswith("mailto:"):
        return Refusal("customer-form", "Give the plain e-mail address, with nothing around it.")
    local, at, _ = text.partition("@")
    if at and len(local) > 64:
        return Refusal("customer-form", f"{shown(text)} is not an e-mail address. {_ASK}")
    return comparable(text) or (text.lower() if text.isascii() else unicodedata.normalize("NFC", text))


async def query(arguments: Arguments, caller: Caller) -> Query:
    return Query(_ACCOUNT, [caller.email])


def answer(arguments: Arguments, rows: Sequence[Row]) -> Found | Refusal:
    wanted = arguments["query"]
    account = rows[0] if rows else None
    if account is None or not _is(account, wanted):
        return Refusal(
            "customer-unknown",
            f"No customer {shown(wanted)} on the account of this ticket's e-mail address. {_ASK} A first name alone is "
            "not enough, and other people's accounts cannot be looked into from this ticket.",
        )
    name = one_line(account["name"], 80)
    orders = account["orders"]
    listed = f"Orders: {', '.join(orders)}." if orders else "No orders."
    return Found(
        " ".join(
            [
                f"{name}, {masked(account['email'])}. {listed}",
                *more(account["order_count"], len(orders), "older orders"),
            ]
        ),
        {"name": name, "email": masked(account["email"]), "orders": orders, "order_count": account["order_count"]},
        account["id"],
    )


def _is(account: Row, wanted: str) -> bool:
    if (address := comparable(wanted)) is not None:
        return bool(account["address"] == address)
    name, part = _plain(account["name"]), _plain(wanted)
    if part == name:
        return True
    if len(part) < 3 or [part] == name.split()[:1]:
        return False
    return part in name or ("@" not in part and part in _plain(account["email"]).partition("@")[0])


def _plain(text: str) -> str:
    """However it is typed: blanks, capitals, and accents as letters of their own (NFD) do not matter."""
    return unicodedata.normalize("NFC", " ".join(unicodedata.normalize("NFC", text).casefold().split()))


FIND_CUSTOMER = Read(
    name="find_customer",
    description=(
        "Finds the customer of this ticket by a part of their name or e-mail address. Shows the name, the masked "
        "e-mail address and the order references, newest first. Other customers cannot be looked up."
    ),
    takes="query (an e-mail address, or a first and last name)",
    schema=object_schema(
        ["query"], query={"type": "string", "description": "An e-mail address, or a part of the customer's name."}
    ),
    fields={"query": who},
    query=query,
    answer=answer,
)
