"""Where a webhook may go: names are resolved here, and only the addresses that were looked at are connected to."""

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import Executor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import httpcore

Address = IPv4Address | IPv6Address

# IANA's special-purpose registries, written out: what `is_global` says differs between patch releases of Python.
_IPV4_SPECIAL = [
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by a provider's customers
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation, as the next ones
        "198.51.100.0/24",
        "203.0.113.0/24",
        "192.88.99.0/24",  # relays to 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# All that has been handed out for global unicast so far. IPv4-compatible, site-local, unique local, link-local and
# multicast addresses, and NAT64's local prefix, are outside it.
_IPV6_GLOBAL = IPv6Network("2000::/3")
_IPV6_SPECIAL = [
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocols: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation, as 3fff::/20
        "2002::/16",  # 6to4
        "3fff::/20",
    )
]
_IPV4_MAPPED, _NAT64 = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # the third quarter of such an address (RFC 5214, section 6.1)


class OutOfBounds(Exception):
    """The address is not one that a webhook may reach; the message says why."""


def why_not(address: Address, *, loopback: bool = False) -> str | None:
    """Why nothing may be sent to this address; None if it is global unicast, or this machine's where that is allowed.

    An IPv4 address inside an IPv6 one is judged as what it is."""
    inner = _inside(address)
    if inner is not None and not _reaches_inside(address):
        return f"{address} is not on the public internet"
    if (target := inner or address).is_loopback:
        return None if loopback else f"{address} is this machine itself"
    return None if _is_global(target) else f"{address} is not on the public internet"


def _is_global(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _IPV4_SPECIAL)
    return address in _IPV6_GLOBAL and not any(address in network for network in _IPV6_SPECIAL)


def _inside(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for; None also in what is never public (6to4, Teredo)."""
    if isinstance(address, IPv4Address):
        return None
    number = int(address)
    wraps = address in _IPV4_MAPPED or address in _NAT64 or (number >> 32) & 0xFFFF_FFFF in _ISATAP
    return IPv4Address(number & 0xFFFF_FFFF) if wraps else None


def _reaches_inside(address: Address) -> bool:
    """Whether it is enough to judge what is inside. A tunnel's own address (ISATAP) has to be public as well."""
    return address in _IPV4_MAPPED or address in _NAT64 or _is_global(address)


async def allowed(host: str, port: int, executor: Executor | None, *, loopback: bool = False) -> list[Address]:
    """The addresses of a host, if all of them may be reached. Raises OutOfBounds, and OSError where it has none."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(executor, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    addresses = list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
    for address in addresses:
        if (why := why_not(address, loopback=loopback)) is not None:
            raise OutOfBounds(f"{host} may not be told: {why}.")
    return addresses


class Guarded(httpcore.AnyIOBackend):
    """Connects to addresses that were looked at, never to a name: a second resolution could bring another answer."""

    def __init__(self, executor: Executor | None, *, loopback: bool = False) -> None:
        self._executor, self._loopback = executor, loopback

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in await allowed(host, port, self._executor, loopback=self._loopback):
            try:
                return await super().connect_tcp(str(address), port, timeout, local_address, socket_options)
            except httpcore.ConnectError as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")
