"""Which gateway a command speaks to, and as whom."""

import os
from pathlib import Path

from turngate.api import Api
from turngate.embedded import state
from turngate.embedded.trouble import Trouble
from turngate.sign_in import sign_in

DEFAULT_TENANT = "acme"
DEFAULT_PEOPLE = {DEFAULT_TENANT: "alex", "globex": "gwen"}


def connect(data: Path, url: str | None, who: str | None, tenant: str | None) -> Api:
    """The gateway that is meant, as the person who is meant: TURNGATE_TOKEN unless somebody is named."""
    token = os.environ.get("TURNGATE_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):
        raise Trouble("TURNGATE_TOKEN holds no token: it has characters that none can have. Nothing was asked.")
    if who is None and token:
        return Api(url or state.read(data).url, token)
    if url is not None:
        raise Trouble(f"Say who you are to {url}: set TURNGATE_TOKEN to a token that it believes.")
    found = state.read(data)
    return Api(found.url, sign_in(data, who or default_person(tenant), tenant))


def default_person(tenant: str | None) -> str:
    person = DEFAULT_PEOPLE.get(tenant or DEFAULT_TENANT)
    if person is None:
        raise Trouble(f"Say who asks in {tenant}: --as NAME.")
    return person
