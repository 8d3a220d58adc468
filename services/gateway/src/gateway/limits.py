"""How many calls a minute somebody may make here: a person or machine by their token, anyone else by their address."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address, ip_network

from contracts.identity import Principal

from gateway.metrics import LIMITED
from gateway.problems import Problem

MINUTE = 60.0
MAX_CALLERS = 10_000  # remembered of each kind; beyond it those who called longest ago are forgotten
SLACK = 1e-6  # seconds: who waits as long as they were told is not turned away by a rounding
IPV6_SITE = 64  # bits: one customer of a provider has all addresses behind them


class RateLimit:
    """A token bucket for each caller, which holds a minute's calls and fills evenly (GCRA). Not for threads."""

    def __init__(
        self, per_minute: int, clock: Callable[[], float] = time.monotonic, max_callers: int = MAX_CALLERS
    ) -> None:
        self.per_minute = per_minute
        self._interval = MINUTE / per_minute
        self._clock = clock
        self._max_callers = max_callers
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()  # when the caller's bucket will be full again

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, caller: Hashable) -> float:
        """0.0 if the caller may make this call now; else for how many seconds they may not, and nothing is taken."""
        now = self._clock()
        full_at = max(now, self._full_at.get(caller, now))
        if (wait := full_at + self._interval - MINUTE - now) > SLACK:
            return wait
        self._full_at[caller] = full_at + self._interval
        self._full_at.move_to_end(caller)
        while len(self._full_at) > self._max_callers or next(iter(self._full_at.values())) <= now:
            self._full_at.popitem(last=False)
        return 0.0


class Limits:
    """Raises a 429 for the call that is one too many; nothing of it is done."""

    def __init__(self, calls: int, unauthenticated_calls: int) -> None:
        self._people = RateLimit(calls)
        self._addresses = RateLimit(unauthenticated_calls)

    def count(self, principal: Principal) -> None:
        self._take(self._people, (principal.issuer, principal.subject), "person")

    def count_unauthenticated(self, address: str | None) -> None:
        self._take(self._addresses, site_of(address or ""), "address")

    def _take(self, limit: RateLimit, caller: Hashable, kind: str) -> None:
        if wait := limit.take(caller):
            LIMITED.labels(kind).inc()
            seconds = math.ceil(wait)
            raise Problem(
                429,
                "Too many calls",
                f"More than {limit.per_minute:,} calls in a minute came from you. Nothing was done. Try again in "
                f"{seconds} s.",
                {"Retry-After": str(seconds)},
            )


def site_of(address: str) -> str:
    """What counts as one address: an IPv4 one, however it is written, or the network of an IPv6 one."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(ip_network((int(found), IPV6_SITE), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
