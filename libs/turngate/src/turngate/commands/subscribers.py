"""`turngate subscriber add`, `list`, `remove`, `users`: other systems that hear one tenant's facts."""

import asyncio
import json
import time
import uuid
from http import HTTPStatus
from typing import Annotated, Any

import typer
from contracts import asks
from contracts.answers import No
from contracts.validation import explain
from pydantic import SecretStr, ValidationError

from turngate import records
from turngate.api import Refused
from turngate.commands.connection import servers, token_of
from turngate.commands.options import Json, SetUp, print_json, print_plain, print_table
from turngate.embedded.trouble import Trouble
from turngate.servers import Servers

subscriber = typer.Typer(help="Other systems that hear one tenant's facts.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Of the other system: letters, digits, _ and -.")]
Who = Annotated[str | None, typer.Option("--as", help="Who asks. Default: TURNGATE_TOKEN, or the tenant's admin.")]
ANSWERS_WITHIN = 10.0  # seconds
LEARNS_WITHIN = 15.0  # seconds

EXAMPLE = """\
# pip install "nats-py[nkeys]"
import asyncio, nats

async def main():
    nc = await nats.connect("{url}", nkeys_seed_str="{seed}", inbox_prefix="_INBOX_{user}")
    facts = await nc.jetstream().pull_subscribe_bind("{user}", stream="RUNS")
    while True:
        try:
            for fact in await facts.fetch(100, timeout=30):
                print(fact.metadata.sequence.stream, fact.subject, fact.data)
                await fact.ack()
        except TimeoutError:
            pass

asyncio.run(main())"""
# Where the broker is somebody else's.
TELL_IT = """\
The broker does not know of it yet. Beside deploy/compose.yaml:
  docker compose run --rm --no-TTY set-up turngate subscriber users > subscribers.conf
  docker compose kill --signal HUP nats"""


@subscriber.command("add")
def add(
    name: Name,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose facts it hears.")],
    who: Who = None,
    data: SetUp = None,
    as_json: Json = False,
) -> None:
    """Let another system hear a tenant's facts, and nothing else. Prints its seed: this once, it is kept nowhere."""
    from contracts import nkeys

    from turngate import subscribing
    from turngate.broker import Subscriber

    asked = servers(data)
    if tenant not in (known := asked.tenants()):
        raise Trouble(
            f"The broker knows no tenant {tenant!r}, only {', '.join(known)}. Nothing was changed. A new tenant has "
            "subscribers after the next start."
        )
    seed = nkeys.new_seed()
    one = Subscriber(name, tenant, nkeys.public_key(seed))

    async def let_in(nc: Any) -> bool:
        if await subscribing.named(nc, name):
            raise Trouble(
                f"There is a subscriber {name!r} already; nothing was changed. Its seed is kept nowhere: for a new "
                f"one, `turngate subscriber remove {name}`, and add it again."
            )
        await _say(nc, tenant, asks.AskAddSubscriber, token_of(asked, who, tenant, "admin"), name)
        try:
            await subscribing.add(nc, one)
            return asked.tell([each.subscriber for each in await subscribing.hearing(nc)])
        except Exception as error:
            raise Trouble(
                f"It is on record that {name} may hear {tenant}, but the broker did not take it: {error}. Nobody has "
                f"its seed. `turngate subscriber remove {name} --tenant {tenant}`, and add it again."
            ) from error

    told_to_it = _as_set_up(asked, let_in)
    if told_to_it:
        asyncio.run(_until_let_in(asked.broker.url, seed, one.user))
    told = {"name": name, "tenant": tenant, "url": asked.broker.url, "user": one.user, "seed": seed, "stream": "RUNS"}
    told |= {"consumer": one.user, "live": f"log.run.{tenant}.>", "inbox_prefix": f"_INBOX_{one.user}"}
    if as_json:
        print_json(told)
        return
    print_plain(f"{name} hears the facts of {tenant}: its consumer on RUNS is {one.user}, from the first fact on;")
    print_plain(f"live and without memory, log.run.{tenant}.>. Personal data in them is sealed.")
    print_plain(f"Its seed, which is shown this once and kept nowhere: {seed}\n")
    typer.echo(EXAMPLE.format(**told))
    if not told_to_it:
        print_plain(f"\n{TELL_IT}")


