"""Which gateway a command speaks to, and as whom."""

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from turngate.api import Api
from turngate.commands.options import DEFAULT_DATA, As, Data, Tenant, Url
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
