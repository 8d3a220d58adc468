"""NKeys, by which services prove to the broker who they are: a seed that stays private, and its public key.

Ed25519 by `cryptography`, in the spelling of github.com/nats-io/nkeys: base32 of a prefix, the key and its CRC-16.
"""

import base64
import binascii
import os

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_SEED, _USER = 18 << 3, 20 << 3  # base32 spells them S and U
# The five bits of the first prefix, then the eight of the second, at the front of sixteen.
_SEED_OF_A_USER = bytes([_SEED | _USER >> 5, (_USER & 31) << 3])


class BadSeed(ValueError):
    """What was given is no seed of a user. The message does not repeat it."""


def new_seed() -> str:
    """A fresh seed of a user, `SU…`: as secret as a password."""
    return _spelled(_SEED_OF_A_USER + os.urandom(32))


def public_key(seed: str) -> str:
    """The `U…` that the broker's configuration names the seed's user by."""
    return _spelled(bytes([_USER]) + _key(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def sign(seed: str, nonce: str) -> bytes:
    """The answer to the broker's challenge, in base64."""
    return base64.b64encode(_key(seed).sign(nonce.encode()))


def _key(seed: str) -> Ed25519PrivateKey:
    text = seed.strip()
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except ValueError:
        raw = b""
    if len(raw) != 36 or raw[:2] != _SEED_OF_A_USER or _checksum(raw[:34]) != raw[34:]:
        raise BadSeed("This is no NKey seed of a user: one is SU and 56 more capital letters and digits.")
    return Ed25519PrivateKey.from_private_bytes(raw[2:34])


def _spelled(raw: bytes) -> str:
    return base64.b32encode(raw + _checksum(raw)).decode().rstrip("=")


def _checksum(raw: bytes) -> bytes:
    return binascii.crc_hqx(raw, 0).to_bytes(2, "little")
