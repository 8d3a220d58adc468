"""Which gateway a command speaks to, and as whom."""

import functools
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import jwt
import typer

from turngate.api import Api
from turngate.commands.options import DEFAULT_DATA, As, Data, Tenant, Url
from turngate.embedded import state
from turngate.embedded.trouble import Trouble
from turngate.lines import plain
from turngate.people import STAFF
from turngate.servers import SUPERUSER_DSN, Servers, named_by, of_the_system_on
from turngate.sign_in import sign_in

DEFAULT_TENANT = "acme"


def servers(data: Path | None) -> Servers:
    """Those of the system that is meant: on the directory, if one is named; else by set-up's environment, if there is
    one."""
    if data is None and os.environ.get(SUPERUSER_DSN):
        return named_by(os.environ)
    return of_the_system_on(data or DEFAULT_DATA)


def connect(data: Path, url: str | None, who: str | None, tenant: str | None) -> Api:
    """The gateway that is meant, as the person who is meant: TURNGATE_TOKEN unless somebody is named."""
    token = given_token()
    if who is None and token:
        return Api(url or state.read(data).url, token)
    if url is not None:
        raise Trouble(f"Say who you are to {url}: set TURNGATE_TOKEN to a token that it believes.")
    found = state.read(data)
    return Api(found.url, sign_in(data, who or default_person(tenant, "operator"), tenant))


def token_of(asked: Servers, who: str | None, tenant: str, role: str) -> str:
    """The named person's; TURNGATE_TOKEN where nobody is named, else, on an embedded system, that of whoever has the
    role in the tenant."""
    token = given_token()
    if who is None and token:
        _is_one_of(token, tenant)
        return token
    if asked.data is None:
        raise Trouble(f"Set TURNGATE_TOKEN to an access token of {tenant}'s {role}. Nothing was changed.")
    return sign_in(asked.data, who or default_person(tenant, role), tenant)


def _is_one_of(token: str, tenant: str) -> None:
    """Before anything is said in its name. Whether it is to be believed, others find out."""
    with suppress(jwt.InvalidTokenError):
        theirs = jwt.decode(token, options={"verify_signature": False}).get("tenant", tenant)
        if theirs != tenant:
            raise Trouble(f"TURNGATE_TOKEN is a token of {theirs}, not of {tenant}: say --tenant. Nothing was changed.")


def given_token() -> str:
    token = os.environ.get("TURNGATE_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):
        raise Trouble("TURNGATE_TOKEN holds no token: it has characters that none can have. Nothing was asked.")
    return token


def default_person(tenant: str | None, role: str) -> str:
    """Whoever of the demo has the role there, the first where there are several."""
    tenant = tenant or DEFAULT_TENANT
    for somebody in STAFF:
        if (somebody.tenant, somebody.role) == (tenant, role):
            return somebody.subject
    known = sorted({somebody.tenant for somebody in STAFF})
    if tenant not in known:
        raise Trouble(
            f"The demo has no tenant {plain(tenant, 64)!r}; it has {', '.join(known)}. In another one say who asks, "
            "with --as NAME or TURNGATE_TOKEN. Nothing was asked."
        )
    raise Trouble(f"Say who asks in {tenant}: --as NAME. Nothing was asked.")


def somebody(who: str) -> Any:
    """The option that names the person, where there is no default: `who` says whom it may be."""
    return Annotated[str | None, typer.Option("--as", help=f"{who}. Or set TURNGATE_TOKEN.", callback=_named)]


def _named(value: str | None) -> str | None:
    if value is None and not os.environ.get("TURNGATE_TOKEN"):
        raise typer.BadParameter("say who does it, as in --as sam (or set TURNGATE_TOKEN)")
    return value


def signed_in(command: Callable[..., None], who: Any = As) -> Callable[..., None]:
    """The command with the options that say where and as whom, in place of its first parameter, an Api. `who` is the
    option that names the person."""

    @functools.wraps(command)
    def asked(*, who: str | None, tenant: str | None, data: Path, url: str | None, **rest: Any) -> None:
        command(connect(data, url, who, tenant), **rest)

    options = {"who": (who, None), "tenant": (Tenant, None), "data": (Data, DEFAULT_DATA), "url": (Url, None)}
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own] + more
    asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    asked.__annotations__ = {one.name: one.annotation for one in parameters}
    return asked
