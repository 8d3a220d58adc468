"""An issuer of signed tokens, as a test needs one."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from contracts.identity import Issuer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

ISSUER = "https://id.example"


@dataclass
class Mint:
    """Signs tokens with its own key; `issuer` is how a service is told to believe it."""

    key: Ed25519PrivateKey
    issuer: Issuer

    @classmethod
    def at(cls, directory: Path, tenants: tuple[str, ...] = ("acme",)) -> "Mint":
        key = Ed25519PrivateKey.generate()
        public = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "k1", "alg": "EdDSA", "use": "sig"}
        jwks = directory / "jwks.json"
        jwks.write_text(json.dumps({"keys": [public]}))
        return cls(key, Issuer(issuer=ISSUER, jwks=str(jwks), tenants=list(tenants)))

    def token(self, subject: str, role: str, **claims: Any) -> str:
        now = datetime.now(UTC)
        body = {
            "iss": ISSUER,
            "sub": subject,
            "aud": "turngate",
            "tenant": "acme",
            "role": role,
            "iat": now,
            "exp": now + timedelta(minutes=10),
            "jti": f"token-of-{subject}",
        }
        return jwt.encode(body | claims, self.key, algorithm="EdDSA", headers={"kid": "k1"})
