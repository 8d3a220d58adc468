"""Held turns tell people: over real HTTP and SMTP, at least once, in nobody's way, and visibly where it fails."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
from approvals.notifications.notice import TELLS
from contracts.facts import RunCancelled, TurnQuoted
from contracts.parts import Hold, Json
from contracts.subjects import RunKey
from contracts.testing import World, started, world
from prometheus_client import REGISTRY
from pydantic import SecretStr
from structlog.testing import capture_logs
from turngate.testing import NatsAccess, Server

from .house import Gateway, approvals, held, own_server, stored
from .receivers import Mailbox, Receiver, mail_server, receiver
from .tokens import Mint
from .told import ALEX, KEY, hold, quote

SECRET = "whsec_" + base64.b64encode(b"a signing secret of 32 bytes....").decode()
HOOK, SLACK = "TURNGATE_NOTIFY_SECRET_HOOK", "TURNGATE_NOTIFY_SECRET_SLACK"


def webhook(url: str, name: str = "pager") -> Json:
    return {"kind": "webhook", "name": name, "url": url, "secret_env": HOOK}


class Tenants:
    """Folders of tenants, and the settings of an approvals that tells them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def tell(self, *targets: Json, tenant: str = "acme") -> None:
        (self.folder / tenant).mkdir(exist_ok=True)
        (self.folder / tenant / "tenant.yaml").write_text(json.dumps({"name": tenant, "notifications": targets}))

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            "tenants_dir": self.folder,
            "console_url": "https://desk.example",
            "notify_loopback": True,
            "notify_timeout": 2.0,
            "notify_backoff": (0.05, 0.05, 0.05),
            "notify_secrets": {HOOK: SecretStr(SECRET), SLACK: SecretStr("http://127.0.0.1:1/")},
        } | more


@pytest.fixture
def tenants(tmp_path: Path) -> Tenants:
    (tmp_path / "tenants").mkdir()
    return Tenants(tmp_path / "tenants")


async def held_run(others: World, *holds: Hold, key: RunKey = KEY, **times: Any) -> None:
    """A run whose turn is quoted and held."""
    if key != KEY:
        await others.say(key, started(ALEX))
    await others.say(key, TurnQuoted(turn=1, attempt=1, quotes=[quote(one.call_id) for one in holds]))
    await held(others, *holds, key=key, **times)


async def dead_letter(server: NatsAccess) -> Json:
    """The dead letter, once there is one."""
    message = await stored(server, "DEAD", "dead.notifications")
    return {"at": message.subject, **json.loads(message.data or b"")}


async def one_more(kind: str, outcome: str) -> None:
    """Once there is one more try that ended so than there was."""

    def tries() -> float:
        return REGISTRY.get_sample_value("turngate_notifications_total", {"kind": kind, "outcome": outcome}) or 0

    before = tries()
    async with asyncio.timeout(20):
        while tries() == before:
            await asyncio.sleep(0.01)


# Webhooks


