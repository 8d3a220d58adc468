"""Who is let into the broker, and which broker we let have a word: NKeys and TLS, on a real server."""

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nats.errors
import pytest
from contracts import nkeys
from contracts.bus import Bus
from contracts.connection import connect
from contracts.settings import BrokerSettings, ServiceSettings
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pydantic import SecretStr
from turngate.embedded.child import start, stop
from turngate.embedded.nats import Nats
from turngate.embedded.passwords import Passwords
from turngate.testing import NatsAccess

from .servers import own_server

pytestmark = own_server


def settings(access: NatsAccess, seed: str) -> BrokerSettings:
    return BrokerSettings(nats_url=access.url, nats_nkey=SecretStr(seed))


async def test_a_service_enters_by_its_nkey(nats_server: NatsAccess) -> None:
    client = await connect(settings(nats_server, nats_server.seed("policy")), allow_reconnect=False)
    assert client.is_connected
    await client.close()


async def test_with_the_key_of_nobody_nobody_enters(nats_server: NatsAccess) -> None:
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
        await connect(settings(nats_server, nkeys.new_seed()), allow_reconnect=False)


async def test_the_seed_is_in_no_error_and_in_no_print_of_the_settings(nats_server: NatsAccess) -> None:
    seed = nats_server.seed("policy")
    assert seed not in repr(settings(nats_server, seed))
    broken = seed[:20] + ("A" if seed[20] != "A" else "B") + seed[21:]
    with pytest.raises(nkeys.BadSeed) as refused:
        await connect(settings(nats_server, broken), allow_reconnect=False)
    assert broken not in str(refused.value)


# TLS


@dataclass
class Authority:
    """One that signs certificates, made for the test."""

    directory: Path
    name: str

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        made = self._sign(self._subject, self._key, x509.BasicConstraints(ca=True, path_length=0), ())
        self.file = self.directory / f"{self.name}.pem"
        self.file.write_bytes(made.public_bytes(Encoding.PEM))

    def certificate(self, name: str, *addresses: str) -> tuple[Path, Path]:
        """The files of a certificate for these addresses, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._sign(subject, key, x509.BasicConstraints(ca=False, path_length=None), addresses)
        file, key_file = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        file.write_bytes(made.public_bytes(Encoding.PEM))
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return file, key_file

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        constraints: x509.BasicConstraints,
        addresses: tuple[str, ...],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(constraints, critical=True)
            # From Python 3.13 on, clients ask for what RFC 5280 does: whose key signed, whose key it is, and for what.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(signs=bool(constraints.ca)), critical=True)
        )
        if addresses:
            names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


@pytest.fixture
def authority(data_dir: Path) -> Authority:
    return Authority(data_dir, "ours")


@pytest.fixture
def guarded(data_dir: Path, authority: Authority) -> Iterator[Nats]:
    """A broker that speaks TLS and asks its guests for a certificate, too."""
    certificate, key = authority.certificate("broker", "127.0.0.1")
    tls = {"cert_file": str(certificate), "key_file": str(key), "ca_file": str(authority.file), "verify": True}
    tls["handshake_first"] = "auto"
    server = Nats(data_dir, Passwords(data_dir / "passwords.json"), durable=False, tls=tls)
    child = server.child()
    process = start(child)
    try:
        yield server
    finally:
        stop(child, process)


def over_tls(server: Nats, authority: Authority) -> ServiceSettings:
    certificate, key = authority.certificate("guest")
    return ServiceSettings(
        nats_url=server.url,
        nats_nkey=SecretStr(server.seed("policy")),
        nats_tls_ca=authority.file,
        nats_tls_cert=certificate,
        nats_tls_cert_key=key,
    )


async def test_a_service_speaks_tls_where_it_is_told_whom_to_trust(guarded: Nats, authority: Authority) -> None:
    bus = await Bus.connect(over_tls(guarded, authority), "policy")
    await bus.settled()
    assert bus.connected
    await bus.close(0)


async def test_nothing_is_said_to_a_broker_that_another_authority_vouches_for(
    guarded: Nats, authority: Authority, data_dir: Path
) -> None:
    another = Authority(data_dir, "another")
    told = over_tls(guarded, authority).model_copy(update={"nats_tls_ca": another.file})
    with pytest.raises((ssl.SSLError, nats.errors.Error)):
        await connect(told, allow_reconnect=False)


async def test_a_broker_without_a_certificate_for_its_name_is_not_believed(guarded: Nats, authority: Authority) -> None:
    told = over_tls(guarded, authority).model_copy(update={"nats_url": guarded.url.replace("127.0.0.1", "localhost")})
    with pytest.raises((ssl.SSLError, nats.errors.Error)):
        await connect(told, allow_reconnect=False)


async def test_a_broker_that_speaks_in_clear_is_not_spoken_to_where_tls_is_asked_for(
    nats_server: NatsAccess, authority: Authority
) -> None:
    told = settings(nats_server, nats_server.seed("policy")).model_copy(update={"nats_tls_ca": authority.file})
    with pytest.raises((ssl.SSLError, OSError, nats.errors.Error)):
        await connect(told, allow_reconnect=False)
