"""`python -m gateway` serves, `… seed` opens the demo's tickets, `… rebuild-views` makes the views anew, `… erase`
takes a customer off the desk (what `turngate erase` needs of it)."""

import asyncio
import sys

import psycopg
from contracts import logs, service

from gateway import app
from gateway.database import open_pool
from gateway.desk import Desk
from gateway.erasure import Erase, Refused, erase
from gateway.rebuild import rebuild
from gateway.seeds import seed, tickets
from gateway.settings import Settings


async def _seed(settings: Settings) -> None:
    async with open_pool(settings.postgres_dsn.get_secret_value(), size=1) as pool:
        count = await seed(Desk(pool), tickets(settings.tenants_dir))
    print(f"{count} tickets are on the desk.")


async def _erase(settings: Settings) -> int:
    logs.configure("gateway", settings.log_level)  # not among what is read from here
    try:
        erased = await erase(settings, Erase.model_validate_json(sys.stdin.read()))
    except Refused as refused:
        print(refused, file=sys.stderr)
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
            sys.exit(asyncio.run(_erase(settings)))
        case _:
            sys.exit("Use `python -m gateway`, `python -m gateway seed` or `python -m gateway rebuild-views`.")


if __name__ == "__main__":
    main(sys.argv[1:])
