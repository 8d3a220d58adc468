"""Serves the stand-in: `python -m standin --port 8190`."""

import argparse
import os

import uvicorn

from standin.app import app


def main() -> None:
    parser = argparse.ArgumentParser(prog="standin", description="A stand-in for the Messages API.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=int(os.environ.get("TURNGATE_STANDIN_PORT", "8190")))
    parser.add_argument(
        "--pace-ms",
        type=float,
        default=float(os.environ.get("TURNGATE_STANDIN_PACE_MS", "0")),
        help="the pause before each piece of text, so that a person can watch it being written",
    )
    given = parser.parse_args()
    uvicorn.run(app(pace_ms=given.pace_ms), host=given.host, port=given.port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
