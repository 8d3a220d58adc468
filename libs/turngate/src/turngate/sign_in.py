"""Tokens for the demo's people, from the key in the data directory."""

from pathlib import Path

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
