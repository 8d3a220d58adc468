"""Whom a tenant wants told, and where a webhook may not go."""

from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path

import httpcore
import pytest
from approvals.notifications.addresses import Guarded, OutOfBounds, why_not
from approvals.notifications.delivery import Undelivered
from approvals.notifications.posting import posting, signed
from approvals.notifications.targets import BadTargets, Targets, identity
from hypothesis import given
from hypothesis import strategies as st

# As IANA registers them, apart from the code's own list.
IPV4_SPECIAL = [
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    )
]

GOOD = """
name: Acme
notifications:
  - {kind: webhook, name: pager, url: "https://hooks.example/turngate", secret_env: TURNGATE_NOTIFY_SECRET_PAGER}
  - {kind: slack, secret_env: TURNGATE_NOTIFY_SECRET_SLACK}
  - {kind: email, to: ops@acme.example}
"""


def told(tmp_path: Path, text: str) -> Targets:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "tenant.yaml").write_text(text)
    return Targets(tmp_path)


def test_a_tenants_file_names_its_targets(tmp_path: Path) -> None:
    targets = told(tmp_path, GOOD).of("acme")

    assert [target.kind for target in targets] == ["webhook", "slack", "email"]
    assert len({identity(target) for target in targets}) == 3


@pytest.mark.parametrize("text", ["", "name: Acme", "name: Acme\nnotifications:\n"])
def test_a_tenant_without_notifications_has_none(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text).of("acme") == []
    assert Targets(tmp_path).of("globex") == []


def test_a_changed_file_counts_from_the_next_notice_on_and_an_unchanged_one_is_read_once(tmp_path: Path) -> None:
    targets = told(tmp_path, GOOD)
    assert targets.of("acme") is targets.of("acme")

    (tmp_path / "acme" / "tenant.yaml").write_text("notifications: [{kind: email, to: lee@acme.example}]")
    assert [target.kind for target in targets.of("acme")] == ["email"]
    (tmp_path / "acme" / "tenant.yaml").write_text("notifications: [{kind: pigeon}]")
    for _ in range(2):
        with pytest.raises(BadTargets):
            targets.of("acme")
    (tmp_path / "acme" / "tenant.yaml").unlink()
    assert targets.of("acme") == []


def test_a_target_that_is_named_twice_is_told_once(tmp_path: Path) -> None:
    assert len(told(tmp_path, GOOD + "  - {kind: email, to: [ops@acme.example]}\n").of("acme")) == 3


@pytest.mark.parametrize("text", ["notifications: []\n" + GOOD, GOOD.replace("kind:", "kind: email, kind:", 1)])
def test_a_file_that_says_a_thing_twice_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadTargets, match=r"stands twice in one mapping[\s\S]*line \d"):
        told(tmp_path, text).of("acme")


@pytest.mark.parametrize(
    "target",
    [
        "{kind: pigeon, to: ops}",
        "{kind: webhook, url: 'https://a.example'}",
        "{kind: webhook, url: 'ftp://a.example', secret_env: TURNGATE_NOTIFY_SECRET_A}",
        "{kind: webhook, url: 'https://sam:pass@a.example', secret_env: TURNGATE_NOTIFY_SECRET_A}",
        "{kind: webhook, url: 'https://@a.example', secret_env: TURNGATE_NOTIFY_SECRET_A}",
        "{kind: webhook, url: 'https://a.example\\@b.example', secret_env: TURNGATE_NOTIFY_SECRET_A}",
        "{kind: webhook, url: 'https://127\u30020\u30020\u30021/', secret_env: TURNGATE_NOTIFY_SECRET_A}",
        "{kind: webhook, url: 'https://a.example/ x', secret_env: TURNGATE_NOTIFY_SECRET_A}",
        "{kind: webhook, url: 'https://a.example', secret_env: TURNGATE_NATS_PASSWORD}",
        "{kind: webhook, url: 'https://a.example', secret: whsec_c2VjcmV0}",
        "{kind: email, to: 'ops@acme.example\\r\\nBcc: all'}",
        "{kind: email, to: []}",
        "not a target",
    ],
)
def test_what_is_no_target_is_said_with_its_file(tmp_path: Path, target: str) -> None:
    with pytest.raises(BadTargets, match="notifications of acme"):
        told(tmp_path, f"notifications: [{target}]").of("acme")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.8", "172.16.3.4", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2002:7f00:1::", "2001::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1"),
        *("::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::ffff:0:7f00:1", "fec0::1", "4000::1", "3fff::1", "5f00::1"),
        *("2001:0:4136:e378:8000:63bf:80ff:fffe", "2002:808:808::", "64:ff9b:1::808:808", "100::1", "2001:20::1"),
        *("2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:10.0.0.1", "fe80::5efe:8.8.8.8", "fe80::1%eth0"),
        *("192.0.0.9", "192.0.0.170", "192.88.99.1", "198.51.100.1", "203.0.113.1", "233.252.0.1", "0.1.2.3"),
    ],
)
def test_no_address_of_a_private_place_may_be_reached(address: str) -> None:
    assert why_not(ip_address(address))


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_may_be_reached(address: str) -> None:
    assert why_not(ip_address(address)) is None


