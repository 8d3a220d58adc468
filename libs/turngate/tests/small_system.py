"""The supervisor with Postgres, NATS, the issuer and the stand-in, without the services: what its own tests need."""

import asyncio
import sys
from pathlib import Path

from turngate.embedded.system import System
from turngate.embedded.trouble import Trouble

if __name__ == "__main__":
    system = System(Path(sys.argv[1]), int(sys.argv[2]), services=lambda place: [], seeded={})
    try:
        asyncio.run(system.run(lambda state: print("ready", flush=True)))
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        raise SystemExit(1) from None
