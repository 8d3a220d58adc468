"""The supervisor with Postgres, NATS, the issuer, the stand-in, and of the services those that are named."""

import asyncio
import sys
from pathlib import Path

from turngate.embedded.child import Child
from turngate.embedded.services import Place, services
from turngate.embedded.system import System
from turngate.embedded.trouble import Trouble


def those(place: Place) -> list[Child]:
    return [child for child in services(place) if child.name in sys.argv[3:]]


if __name__ == "__main__":
    system = System(Path(sys.argv[1]), int(sys.argv[2]), services=those, seeded={})
    try:
        asyncio.run(system.run(lambda state: print("ready", flush=True)))
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        raise SystemExit(1) from None
