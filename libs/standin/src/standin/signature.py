"""The seal on a thinking block, so that a transcript with a changed one is refused as the API refuses it."""

import base64
import hashlib


def signed(thinking: str) -> str:
    return base64.b64encode(hashlib.sha256(b"standin:" + thinking.encode()).digest()).decode()