async def test_each_step_of_a_hold_is_told_signed_by_the_standard_under_the_id_of_its_fact(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    far = {"remind": 3600.0, "escalate": 3600.0, "expire": 7200.0}
    runs = [RunKey("acme", f"TCK-210{number}-1") for number in range(3)]
    async with receiver() as hook, approvals(fresh_nats, mint, **tenants.settings()):
        tenants.tell(webhook(hook.url))
        for key, owed in zip(runs, far, strict=True):
            await held_run(others, hold(), key=key, **far | {owed: 0.0})
        got = await hook.until(6)

    said = [event for key in runs for event in (await others.history(key)).events]
    told = {request.headers["webhook-id"]: request for request in got}
    assert {event.kind for event in said if event.id in told} == set(TELLS)
    assert {event.id for event in said if event.kind in TELLS} == set(told)
    for request in got:
        assert standardwebhooks.Webhook(SECRET).verify(request.body, request.headers) == request.json
        assert request.headers["content-type"] == "application/json"
    data = next(request.json["data"] for request in got if request.json["type"] == "policy.turn-held")
    assert (data["reference"], data["calls"][0]["amount"]) == ("TCK-2004", "£180.00")
    assert data["link"] == "https://desk.example/tickets/TCK-2004"


async def test_a_receiver_that_fails_is_told_again_under_the_same_id_until_it_takes_it(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with (
        receiver(reply=lambda number: (500, {}) if number < 2 else (204, {})) as hook,
        approvals(fresh_nats, mint, **tenants.settings()),
    ):
        tenants.tell(webhook(hook.url))
        await held_run(others, hold())
        got = await hook.until(3)

    assert len({request.headers["webhook-id"] for request in got}) == 1
    assert len({request.body for request in got}) == 1
    for request in got:
        standardwebhooks.Webhook(SECRET).verify(request.body, request.headers)


async def test_what_could_not_be_told_before_its_run_ended_is_not_told_behind_it(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with (
        receiver(reply=lambda _: (500, {})) as hook,
        approvals(fresh_nats, mint, **tenants.settings(notify_backoff=(1.0, 1.0))),
    ):
        tenants.tell(webhook(hook.url))
        with capture_logs() as logs:
            await held_run(others, hold())
            await hook.until(1)
            await others.say(KEY, RunCancelled(by=ALEX))
            async with asyncio.timeout(20):
                while not any(line["event"] == "nothing to tell" for line in logs):
                    await asyncio.sleep(0.01)
    assert len(hook.got) == 1


async def test_what_no_try_could_deliver_is_a_dead_letter_that_ends_no_run(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with (
        receiver(reply=lambda _: (500, {})) as hook,
        approvals(fresh_nats, mint, **tenants.settings()),
    ):
        tenants.tell(webhook(hook.url))
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    [event] = [event for event in (await others.history(KEY)).events if event.kind == "policy.turn-held"]
    assert len(hook.got) == 4, "once, and again after each pause"
    assert letter["at"] == "dead.notifications"
    assert letter["subject"] == f"notification.acme.{KEY.run}.policy.turn-held"
    assert letter["error"] == "it answered 500"
    assert json.loads(letter["event"]) == {"id": event.id, "target": "pager", "tries": 4}
    assert SECRET not in json.dumps(letter)


async def test_a_receiver_that_was_away_is_told_when_it_is_back(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    hook = Receiver()
    await hook.start()
    tenants.tell(webhook(hook.url))
    await hook.stop()
    async with approvals(fresh_nats, mint, **tenants.settings(notify_backoff=(0.2,) * 50)):
        await held_run(others, hold())
        await one_more("webhook", "failed")
        await hook.start()
        await hook.until(1)
    await hook.stop()


async def test_a_receiver_that_is_gone_for_good_is_not_asked_again(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with receiver(reply=lambda _: (410, {})) as hook, approvals(fresh_nats, mint, **tenants.settings()):
        tenants.tell(webhook(hook.url))
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert len(hook.got) == 1
    assert letter["error"] == "it answered 410"


async def test_slow_receivers_delay_no_decision_no_timer_and_no_other_receiver(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint, tenants: Tenants
) -> None:
    runs = [RunKey("acme", f"TCK-21{number:02}-1") for number in range(12)]
    async with (
        receiver(silent=True) as slow,
        receiver() as quick,
        approvals(fresh_nats, mint, **tenants.settings(notify_timeout=30)),
    ):
        tenants.tell(webhook(slow.url, "slow"), webhook(quick.url, "quick"))
        await asyncio.gather(*(held_run(others, hold(), key=run) for run in runs))
        await slow.until(8)
        await quick.until(len(runs))
        decided = await asyncio.gather(*(gateway.ask("sam", hold(), run=run.run) for run in runs))
        await held_run(others, hold(), expire=0)
        await others.hear(KEY, "approvals.hold-expired")
        at_once = len(slow.got)
        slow.speak()

    assert {answer["status"] for answer in decided} == {200}
    assert at_once == 8, "the others stand back"


async def test_one_target_that_fails_repeats_nothing_to_the_others(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with (
        receiver(reply=lambda _: (503, {})) as bad,
        receiver() as good,
        approvals(fresh_nats, mint, **tenants.settings()),
    ):
        tenants.tell(webhook(bad.url, "bad"), webhook(good.url, "good"))
        await held_run(others, hold())
        await dead_letter(fresh_nats)

    assert (len(bad.got), len(good.got)) == (4, 1)


async def test_what_was_under_way_when_approvals_ended_is_told_by_the_next_one(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with receiver(reply=lambda number: (500, {}) if number < 1 else (200, {})) as hook:
        tenants.tell(webhook(hook.url))
        async with approvals(fresh_nats, mint, **tenants.settings(notify_backoff=(1.0,))):
            await held_run(others, hold())
            await hook.until(1)
        async with approvals(fresh_nats, mint, **tenants.settings()):
            got = await hook.until(2)

    assert got[0].headers["webhook-id"] == got[1].headers["webhook-id"]


@own_server
async def test_a_notification_outlives_the_broker(data_dir: Path, mint: Mint, tenants: Tenants) -> None:
    server = Server(data_dir)
    try:
        server.start()
        await asyncio.to_thread(server.create_streams)
        async with receiver(reply=lambda number: (500, {}) if number < 1 else (200, {})) as hook:
            tenants.tell(webhook(hook.url))
            async with (
                world(server.access.url, *server.access.user("setup"), sealed=True) as others,
                approvals(server.access, mint, **tenants.settings(notify_backoff=(1.0, 1.0))),
            ):
                await others.say(KEY, started(ALEX))
                await held_run(others, hold())
                await hook.until(1)
                server.kill()
                server.start()
                await hook.until(2)
    finally:
        server.kill()


# Where no webhook goes


async def test_a_redirect_is_not_followed_wherever_it_leads(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with receiver() as inside:
        to = {"location": inside.url}
        async with (
            receiver(reply=lambda _: (307, to)) as hook,
            approvals(fresh_nats, mint, **tenants.settings(notify_backoff=(0.1,))),
        ):
            tenants.tell(webhook(hook.url))
            await held_run(others, hold())
            letter = await dead_letter(fresh_nats)

    assert inside.got == []
    assert letter["error"] == "it answered 307: redirects are not followed"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]", "[fd00::1]"])
async def test_without_the_setting_nothing_on_this_machine_or_inside_is_reached(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, host: str
) -> None:
    settings = tenants.settings(notify_loopback=False, notify_backoff=(0.1,))
    async with receiver() as hook, approvals(fresh_nats, mint, **settings):
        tenants.tell(webhook(f"https://{host}:{hook.port}/hook"))
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert hook.got == []
    assert "may not be told" in letter["error"]


# What is wrong with the settings is visible


@pytest.mark.parametrize(
    ("targets", "secrets", "says"),
    [
        ([webhook("https://hooks.example/")], {}, f"the variable {HOOK} is not set"),
        ([webhook("https://hooks.example/")], {HOOK: SecretStr("?")}, "is not a Standard Webhooks secret"),
        ([{"kind": "slack", "secret_env": SLACK}], {SLACK: SecretStr("no url")}, "does not hold a URL"),
        ([{"kind": "email", "to": "ops@acme.example"}], {}, "no SMTP server is set"),
        ([{"kind": "pigeon"}], {}, "notifications of acme in tenant.yaml cannot be read"),
    ],
)
async def test_settings_that_tell_nobody_are_dead_letters_that_say_so(
    fresh_nats: NatsAccess,
    others: World,
    mint: Mint,
    tenants: Tenants,
    targets: list[Json],
    secrets: dict[str, SecretStr],
    says: str,
) -> None:
    tenants.tell(*targets)
    async with approvals(fresh_nats, mint, **tenants.settings(notify_secrets=secrets, notify_backoff=())):
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert says in letter["error"]
    assert not letter["subject"].startswith("run.")


async def test_a_hold_that_nobody_is_told_of_is_counted_and_in_the_log(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    with capture_logs() as logs:
        async with approvals(fresh_nats, mint, **tenants.settings()):
            nobody = asyncio.create_task(one_more("none", "nobody"))
            await held_run(others, hold())
            await nobody

    [line] = [line for line in logs if line["event"] == "its tenant names nobody to tell"]
    assert (line["log_level"], line["tenant"], line["fact"]) == ("warning", "acme", "policy.turn-held")


async def test_each_tenant_is_told_of_its_own_holds_only(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    async with (
        receiver() as acme,
        receiver() as globex,
        approvals(fresh_nats, mint, **tenants.settings()),
    ):
        tenants.tell(webhook(acme.url))
        tenants.tell(webhook(globex.url), tenant="globex")
        await held_run(others, hold())
        await held_run(others, hold(), key=RunKey("globex", "TCK-2004-1"))
        [one], [other] = await acme.until(1), await globex.until(1)

    assert (one.json["data"]["tenant"], other.json["data"]["tenant"]) == ("acme", "globex")


# Slack, and mail


async def test_slack_is_told_at_the_address_that_its_secret_is(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    tenants.tell({"kind": "slack", "secret_env": SLACK})
    async with receiver() as slack:
        settings = tenants.settings(notify_secrets={SLACK: SecretStr(slack.url)})
        async with approvals(fresh_nats, mint, **settings):
            await held_run(others, hold())
            [request] = await slack.until(1)

    assert request.json["text"] == "£180.00 on TCK-2004 waits for the approver role"
    assert "webhook-signature" not in request.headers


async def test_people_get_an_email_by_smtp_and_once_more_where_the_server_was_busy(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, unused_tcp_port: int
) -> None:
    tenants.tell({"kind": "email", "to": ["ops@acme.example", "lee@acme.example"]})
    mailbox = Mailbox(refusals=1)
    async with mail_server(mailbox, unused_tcp_port) as port:
        smtp = {"smtp_host": "127.0.0.1", "smtp_port": port, "smtp_sender": "turngate@acme.example"}
        async with approvals(fresh_nats, mint, **tenants.settings(**smtp, smtp_security="none")):
            await held_run(others, hold())
            to, message = await mailbox.next()

    [event] = [event for event in (await others.history(KEY)).events if event.kind == "policy.turn-held"]
    assert to == ["ops@acme.example", "lee@acme.example"]
    assert message["Message-ID"] == f"<{event.id}@acme.turngate>"
    assert "https://desk.example/tickets/TCK-2004" in str(message.get_payload())


OPS, LEE, SUE = "ops@acme.example", "lee@acme.example", "sue@acme.example"
NO_SUCH = "550 5.1.1 No such mailbox"
BUSY = "450 4.2.1 Mailbox busy"


def mailing(tenants: Tenants, port: int, **more: Any) -> dict[str, Any]:
    smtp = {"smtp_host": "127.0.0.1", "smtp_port": port, "smtp_sender": "turngate@acme.example"}
    return tenants.settings(**smtp, smtp_security="none", **more)


async def test_a_recipient_who_is_refused_for_good_is_recorded_and_costs_the_others_nothing(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, unused_tcp_port: int
) -> None:
    tenants.tell({"kind": "email", "name": "staff", "to": [OPS, LEE, SUE]})
    mailbox = Mailbox(recipients={LEE: [NO_SUCH]})
    async with (
        mail_server(mailbox, unused_tcp_port) as port,
        approvals(fresh_nats, mint, **mailing(tenants, port)),
    ):
        await held_run(others, hold())
        to, _ = await mailbox.next()
        letter = await dead_letter(fresh_nats)

    assert to == [OPS, SUE]
    assert mailbox.rest() == []
    assert mailbox.asked[LEE] == 1, "what is refused for good is not tried again"
    assert letter["error"] == f"the mail server refused for good: {LEE} ({NO_SUCH})"
    assert json.loads(letter["event"])["target"] == "staff"


async def test_a_recipient_who_is_busy_is_tried_again_and_those_who_have_it_get_no_second_one(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, unused_tcp_port: int
) -> None:
    tenants.tell({"kind": "email", "to": [OPS, LEE, SUE]})
    mailbox = Mailbox(recipients={OPS: [NO_SUCH], LEE: [BUSY, BUSY, "250 OK"]})
    async with (
        mail_server(mailbox, unused_tcp_port) as port,
        approvals(fresh_nats, mint, **mailing(tenants, port)),
    ):
        await held_run(others, hold())
        (first, one), (second, other) = await mailbox.next(), await mailbox.next()
        letter = await dead_letter(fresh_nats)

    assert (first, second) == ([SUE], [LEE])
    assert mailbox.rest() == []
    assert mailbox.asked == {OPS: 1, LEE: 3, SUE: 1}
    assert one["Message-ID"] == other["Message-ID"]
    assert letter["error"] == f"the mail server refused for good: {OPS} ({NO_SUCH})"


async def test_a_recipient_who_stays_busy_is_recorded_after_the_last_try(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, unused_tcp_port: int
) -> None:
    tenants.tell({"kind": "email", "to": [OPS, LEE]})
    mailbox = Mailbox(recipients={LEE: [BUSY]})
    async with (
        mail_server(mailbox, unused_tcp_port) as port,
        approvals(fresh_nats, mint, **mailing(tenants, port)),
    ):
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert mailbox.rest() == [[OPS]]
    assert mailbox.asked[LEE] == 4
    assert letter["error"] == f"the mail server did not take it now: {LEE} ({BUSY})"
    assert json.loads(letter["event"])["tries"] == 4


@pytest.mark.parametrize(
    ("mailbox", "says"),
    [
        ({"as_a_whole": {LEE: "554 5.7.1 Not for this one"}}, f"refused for good: {LEE} (554 5.7.1 Not for this one)"),
        ({"recipients": {LEE: [""]}}, f"did not take it now: {LEE} (421"),
    ],
    ids=["refuses the whole message", "hangs up"],
)
async def test_a_server_that_turns_all_away_because_of_one_recipient_is_given_the_others_one_by_one(
    fresh_nats: NatsAccess,
    others: World,
    mint: Mint,
    tenants: Tenants,
    unused_tcp_port: int,
    mailbox: dict[str, Any],
    says: str,
) -> None:
    tenants.tell({"kind": "email", "to": [OPS, LEE, SUE]})
    box = Mailbox(**mailbox)
    async with mail_server(box, unused_tcp_port) as port, approvals(fresh_nats, mint, **mailing(tenants, port)):
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert box.rest() == [[OPS], [SUE]]
    assert says in letter["error"]


async def test_a_sender_whom_the_server_refuses_for_good_is_not_tried_again(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, unused_tcp_port: int
) -> None:
    tenants.tell({"kind": "email", "to": OPS})
    async with (
        mail_server(Mailbox(sender="550 5.7.1 Not from you"), unused_tcp_port) as port,
        approvals(fresh_nats, mint, **mailing(tenants, port)),
    ):
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert letter["error"] == f"the mail server refused for good: {OPS} (550 5.7.1 Not from you)"
    assert json.loads(letter["event"])["tries"] == 1


async def test_a_mail_server_that_says_nothing_is_not_waited_for(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants
) -> None:
    tenants.tell({"kind": "email", "to": "ops@acme.example"})
    async with receiver(silent=True) as silent:
        smtp = {"smtp_host": "127.0.0.1", "smtp_port": silent.port, "smtp_sender": "turngate@acme.example"}
        settings = tenants.settings(**smtp, notify_timeout=0.3, notify_backoff=())
        async with approvals(fresh_nats, mint, **settings):
            await held_run(others, hold())
            letter = await dead_letter(fresh_nats)

    assert letter["error"] == "the mail server did not take it within 0.3 s"


async def test_a_mail_server_that_is_away_is_a_dead_letter_in_the_end(
    fresh_nats: NatsAccess, others: World, mint: Mint, tenants: Tenants, unused_tcp_port: int
) -> None:
    tenants.tell({"kind": "email", "to": "ops@acme.example"})
    smtp = {"smtp_host": "127.0.0.1", "smtp_port": unused_tcp_port, "smtp_sender": "turngate@acme.example"}
    async with approvals(fresh_nats, mint, **tenants.settings(**smtp)):
        await held_run(others, hold())
        letter = await dead_letter(fresh_nats)

    assert letter["error"].startswith("the mail server did not take it")