@subscriber.command("list")
def list_them(data: SetUp = None, as_json: Json = False) -> None:
    """List them: name, tenant, the sequence up to which each has acknowledged, how many facts wait for it."""
    from turngate import subscribing

    found = [
        {"name": one.subscriber.name, "tenant": one.subscriber.tenant}
        | {"acknowledged": one.acknowledged, "waiting": one.waiting}
        for one in _as_set_up(servers(data), subscribing.hearing)
    ]
    if as_json:
        print_json({"subscribers": found})
        return
    if not found:
        print_plain("No subscribers.")
    print_table([(one["name"], one["tenant"], f"up to {one['acknowledged']}, {one['waiting']} wait") for one in found])


@subscriber.command("remove")
def remove(
    name: Name,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Whose it was, if the broker knows nothing of it.")
    ] = None,
    who: Who = None,
    data: SetUp = None,
    as_json: Json = False,
) -> None:
    """Shut another system out. Its place in the log is forgotten. Safe to repeat where it broke off."""
    from turngate import subscribing

    asked = servers(data)

    async def shut_out(nc: Any) -> tuple[str, bool]:
        one = await subscribing.named(nc, name)
        whose = one.tenant if one else tenant
        if whose is None:
            raise Trouble(
                f"There is no subscriber {name!r}. Nothing was changed; `turngate subscriber list` shows them."
            )
        before: Refused | None = None
        try:
            await _say(nc, whose, asks.AskRemoveSubscriber, token_of(asked, who, whose, "admin"), name)
        except Refused as no:
            if no.status != HTTPStatus.CONFLICT:
                raise
            # It is on record already, perhaps by a removal that broke off: the broker may have yet to hear of it.
            before = no
        await subscribing.remove(nc, name)
        # The last word: while the broker reads its configuration again, it may leave a request without an answer.
        told_to_it = asked.tell([each.subscriber for each in await subscribing.hearing(nc)])
        if before is not None and one is None:
            raise before
        return whose, told_to_it

    whose, told_to_it = _as_set_up(asked, shut_out)
    if as_json:
        print_json({"removed": name})
        return
    print_plain(f"{name} hears nothing of {whose} any more.")
    if not told_to_it:
        print_plain(TELL_IT)


@subscriber.command("users")
def users(data: SetUp = None) -> None:
    """Print the accounts of all subscribers as the composed system's broker reads them: deploy/subscribers.conf."""
    from turngate import subscribing
    from turngate.broker import composed_subscribers

    asked = servers(data)
    known = _as_set_up(asked, subscribing.hearing)
    typer.echo(composed_subscribers(asked.tenants(), [each.subscriber for each in known]), nl=False)


async def _say(
    nc: Any, tenant: str, ask: type[asks.AskAddSubscriber] | type[asks.AskRemoveSubscriber], token: str, name: str
) -> None:
    """Has approvals record it. Raises Trouble where the person may not."""
    import nats.errors

    try:
        asked = ask(token=SecretStr(token), request=uuid.uuid4().hex, subscriber=name)
    except ValidationError as error:
        raise Trouble(f"{explain(error)} Nothing was changed.") from None
    body = json.dumps(asked.model_dump(mode="json")).encode()
    try:
        answer = json.loads((await nc.request(asks.OF_TENANT, body, timeout=ANSWERS_WITHIN)).data)
    except nats.errors.Error as error:
        raise Trouble(f"Approvals does not answer ({error}), so nobody has said this. Nothing was changed.") from None
    if no := No.in_answer(answer):
        raise Refused(no.status, no.title, no.detail)
    if (theirs := answer["event"]["tenant"]) != tenant:
        raise Trouble(f"The token is one of {theirs}, not of {tenant}. The broker was not changed.")


def _as_set_up(asked: Servers, work: Any) -> Any:
    async def do() -> Any:
        async with asked.broker.connection() as nc:
            return await work(nc)

    return records.answer(do())


async def _until_let_in(url: str, seed: str, user: str) -> None:
    import nats.errors
    from contracts.connection import connect

    settings = records.settings(nats_url=url, nats_nkey=SecretStr(seed))
    until = time.monotonic() + LEARNS_WITHIN
    while True:
        try:
            client = await connect(settings, allow_reconnect=False, error_cb=_silent)
            break
        except (OSError, nats.errors.Error):
            if time.monotonic() > until:
                raise Trouble(
                    f"The broker has not let {user} in after {LEARNS_WITHIN:.0f} s: see logs/nats.log in the data "
                    "directory. It will at the next start; or `turngate subscriber remove` it."
                ) from None
            await asyncio.sleep(0.02)
    await client.close()


async def _silent(error: Exception) -> None:
    pass


def register(app: typer.Typer) -> None:
    app.add_typer(subscriber, name="subscriber")
