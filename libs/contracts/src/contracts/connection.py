"""How everybody enters the broker: by NKey or password, over TLS where a certificate authority is named."""

import ssl
from typing import Any

from nats.aio.client import Client

from contracts import nkeys
from contracts.settings import BrokerSettings


async def connect(settings: BrokerSettings, client: Client | None = None, **options: Any) -> Client:
    """The client, connected as the settings say. Raises BadSeed where the NKey is none."""
    client = client or Client()
    if settings.nats_nkey is not None:
        seed = settings.nats_nkey.get_secret_value()
        options |= _by_key(client, seed)
    elif settings.nats_user is not None:
        password = settings.nats_password.get_secret_value() if settings.nats_password else None
        options |= {"user": settings.nats_user, "password": password}
    if settings.nats_tls_ca is not None:
        # Before anything else is said: otherwise whoever sits between could say that this broker speaks no TLS.
        options |= {"tls": _trust(settings), "tls_handshake_first": True}
    await client.connect(settings.nats_url, **options)
    return client


def _by_key(client: Client, seed: str) -> dict[str, Any]:
    """nats-py signs by itself only with the `nkeys` package, which has no wheel and brings a second crypto library."""
    public = nkeys.public_key(seed)
    client._public_nkey = public
    return {"user": public, "signature_cb": lambda nonce: nkeys.sign(seed, nonce)}


def _trust(settings: BrokerSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.nats_tls_ca)
    if settings.nats_tls_cert is not None:
        context.load_cert_chain(settings.nats_tls_cert, settings.nats_tls_cert_key)
    return context


async def settle(nc: Client) -> None:
    """Returns once the broker has dealt with all that was sent before, and we have heard what it refused of it."""
    for _ in range(2):  # nats-py's first ping overtakes what still waits to be written
        await nc.flush()
