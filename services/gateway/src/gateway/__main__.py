"""`python -m gateway` serves, `… seed` opens the demo's tickets, `… rebuild-views` makes the views anew, `… erase`
takes a customer off the desk (what `turngate erase` needs of it)."""

import asyncio
import sys

import psycopg
from contracts import logs, service
from contracts.errors import CorruptLog, Outage

from gateway import app
from gateway.database import open_pool
from gateway.desk import Desk
from gateway.erasure import Erase, Refused, erase
from gateway.profiles import InvalidTenant, Tenants
from gateway.rebuild import rebuild
from gateway.seeds import seed, tickets
from gateway.settings import Settings


async def _seed(settings: Settings) -> None:
    try:
        Tenants(settings.tenants_dir).check_currencies()
    except InvalidTenant as error:
        sys.exit(f"{error}\nNo tickets were opened. Put it right, and start again.")
    async with open_pool(settings.postgres_dsn.get_secret_value(), size=1) as pool:
        count = await seed(Desk(pool), tickets(settings.tenants_dir))
    print(f"{count} tickets are on the desk.")


async def answer_erasure(settings: Settings, asked: str) -> int:
    """Prints what was erased, or why it was not; the exit status."""
    try:
        erased = await erase(settings, Erase.model_validate_json(asked))
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    except (psycopg.Error, Outage, CorruptLog) as error:
        # Whoever asked is shown the last line of this.
        why = str(error).strip().splitlines() or [type(error).__name__]
        print(
            f"It broke off: {why[0]}. What was erased stays erased, the rest is still there: erase again.",
            file=sys.stderr,
        )
        return 1
    print(erased.model_dump_json())
    return 0


async def _rebuild(settings: Settings) -> None:
    print(f"The views hold the log up to {await rebuild(settings)}.")


def main(arguments: list[str]) -> None:
    settings = Settings()
    match arguments:
        case []:
            service.run("gateway", settings, app.start, outages=(psycopg.OperationalError,))
        case ["seed"]:
            asyncio.run(_seed(settings))
        case ["rebuild-views"]:
            asyncio.run(_rebuild(settings))
        case ["erase"]:
            logs.configure("gateway", settings.log_level)  # not among what is read from here
            sys.exit(asyncio.run(answer_erasure(settings, sys.stdin.read())))
        case _:
            sys.exit("Use `python -m gateway`, or with one of: seed, rebuild-views, erase.")


if __name__ == "__main__":
    main(sys.argv[1:])
