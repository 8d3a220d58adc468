"""What children may see of our environment: enough to run, and no credential that is not theirs."""

import os
from collections.abc import Mapping

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
KEPT_PREFIXES = ("PYTHON", "OTEL_", "TURNGATE_")
OUTBOUND = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
SECRET = ("KEY", "TOKEN", "PASSWORD", "DSN", "SECRET")
NOTIFYING = ("TURNGATE_SMTP_", "TURNGATE_NOTIFY_")


def base(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if (name in KEPT or name.startswith(KEPT_PREFIXES))
        and not name.endswith(SECRET)
        and not name.startswith(NOTIFYING)
    }


def plain(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Enough to run, and none of our settings."""
    return {name: value for name, value in environ.items() if name in KEPT or name.startswith("PYTHON")}


def notifying(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What only the one service that tells people needs: its mail server, and the secrets that it signs with."""
    return {name: value for name, value in environ.items() if name.startswith(NOTIFYING)}


def outbound(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What only the one service that calls out of the machine needs."""
    return {name: environ[name] for name in OUTBOUND if name in environ}
