"""Serves the stand-in: `python -m standin --port 8190`."""

import argparse
import os

import uvicorn

from standin.app import app
from standin.serving import listener


def main() -> None:
    parser = argparse.ArgumentParser(prog="standin", description="A stand-in for the Messages API.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument(
        "--port", type=int, default=int(os.environ.get("TURNGATE_STANDIN_PORT", "8190")), help="0 takes a free one"
    )
    parser.add_argument(
        "--pace-ms",
        type=float,
        default=float(os.environ.get("TURNGATE_STANDIN_PACE_MS", "0")),
        help="the pause before each piece of text, so that a person can watch it being written",
    )
    given = parser.parse_args()
    listening = listener(given.host, given.port)
    print(f"The stand-in for the Messages API listens on http://{given.host}:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app(pace_ms=given.pace_ms), access_log=False, log_level="warning")
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
