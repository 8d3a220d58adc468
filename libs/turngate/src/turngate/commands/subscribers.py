"""`turngate subscriber add`, `list`, `remove`: other systems that hear one tenant's facts."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from turngate.commands.options import DEFAULT_DATA, Data, Json, print_json, print_plain
from turngate.embedded.trouble import Trouble

subscriber = typer.Typer(help="Other systems that hear one tenant's facts.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Of the other system: letters, digits, _ and -.")]
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


@subscriber.command("add")
def add(
    name: Name,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose facts it hears.")],
    data: Data = DEFAULT_DATA,
    as_json: Json = False,
) -> None:
    """Let another system hear a tenant's facts, and nothing else. Prints its seed: this once, it is kept nowhere."""
    from contracts import nkeys, setup

    from turngate.broker import Subscriber

    server, pid = _server(data)
    if tenant not in (known := server.known_tenants()):
        raise Trouble(
            f"The running broker knows no tenant {tenant!r}, only {', '.join(known)}. Nothing was changed. A new "
            "tenant has subscribers after the next start."
        )
    seed = nkeys.new_seed()
    one = Subscriber(name, tenant, nkeys.public_key(seed))
    server.subscribers.add(one)
    _as_set_up(data, lambda nc: setup.add_subscriber(nc, name, tenant))
    server.read_again(pid)
    asyncio.run(_until_let_in(server.url, seed, one.user))
    told = {"name": name, "tenant": tenant, "url": server.url, "user": one.user, "seed": seed, "stream": "RUNS"}
    told |= {"consumer": one.user, "live": f"log.run.{tenant}.>", "inbox_prefix": f"_INBOX_{one.user}"}
    if as_json:
        print_json(told)
        return
    print_plain(f"{name} hears the facts of {tenant}: its consumer on RUNS is {one.user}, from the first fact on;")
    print_plain(f"live and without memory, log.run.{tenant}.>. Personal data in them is sealed.")
    print_plain(f"Its seed, which is shown this once and kept nowhere: {seed}\n")
    typer.echo(EXAMPLE.format(**told))


@subscriber.command("list")
def list_them(data: Data = DEFAULT_DATA, as_json: Json = False) -> None:
    """List them: name, tenant, the sequence up to which each has acknowledged, how many facts wait for it."""
    from contracts import setup

    server, _ = _server(data)
    found: list[dict[str, Any]] = []

    async def look(nc: Any) -> None:
        for one in server.subscribers.all():
            acknowledged, waiting = await setup.waiting_for(nc, one.name)
            found.append({"name": one.name, "tenant": one.tenant, "acknowledged": acknowledged, "waiting": waiting})

    _as_set_up(data, look)
    if as_json:
        print_json({"subscribers": found})
        return
    if not found:
        print_plain("No subscribers.")
    for one in found:
        print_plain(f"{one['name']:<24} {one['tenant']:<12} up to {one['acknowledged']}, {one['waiting']} wait")


@subscriber.command("remove")
def remove(name: Name, data: Data = DEFAULT_DATA, as_json: Json = False) -> None:
    """Shut another system out, at once. Its place in the log is forgotten."""
    from contracts import setup

    server, pid = _server(data)
    one = server.subscribers.named(name)
    server.subscribers.remove(name)
    server.read_again(pid)
    _as_set_up(data, lambda nc: setup.remove_subscriber(nc, name))
    print_json({"removed": name}) if as_json else print_plain(f"{name} hears nothing of {one.tenant} any more.")


def _server(data: Path) -> tuple[Any, int]:
    """The broker of the running system, and its process."""
    from turngate.embedded import state
    from turngate.embedded.nats import Nats
    from turngate.embedded.passwords import Passwords
    from turngate.embedded.ports import Ports

    found = state.read(data)
    data = Path(found.data)
    ports = Ports(data / "ports.json", running=True)
    return Nats(data, Passwords(data / "passwords.json"), ports["nats"]), int(found.processes["nats"]["pid"])


def _as_set_up(data: Path, work: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    from turngate import records

    async def do() -> None:
        async with records.set_up_broker(data).connection() as nc:
            await work(nc)

    records.answer(do())


async def _until_let_in(url: str, seed: str, user: str) -> None:
    import nats.errors
    from contracts.connection import connect
    from contracts.settings import BrokerSettings
    from pydantic import SecretStr

    settings = BrokerSettings(nats_url=url, nats_nkey=SecretStr(seed))
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
