"""Tokens for the demo's people, from the key in the data directory, and their way to the sign-in page."""

from pathlib import Path
from urllib.parse import urlencode

from turngate.embedded.state import State
from turngate.embedded.trouble import Trouble


def sign_in(data: Path, who: str, tenant: str | None = None) -> str:
    """A token for the person. Raises Trouble where there is no embedded issuer, or nobody of that name."""
    from turngate.issuer import Issuer, Unknown, find, real_issuers
    from turngate.people import everybody, tenants_directory

    if real_issuers():
        raise Trouble("Tokens are issued elsewhere (TURNGATE_ISSUERS is set). Get one there and set TURNGATE_TOKEN.")
    issuer = Issuer(data / "issuer")
    if not issuer.jwks.exists():
        raise Trouble(f"There is no embedded system in {data}. Start one with `turngate up --data {data}`.")
    try:
        return issuer.issue_to(find(everybody(tenants_directory()), who, tenant))
    except Unknown as error:
        raise Trouble(str(error)) from None
    except PermissionError:
        raise Trouble(f"The system on {data} is another user's: only they, or root, may sign in to it.") from None


def sign_in_link(running: State) -> str | None:
    """The link by which the owner of the data directory is let in to the sign-in page; None where people sign in
    elsewhere. It carries the secret: for their eyes only."""
    from turngate.entrance import ENTER, KEY
    from turngate.issuer import Issuer

    if running.issuer_url is None:
        return None
    return f"{running.issuer_url}{ENTER}?{urlencode({KEY: Issuer(Path(running.data) / 'issuer').secret})}"