V4 = st.integers(0, 2**32 - 1).map(IPv4Address)
V6 = st.integers(0, 2**128 - 1).map(IPv6Address)
WRAPPERS = [IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")]
PREFIXES = st.sampled_from([0, 0xFFFF << 32, int(IPv6Address("64:ff9b::")), int(IPv6Address("2606:4700::5efe:0:0"))])


@given(V4 | V6)
def test_what_may_be_reached_is_global_unicast_by_pythons_account_too(address: IPv4Address | IPv6Address) -> None:
    wraps = isinstance(address, IPv6Address) and any(address in wrapper for wrapper in WRAPPERS)
    if why_not(address) is None and not wraps:
        assert address.is_global
        assert not any((address.is_multicast, address.is_reserved, address.is_unspecified, address.is_link_local))


@given(st.sampled_from(list(IPV4_SPECIAL)), st.integers(0, 2**32 - 1), PREFIXES)
def test_no_wrapper_makes_an_address_public_that_is_not(network: IPv4Network, offset: int, prefix: int) -> None:
    inner = network[offset % network.num_addresses]
    assert why_not(inner)
    assert why_not(IPv6Address(prefix | int(inner)))


@given(V4)
def test_a_mapped_address_is_judged_as_the_one_inside(address: IPv4Address) -> None:
    mapped = IPv6Address(0xFFFF << 32 | int(address))
    assert (why_not(mapped) is None) == (why_not(address) is None)
    assert (why_not(mapped, loopback=True) is None) == (why_not(address, loopback=True) is None)


@given(st.integers(0, 2**125 - 1))
def test_outside_what_was_handed_out_for_global_unicast_nothing_is_reached_but_ipv4(low: int) -> None:
    for eighth in (0, 2, 3, 4, 5, 6, 7):
        address = IPv6Address(eighth << 125 | low)
        if not any(address in wrapper for wrapper in WRAPPERS):
            assert why_not(address)


def test_loopback_is_reached_only_where_that_is_set_and_nothing_else_with_it() -> None:
    assert why_not(ip_address("127.0.0.1"), loopback=True) is None
    assert why_not(ip_address("::1"), loopback=True) is None
    assert why_not(ip_address("10.0.0.1"), loopback=True)
    assert why_not(ip_address("169.254.169.254"), loopback=True)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "0x7f000001", "2130706433", "127.1", "[::1]", "localhost.", "0177.0.0.1"]
)
async def test_a_name_is_judged_by_what_it_resolves_to_however_it_is_spelt(host: str) -> None:
    with pytest.raises((OutOfBounds, OSError)):
        await Guarded(None).connect_tcp(host.strip("[]"), 443)
    async with posting(5, loopback=False) as post:
        with pytest.raises(Undelivered, match=r"may not be told|Error|error"):
            await post.send(f"https://{host}/", b"{}", {})


async def test_plain_http_is_for_this_machine_only() -> None:
    async with posting(5, loopback=False) as post:
        with pytest.raises(Undelivered, match="https only") as no:
            await post.send("http://hooks.example/", b"{}", {})
    assert no.value.final


async def test_who_cannot_be_reached_is_said(unused_tcp_port: int) -> None:
    with pytest.raises(httpcore.ConnectError):
        await Guarded(None, loopback=True).connect_tcp("127.0.0.1", unused_tcp_port)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!", "whsec_a"])
def test_a_secret_that_is_none_is_said_without_saying_it(secret: str) -> None:
    with pytest.raises(Undelivered, match="not a Standard Webhooks secret"):
        signed(secret, "id", datetime.now(UTC), b"{}")
