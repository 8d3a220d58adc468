"""Where a webhook may go: names are resolved here, and only the addresses that were looked at are connected to."""

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import Executor
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import httpcore

Address = IPv4Address | IPv6Address

# What the standard library of some supported versions still takes for public (IANA's special-purpose registries).
_NOT_PUBLIC = [
    ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2001::/23", "2002::/16", "3fff::/20", "5f00::/16")
]
_NAT64 = IPv6Network("64:ff9b::/96")


class OutOfBounds(Exception):
    """The address is not one that a webhook may reach; the message says why."""


def why_not(address: Address, *, loopback: bool = False) -> str | None:
    """Why nothing may be sent to this address; None if it is public, or this machine's where that is allowed."""
    inner = _inside(address)
    if inner is not None:
        return why_not(inner, loopback=loopback)
    if address.is_loopback:
        return None if loopback else f"{address} is this machine itself"
    if not address.is_global or address.is_multicast or any(address in network for network in _NOT_PUBLIC):
        return f"{address} is not on the public internet"
    return None


def _inside(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, IPv4Address):
        return None
    return address.ipv4_mapped or (IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None)


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
