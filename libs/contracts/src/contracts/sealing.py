"""A run's data key: it seals the personal part of each fact of the run, and what it sealed is lost with it."""

import base64
import secrets
from enum import Enum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from contracts.subjects import RunKey

KEY_BYTES = 32
_NONCE_BYTES = 12


class Unsealable(ValueError):
    """What was sealed was sealed with another key, for another place in the log, or was changed."""


class Gone(Enum):
    """The key has been erased: nobody will read what it sealed again."""

    ERASED = "erased"


ERASED = Gone.ERASED


class DataKey:
    """AES-256-GCM under one run's key. A sealed text is bound to its place: tenant, run, ordinal and kind."""

    __slots__ = ("_cipher", "secret")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a data key has {KEY_BYTES} bytes")
        self.secret = secret
        self._cipher = AESGCM(secret)

    @classmethod
    def new(cls) -> "DataKey":
        return cls(secrets.token_bytes(KEY_BYTES))

    def seal(self, plain: bytes, place: bytes) -> str:
        """base64 of nonce and ciphertext."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, plain, place)).decode()

    def open(self, sealed: str, place: bytes) -> bytes:
        """What `seal` was given. Raises Unsealable."""
        try:
            raw = base64.b64decode(sealed, validate=True)
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError) as error:
            raise Unsealable("what was sealed cannot be opened with the run's key") from error

    def __repr__(self) -> str:
        return "DataKey(…)"


def place(key: RunKey, ordinal: int, kind: str) -> bytes:
    """Where a sealed text belongs: it opens nowhere else."""
    return "\x1f".join((key.tenant, key.run, str(ordinal), kind)).encode()
