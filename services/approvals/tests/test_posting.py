"""A webhook on its way: resolved once, connected to what was looked at, and the other end is who its name says."""

import ipaddress
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest
from approvals.notifications.delivery import Undelivered
from approvals.notifications.posting import posting
from approvals.settings import Settings
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .receivers import receiver


class Names:
    """A name server of the test's own: what each name resolves to, and how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **known: list[str]) -> None:
        self.asked: list[str] = []
        ours = {name.replace("_", "."): addresses for name, addresses in known.items()}
        real = socket.getaddrinfo

        def resolve(host: Any, port: Any, *args: Any, **more: Any) -> Any:
            if host not in ours:
                return real(host, port, *args, **more)
            self.asked.append(host)
            families = {4: socket.AF_INET, 6: socket.AF_INET6}
            return [
                (families[ipaddress.ip_address(address).version], socket.SOCK_STREAM, 6, "", (address, port))
                for address in ours[host]
            ]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)


def authority(folder: Path, name: str) -> SSLContext:
    """A server's side of TLS for this name, by an authority whose certificate is `folder`/ca.pem."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


async def test_a_name_is_resolved_once_so_no_second_answer_leads_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch, hooks_example=["127.0.0.1"])
    async with receiver() as hook, posting(5, loopback=True) as post:
        await post.send(f"http://hooks.example:{hook.port}/hook", b"{}", {})

    assert names.asked == ["hooks.example"]
    assert hook.got[0].headers["host"] == f"hooks.example:{hook.port}"


@pytest.mark.parametrize(
    "inside", ["10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::127.0.0.1", "fd00::1", "fe80::1%2"]
)
async def test_one_address_inside_among_those_of_a_name_is_one_too_many(
    monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    Names(monkeypatch, hooks_example=["93.184.215.14", inside])
    async with posting(5, loopback=False) as post:
        with pytest.raises(Undelivered, match=r"hooks.example may not be told"):
            await post.send("https://hooks.example/hook", b"{}", {})


async def test_over_tls_the_receiver_has_to_be_who_its_name_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Names(monkeypatch, hooks_example=["127.0.0.1"], other_example=["127.0.0.1"])
    context = authority(tmp_path, "hooks.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    async with receiver(tls=context) as hook:
        async with posting(5, loopback=True) as post:
            await post.send(f"https://hooks.example:{hook.port}/", b"{}", {})
            with pytest.raises(Undelivered, match="certificate"):
                await post.send(f"https://other.example:{hook.port}/", b"{}", {})
        monkeypatch.delenv("SSL_CERT_FILE")
        async with posting(5, loopback=True) as post:
            with pytest.raises(Undelivered, match="certificate"):
                await post.send(f"https://hooks.example:{hook.port}/", b"{}", {})

    assert len(hook.got) == 1


async def test_a_receiver_that_never_answers_is_left_after_its_time() -> None:
    async with receiver(silent=True) as hook, posting(0.2, loopback=True) as post:
        with pytest.raises(Undelivered, match=r"no answer within 0\.2 s"):
            await post.send(hook.url, b"{}", {})


def test_the_environment_says_how_people_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "ISSUERS": "[]",
        "NOTIFY_BACKOFF": "[1, 2.5]",
        "NOTIFY_SECRET_PAGER": "whsec_x",
        "NOTIFY_LOOPBACK": "true",
        "SMTP_HOST": "mail.example",
        "SMTP_SENDER": "turngate@acme.example",
        "SMTP_PASSWORD": "secret",
        "CONSOLE_URL": "https://desk.example",
    }
    for name, value in told.items():
        monkeypatch.setenv(f"TURNGATE_{name}", value)
    settings = Settings()

    assert settings.notify_backoff == (1, 2.5)
    assert settings.notify_loopback
    assert set(settings.notify_secrets) == {"TURNGATE_NOTIFY_SECRET_PAGER"}
    assert settings.smtp is not None
    assert (settings.smtp.host, settings.smtp.port, settings.smtp.security) == ("mail.example", 587, "starttls")
    assert "whsec_x" not in repr(settings)
    assert "secret'" not in repr(settings.smtp)
