"""What children may see of our environment: enough to run, and no credential that is not theirs."""

import os
from collections.abc import Mapping

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
KEPT_PREFIXES = ("PYTHON", "OTEL_", "TURNGATE_")
OUTBOUND = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
SECRET = ("KEY", "TOKEN", "PASSWORD", "DSN")


def base(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if (name in KEPT or name.startswith(KEPT_PREFIXES)) and not name.endswith(SECRET)
    }


def outbound(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What only the one service that calls out of the machine needs."""
    return {name: environ[name] for name in OUTBOUND if name in environ}
