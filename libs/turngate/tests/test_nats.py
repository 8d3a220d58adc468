"""nats-server from the wheel, with a user a service."""

import asyncio
import json
import signal
from pathlib import Path

import nats
import nats.errors
import pytest
from contracts.connection import connect
from contracts.settings import BrokerSettings
from pydantic import SecretStr
from turngate.embedded.child import start, stop
from turngate.embedded.nats import SETUP, Nats
from turngate.embedded.passwords import Passwords
from turngate.testing import NatsAccess


async def test_a_killed_server_comes_back_on_its_port_with_what_it_had_stored(data_dir: Path) -> None:
    server = Nats(data_dir, Passwords(data_dir / "passwords.json"))
    process = start(server.child())
    url = server.url
    client = await nats.connect(url, user=SETUP, password=server.password(SETUP))
    await client.jetstream().add_stream(name="KEPT", subjects=["kept.>"])
    await client.jetstream().publish("kept.one", b"1")
    await client.close()
    process.send_signal(signal.SIGKILL)
    process.wait()

    child = server.child()
    process = start(child)
    try:
        assert server.url == url
        client = await nats.connect(url, user=SETUP, password=server.password(SETUP))
        assert (await client.jetstream().stream_info("KEPT")).state.messages == 1
        await client.close()
    finally:
        stop(child, process)


async def test_a_service_cannot_say_what_another_says(nats_server: NatsAccess) -> None:
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def error_cb(error: Exception) -> None:
        refused.put_nowait(str(error))

    user, password = nats_server.user("agent-runner")
    client = await nats.connect(nats_server.url, user=user, password=password, error_cb=error_cb)
    await client.publish("run.acme.T-1.policy.turn-forwarded", b"{}")
    assert "permissions violation" in (await asyncio.wait_for(refused.get(), 30)).lower()
    await client.close()


async def test_without_the_password_nobody_enters(nats_server: NatsAccess) -> None:
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
        await nats.connect(nats_server.url, user="policy", password="guessed", allow_reconnect=False)


async def test_a_data_directory_from_before_there_were_nkeys_gets_them_and_keeps_the_rest(data_dir: Path) -> None:
    # given the passwords of an earlier version, and a log
    file = data_dir / "passwords.json"
    file.write_text(json.dumps({"nats/setup": "of-old", "nats/policy": "of-old-too"}))
    server = Nats(data_dir, Passwords(file))
    child = server.child()
    process = start(child)
    try:
        # then set-up enters as ever, the service by its new key, and no more by its password
        client = await nats.connect(server.url, user=SETUP, password="of-old")
        await client.close()
        settings = BrokerSettings(nats_url=server.url, nats_nkey=SecretStr(server.seed("policy")))
        client = await connect(settings, allow_reconnect=False)
        await client.close()
        with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
            await nats.connect(server.url, user="policy", password="of-old-too", allow_reconnect=False)
    finally:
        stop(child, process)
    assert file.stat().st_mode & 0o777 == 0o600
    assert Passwords(file).seed("nkey/policy") == server.seed("policy")
    assert server.seed("policy") not in server.configuration.read_text()


async def test_no_secret_is_in_the_brokers_log(data_dir: Path) -> None:
    server = Nats(data_dir, Passwords(data_dir / "passwords.json"))
    child = server.child()
    process = start(child)
    stop(child, process)
    told = (data_dir / "logs" / "nats.log").read_text()
    secrets = json.loads((data_dir / "passwords.json").read_text()).values()
    assert secrets
    assert not [secret for secret in secrets if secret in told]
