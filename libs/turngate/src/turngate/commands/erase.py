"""`turngate erase`."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from contracts.datakeys import KEPT, JetStreamKeys
from contracts.subjects import DEAD, RunKey

from turngate import records
from turngate.commands.options import DEFAULT_DATA, Data, Json, Tenant, print_json, print_plain
from turngate.databases import DATABASE, OWNER
from turngate.embedded import state
from turngate.embedded.passwords import Passwords
from turngate.embedded.services import environment_of
from turngate.embedded.trouble import Trouble
from turngate.records import Broker
from turngate.setup import in_database
from turngate.sign_in import sign_in

DEFAULT_PEOPLE = {"acme": "ada"}


def erase(
    customer: Annotated[str, typer.Option("--customer", help="The customer's id in the shop, as C-1004.")],
    who: Annotated[str | None, typer.Option("--as", help="Who asks. Default: the tenant's admin.")] = None,
    tenant: Tenant = None,
    data: Data = DEFAULT_DATA,
    as_json: Json = False,
) -> None:
    """Erase a customer: the keys of their runs, and all that the services keep of them. Safe to repeat.

    What was done for them stays: amounts, decisions, the chain of the log. Runs that go on are cancelled first.
    """
    tenant = tenant or "acme"
    person = who or DEFAULT_PEOPLE.get(tenant)
    if person is None:
        raise Trouble(f"Say who asks in {tenant}: --as NAME. Nothing was erased.")
    about = {"tenant": tenant, "customer": customer}
    emails = _ask(data, "tools-shop", "addresses", about, as_owner=True)
    if emails is None:
        raise Trouble(f"The shop of {tenant} knows no customer {customer}. Nothing was erased.")
    token = sign_in(data, person, tenant)
    desk = _ask(data, "gateway", "erase", {**about, "token": token, "emails": emails})
    runs: list[str] = desk["runs"]
    found: dict[str, Any] = {**about, **desk}
    found["keys"], found["dead_letters"] = records.answer(_destroy(records.set_up_broker(data), tenant, runs))
    found |= _ask(data, "agent-runner", "erase", {"tenant": tenant, "runs": runs})
    # The shop last: by its rows the rest is found again if this breaks off.
    found |= _ask(data, "tools-shop", "erase", {**about, "runs": runs}, as_owner=True)
    if as_json:
        print_json(found)
        return
    print_plain(f"{customer} of {tenant} is erased: {len(runs)} runs, {found['keys']} keys destroyed.")
    kept = ("customers", "refunds", "escalations", "receipts", "answers", "dead_letters")
    if desk["clear"]:
        print_plain(f"Began before texts were sealed, so the log still has them: {', '.join(desk['clear'])}.")
    print_plain("Emptied: " + ", ".join(f"{found[name]} {name.replace('_', ' ')}" for name in kept) + ".")


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


def _ask(data: Path, service: str, what: str, about: dict[str, Any], *, as_owner: bool = False) -> Any:
    """What the service's own module does about it, in a process that knows no more than the service; but for the shop's
    rows, which only their owner may change."""
    environment = environment_of(data, service)
    if as_owner:
        password = Passwords(data / "passwords.json")[OWNER]
        environment["TURNGATE_POSTGRES_DSN"] = in_database(state.read(data).postgres_url, DATABASE, OWNER, password)
    done = subprocess.run(  # noqa: S603 - our own modules
        [sys.executable, "-m", service.replace("-", "_"), what],
        env=environment,
        input=json.dumps(about),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["It did not say why."]
        raise Trouble(f"{service}: {why[0]}")
    return json.loads(done.stdout)


def register(app: typer.Typer) -> None:
    app.command()(erase)
