"""`python -m tools_shop` runs the service, `… seed` fills the demo shops, `… recall` measures the help centre.

`… addresses` and `… erase` are what `turngate erase` needs of the shop: as its owner, about a customer on stdin.
"""

import json
import sys

import psycopg
from contracts import service

from tools_shop import app, domain
from tools_shop.settings import Settings


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            outages = (psycopg.OperationalError,)
            service.run("tools-shop", Settings(), app.start, reads=domain.READS, outages=outages)
        case ["seed"]:
            from contracts.settings import DatabaseSettings

            from tools_shop.seeding import InvalidShop, seed

            settings = DatabaseSettings()
            try:
                for tenant in seed(settings.postgres_dsn.get_secret_value(), settings.tenants_dir):
                    print(f"{tenant}: seeded")
            except InvalidShop as error:
                print(f"{error}\nPut it right, and start again.", file=sys.stderr)
                return 1
        case ["addresses" | "erase" as what]:
            from contracts.settings import DatabaseSettings

            from tools_shop import erasure

            dsn = DatabaseSettings().postgres_dsn.get_secret_value()
            asked = erasure.Customer.model_validate_json(sys.stdin.read())
            print(json.dumps((erasure.addresses if what == "addresses" else erasure.erase)(dsn, asked)))
        case ["recall"]:
            from contracts.settings import ServiceSettings

            from tools_shop.recall import report

            return report(ServiceSettings().tenants_dir)
        case _:
            print("usage: python -m tools_shop [seed | recall | addresses | erase]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
