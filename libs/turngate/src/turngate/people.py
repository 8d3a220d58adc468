"""Who lives in the demo's tenants: the staff that the demo is told about, and the customers of its shops."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from contracts.strict import parse_yaml

from turngate.embedded.trouble import Trouble


@dataclass(frozen=True)
class Somebody:
    subject: str
    tenant: str
    role: str
    name: str
    email: str | None = None


STAFF = (
    Somebody("alex", "acme", "operator", "Alex"),
    Somebody("sam", "acme", "approver", "Sam"),
    Somebody("sue", "acme", "approver", "Sue"),
    Somebody("lee", "acme", "lead", "Lee"),
    Somebody("ari", "acme", "auditor", "Ari"),
    Somebody("ada", "acme", "admin", "Ada"),
    Somebody("gwen", "globex", "operator", "Gwen"),
    Somebody("gus", "globex", "approver", "Gus"),
    Somebody("gail", "globex", "lead", "Gail"),
    Somebody("glen", "globex", "auditor", "Glen"),
    Somebody("gia", "globex", "admin", "Gia"),
)


def tenants_directory() -> Path:
    """`deploy/tenants` of the checkout that this code runs from, unless TURNGATE_TENANTS_DIR names another."""
    given = os.environ.get("TURNGATE_TENANTS_DIR")
    path = Path(given) if given else Path(__file__).parents[4] / "deploy" / "tenants"
    if not path.is_dir():
        raise Trouble(f"There is no directory of tenants at {path}. Set TURNGATE_TENANTS_DIR to deploy/tenants.")
    return path.resolve()


def tenants(directory: Path) -> list[str]:
    """The tenants that are configured: one directory each."""
    return sorted(path.name for path in directory.iterdir() if path.is_dir() and not path.name.startswith("."))


def everybody(directory: Path) -> list[Somebody]:
    here = tenants(directory)
    return [who for who in STAFF if who.tenant in here] + [
        who for tenant in here for who in customers(directory, tenant)
    ]


@cache  # reading the file takes longer than all else about a token
def customers(directory: Path, tenant: str) -> tuple[Somebody, ...]:
    """`cust-C-1004` for customer C-1004 of the tenant's demo shop."""
    file = directory / tenant / "demo.yaml"
    if not file.exists():
        return ()
    demo = parse_yaml(file.read_text()) or {}
    return tuple(
        Somebody(f"cust-{row['id']}", tenant, "customer", row.get("name") or row["id"], row.get("email"))
        for row in demo.get("customers", [])
    )
