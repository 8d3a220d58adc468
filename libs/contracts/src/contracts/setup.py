"""Creates the streams and each service's consumers: the only code that may, run once by set-up."""

import json
from typing import Any

from nats.aio.client import Client
from pydantic import SecretStr

from contracts.connection import connect
from contracts.settings import ACK_WAIT, BrokerSettings
from contracts.subjects import DEAD, KEYS, RUNS, TENANTS, TIMERS, token
from contracts.topology import HEARS, HEARS_DEAD, HEARS_TENANTS, HEARS_TIMERS, subscriber

_NANOSECONDS = 1_000_000_000
# What a subscriber has taken and not acknowledged for so long (seconds) it is given again.
SUBSCRIBERS_ACK_WAIT = 30.0
LONGEST_PULL = 60.0  # seconds; shorter than the broker keeps the way back
_NO_CONSUMER = 10014
DEAD_KEPT = 30 * 24 * 3600  # seconds


async def create_streams(
    url: str, user: str | None, password: str | None, replicas: int = 1, ack_wait: float = ACK_WAIT
) -> None:
    """Creates or updates every stream and consumer. Safe to run again.

    ack_wait: as in the services' settings, in seconds.
    """
    settings = BrokerSettings(
        nats_url=url, nats_user=user, nats_password=SecretStr(password) if password else None, nats_nkey=None
    )
    nc = await connect(settings, name="set-up", allow_reconnect=False, connect_timeout=30)
    try:
        for stream in _streams(replicas):
            await _ensure(nc, f"STREAM.{{}}.{stream['name']}", stream)
        for stream_name, consumer in _consumers(ack_wait):
            await _api(
                nc,
                f"CONSUMER.CREATE.{stream_name}.{consumer['durable_name']}",
                {"stream_name": stream_name, "config": consumer, "action": ""},
            )
    finally:
        await nc.close()


def _streams(replicas: int) -> list[dict[str, Any]]:
    common = {"storage": "file", "num_replicas": replicas, "discard": "new", "allow_direct": True}
    kept = {**common, "retention": "limits", "deny_delete": True, "deny_purge": True}
    return [
        {**kept, "name": RUNS, "subjects": ["run.>"], "republish": {"src": "run.>", "dest": "log.run.>"}},
        {**kept, "name": TENANTS, "subjects": ["tenant.>"],
         "republish": {"src": "tenant.>", "dest": "log.tenant.>"}},
        # A run has one key for ever, made by whoever is first. One message can be erased, the stream not emptied.
        {**kept, "name": KEYS, "subjects": ["keys.*.*"], "deny_delete": False,
         "max_msgs_per_subject": 1, "discard_new_per_subject": True},
        {**common, "name": DEAD, "subjects": ["dead.>"], "retention": "limits", "max_age": DEAD_KEPT * _NANOSECONDS},
        {**common, "name": TIMERS, "subjects": ["timer.>"], "retention": "workqueue", "allow_msg_schedules": True,
         "max_msgs_per_subject": 1, "discard": "old", "allow_rollup_hdrs": True},
    ]  # fmt: skip


def _consumers(ack_wait: float = ACK_WAIT) -> list[tuple[str, dict[str, Any]]]:
    def consumer(service: str, deliver: str, filters: list[str]) -> dict[str, Any]:
        return {
            "durable_name": service,
            "deliver_subject": deliver,
            "deliver_group": service,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(ack_wait * _NANOSECONDS),
            "max_deliver": -1,
            "max_ack_pending": 20_000,
            "filter_subjects": filters,
        }

    return [
        *(
            (RUNS, consumer(service, f"deliver.{service}", [f"run.*.*.{kind}" for kind in kinds]))
            for service, kinds in HEARS.items()
        ),
        *(
            (TENANTS, consumer(service, f"deliver.tenant.{service}", [f"tenant.*.{kind}" for kind in kinds]))
            for service, kinds in HEARS_TENANTS.items()
        ),
        *((TIMERS, consumer(s, f"deliver.timer.{s}", [f"timer.due.{s}.>"])) for s in HEARS_TIMERS),
        *((DEAD, consumer(s, f"deliver.dead.{s}", ["dead.>"])) for s in HEARS_DEAD),
    ]


async def add_subscriber(nc: Client, name: str, tenant: str, metadata: dict[str, str] | None = None) -> None:
    """Gives another system its place in the log: a consumer of its own, that only it may ask, with its tenant's facts
    from the first one on. Safe to run again. Needs the rights of set-up."""
    consumer = {
        "durable_name": subscriber(name),
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": int(SUBSCRIBERS_ACK_WAIT * _NANOSECONDS),
        "max_deliver": -1,
        "max_expires": int(LONGEST_PULL * _NANOSECONDS),
        "filter_subjects": [f"run.{token(tenant)}.>"],
        "metadata": metadata or {},
    }
    await _api(
        nc,
        f"CONSUMER.CREATE.{RUNS}.{subscriber(name)}",
        {"stream_name": RUNS, "config": consumer, "action": ""},
    )


async def remove_subscriber(nc: Client, name: str) -> None:
    """Takes its place away. Safe to run again."""
    answer = await _call(nc, f"CONSUMER.DELETE.{RUNS}.{subscriber(name)}", None)
    if answer.get("error", {}).get("err_code") != _NO_CONSUMER:
        _raise_on_error("CONSUMER.DELETE", answer)


async def _ensure(nc: Client, subject: str, config: dict[str, Any]) -> None:
    """Creates a stream, or brings a standing one to this configuration."""
    answer = await _call(nc, subject.format("CREATE"), config)
    if answer.get("error", {}).get("err_code") == 10058:  # name in use with another configuration
        answer = await _call(nc, subject.format("UPDATE"), config)
    _raise_on_error(subject, answer)


async def _api(nc: Client, subject: str, body: dict[str, Any]) -> None:
    _raise_on_error(subject, await _call(nc, subject, body))


async def _call(nc: Client, subject: str, body: dict[str, Any] | None) -> dict[str, Any]:
    reply = await nc.request(f"$JS.API.{subject}", json.dumps(body).encode() if body else b"", timeout=30)
    answer: dict[str, Any] = json.loads(reply.data)
    return answer


def _raise_on_error(subject: str, answer: dict[str, Any]) -> None:
    if "error" in answer:
        raise RuntimeError(f"{subject}: {answer['error'].get('description', answer['error'])}")
