"""`turngate erase`."""

import asyncio
import json
import subprocess
import sys
from typing import Annotated, Any

import psycopg
import typer
from contracts.datakeys import KEPT, JetStreamKeys
from contracts.subjects import DEAD, RunKey

from turngate import records
from turngate.commands.connection import DEFAULT_TENANT, servers, token_of
from turngate.commands.options import Json, SetUp, Tenant, print_json, print_plain
from turngate.embedded.trouble import Trouble
from turngate.freed import rewrite
from turngate.records import Broker
from turngate.servers import Servers


def erase(
    customer: Annotated[str, typer.Option("--customer", help="The customer's id in the shop, as C-1004.")],
    who: Annotated[str | None, typer.Option("--as", help="Who asks. Default: TURNGATE_TOKEN, or the admin.")] = None,
    tenant: Tenant = None,
    keep_freed: Annotated[
        bool, typer.Option("--keep-freed", help="Leave the database's freed space as it is: no table is locked.")
    ] = False,
    data: SetUp = None,
    as_json: Json = False,
) -> None:
    """Erase a customer: the keys of their runs, and all that the services keep of them. Safe to repeat.

    What was done for them stays: amounts, decisions, the chain of the log. Runs that go on are cancelled first. In the
    end the tables that held something are written anew, each locked as long as that takes.
    """
    tenant = tenant or DEFAULT_TENANT
    asked = servers(data)
    token = token_of(asked, who, tenant, "admin")
    about = {"tenant": tenant, "customer": customer}
    emails = _ask(asked, "tools-shop", "addresses", about)
    if emails is None:
        raise Trouble(f"The shop of {tenant} knows no customer {customer}. Nothing was erased.")
    desk = _ask(asked, "gateway", "erase", {**about, "token": token, "emails": emails})
    runs: list[str] = desk["runs"]
    found: dict[str, Any] = {**about, **desk}
    found["keys"], found["dead_letters"] = records.answer(_destroy(asked.broker, tenant, runs))
    found |= _ask(asked, "agent-runner", "erase", {"tenant": tenant, "runs": runs})
    # The shop last: by its rows the rest is found again if this breaks off.
    found |= _ask(asked, "tools-shop", "erase", {**about, "runs": runs})
    if not keep_freed:
        _rewrite(asked, customer)
    if as_json:
        print_json(found)
        return
    print_plain(f"{customer} of {tenant} is erased: {len(runs)} runs, {found['keys']} keys destroyed.")
    kept = ("customers", "refunds", "escalations", "receipts", "answers", "dead_letters")
    if desk["clear"]:
        print_plain(f"Began before texts were sealed, so the log still has them: {', '.join(desk['clear'])}.")
    print_plain("Emptied: " + ", ".join(f"{found[name]} {name.replace('_', ' ')}" for name in kept) + ".")


def _rewrite(asked: Servers, customer: str) -> None:
    try:
        rewrite(asked.superuser)
    except psycopg.Error as error:
        raise Trouble(
            f"{customer} is erased, but what the database freed by that may still be in its files: {error} "
            "Give the same command again to have those written anew."
        ) from None


async def _destroy(broker: Broker, tenant: str, runs: list[str]) -> tuple[int, int]:
    """Destroys the runs' keys, and the dead letters that are about them; how many of each there were."""
    async with broker.connection() as client:
        keys = JetStreamKeys(client)
        destroyed = sum([await keys.erase(RunKey(tenant, run)) for run in runs])
        # A service that had a key in hand has let it go by then: from here on nobody opens anything.
        await asyncio.sleep(KEPT if destroyed else 0)
        return destroyed, await _dead_letters(client, {f"run.{tenant}.{run}" for run in runs})


async def _dead_letters(client: Any, about: set[str]) -> int:
    from nats.js.errors import NotFoundError

    jetstream = client.jetstream()
    kept = (await jetstream.stream_info(DEAD)).state
    gone = 0
    for number in range(max(kept.first_seq, 1), kept.last_seq + 1):
        try:
            message = await jetstream.get_msg(DEAD, number)
        except NotFoundError:
            continue
        subject = str(records.letter(message.data or b"")["subject"])
        if subject.rsplit(".", 2)[0] in about:
            gone += await jetstream.delete_msg(DEAD, number)
    return gone


def _ask(asked: Servers, service: str, what: str, about: dict[str, Any]) -> Any:
    """What the service's own module does about it, in a process of its own."""
    done = subprocess.run(  # noqa: S603 - our own modules
        [sys.executable, "-m", service.replace("-", "_"), what],
        env=asked.environment(),
        input=json.dumps(about),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Trouble(f"{service}: {_why(done.stderr)}")
    return json.loads(done.stdout)


def _why(said: str) -> str:
    """A refusal as the service put it. What broke off is told in its own words, and what to do about it."""
    lines = [line for line in said.strip().splitlines() if line.strip(" ^~")] or ["It did not say why."]
    if "Traceback (most recent call last):" not in said:
        return lines[-1]
    return (
        f"{lines[-1]}\nIt broke off here: what was erased before is erased, nothing more. Once that is mended, give "
        f"the same command again. All that it said:\n{said.strip()[-3000:]}"
    )


def register(app: typer.Typer) -> None:
    app.command()(erase)
