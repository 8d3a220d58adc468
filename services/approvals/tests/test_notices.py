"""What people are told, in each medium's form, whatever somebody has written into it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from approvals.notifications import formats
from approvals.notifications.notice import Notice, notice
from contracts.events import Event
from contracts.facts import HoldEscalated, HoldExpired, ReminderSent, RunCancelled, TurnQuoted
from contracts.parts import CallQuote, Effect

from .told import ALEX, SAM, TWO, Told, hold

CONSOLE = "https://desk.example/"
HOSTILE = 'ORD-1</a> <!channel> <http://evil.example|click> *now* & "\u202egpj.exe\u0000\r\nBcc: all@example.org'


def quoted(call_id: str = "a", amount: int | None = 18000, about: str = "ORD-10042") -> CallQuote:
    effect = Effect(summary="Refund £180.00 to Tom", object=about, amount_minor=amount, currency="GBP")
    return CallQuote(
        call_id=call_id,
        tool="issue_refund",
        kind="write",
        arguments={"reason": "Tom Whitfield asked"},
        effect=effect,
        digest=hold(call_id).digest,
    )


def of(run: Told, event: Event) -> Notice:
    told = notice(run.history, event, CONSOLE)
    assert told is not None
    return told


@pytest.fixture
def held(run: Told) -> Event:
    run.say(TurnQuoted(turn=1, attempt=1, quotes=[quoted("a"), quoted("b", 4000)]))
    return run.hold(hold("a"), hold("b", TWO))


def hostile(run: Told) -> Notice:
    run.say(TurnQuoted(turn=1, attempt=1, quotes=[quoted(about=HOSTILE)]))
    return of(run, run.hold(hold()))


def test_a_held_turn_tells_what_waits_by_which_rule_for_whom_until_when_and_where_to_go(run: Told, held: Event) -> None:
    told = of(run, held)

    assert told.headline == "£180.00 and £40.00 on TCK-2004 wait for the approver and lead roles"
    assert told.expires_at == held.time + timedelta(hours=24)
    assert told.link == "https://desk.example/tickets/TCK-2004"
    assert [(c.tool, c.object, c.amount, c.rule, c.people) for c in told.calls] == [
        ("issue_refund", "ORD-10042", "£180.00", "above-automatic-limit", 1),
        ("issue_refund", "ORD-10042", "£40.00", "above-automatic-limit", 2),
    ]


@pytest.mark.parametrize(
    ("fact", "headline"),
    [
        (
            ReminderSent(turn=1, call_ids=["a"], role="approver"),
            "£180.00 on TCK-2004 still waits for the approver role",
        ),
        (HoldEscalated(turn=1, call_ids=["b"], role="lead"), "£40.00 on TCK-2004 waits for the lead role now"),
        (HoldExpired(turn=1, call_ids=["b"]), "£40.00 on TCK-2004 expired: nobody decided, nothing was done"),
    ],
)
def test_what_follows_tells_of_the_calls_that_are_still_open(run: Told, held: Event, fact: Any, headline: str) -> None:
    assert of(run, run.say(fact)).headline == headline


def test_of_two_people_one_a_lead_both_are_asked_until_one_of_them_has_approved(run: Told) -> None:
    run.say(TurnQuoted(turn=1, attempt=1, quotes=[quoted()]))
    announced = of(run, run.hold(hold(needs=TWO)))
    run.ask(SAM, hold())
    reminded = of(run, run.say(ReminderSent(turn=1, call_ids=["a"], role="lead")))

    assert announced.headline == "£180.00 on TCK-2004 waits for the approver and lead roles"
    mail = formats.email(announced, "turngate@acme.example", ["ops@acme.example"]).get_content()
    assert "needs the approver role (2 people, one of the lead role)" in mail
    assert reminded.headline == "£180.00 on TCK-2004 still waits for the lead role"


def test_a_notice_tells_what_was_known_then_however_late_it_is_told(run: Told, held: Event) -> None:
    before = of(run, held)
    run.say(TurnQuoted(turn=1, attempt=2, quotes=[quoted("a", 100)]))
    run.hold(hold("a"), attempt=2)

    assert of(run, held) == before


def test_of_a_run_that_has_ended_nobody_is_told_that_it_waits_only_that_it_expired(run: Told, held: Event) -> None:
    expired = run.say(HoldExpired(turn=1, call_ids=["a", "b"]))
    run.say(RunCancelled(by=ALEX))

    assert notice(run.history, held, CONSOLE) is None
    assert of(run, expired).headline.endswith("nobody decided, nothing was done")


def test_what_people_are_not_told_of_brings_no_notice(run: Told, held: Event) -> None:
    assert notice(run.history, run.say(RunCancelled(by=ALEX)), CONSOLE) is None


def test_no_name_address_argument_or_text_of_the_customer_is_told(run: Told, held: Event) -> None:
    told = of(run, held)
    mail = formats.email(told, "turngate@acme.example", ["ops@acme.example"])

    for said in (formats.webhook(told).decode(), formats.slack(told).decode(), mail.as_string()):
        assert not any(word in said for word in ("Tom", "tom@", "C-1004", "Whitfield", "I want to return", "Jacket"))


def test_a_webhook_says_its_type_its_time_and_the_data(run: Told, held: Event) -> None:
    said = json.loads(formats.webhook(of(run, held)))

    assert (said["type"], said["timestamp"]) == ("policy.turn-held", "2026-11-02T09:00:00.000Z")
    assert said["data"]["calls"][0] == {
        "tool": "issue_refund",
        "object": "ORD-10042",
        "amount_minor": 18000,
        "currency": "GBP",
        "amount": "£180.00",
        "rule": "above-automatic-limit",
        "needs": {"role": "approver", "people": 1, "one_of_role": None},
    }
    assert said["data"]["roles"] == ["approver", "lead"]
    assert said["data"]["id"] == held.id


def test_nothing_in_a_slack_message_is_a_mention_a_link_or_bold(run: Told) -> None:
    said = json.loads(formats.slack(hostile(run)))

    texts = [said["text"], *(block["text"]["text"] for block in said["blocks"][:2])]
    assert said["mrkdwn"] is False
    assert {block["text"]["type"] for block in said["blocks"][:2]} == {"plain_text"}
    assert not any(mark in text for text in texts for mark in ("<", ">", "\u202e", "\x00"))
    assert "&lt;!channel&gt;" in texts[2]
    assert said["blocks"][2]["elements"][0]["url"] == "https://desk.example/tickets/TCK-2004"


def test_an_email_is_text_and_nobody_writes_a_header_of_it(run: Told) -> None:
    message = formats.email(hostile(run), "turngate@acme.example", ["ops@acme.example"])

    assert message.get_content_type() == "text/plain"
    assert message["Bcc"] is None
    ours = {"Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted"}
    assert set(message.keys()) == ours | {"Content-Type", "Content-Transfer-Encoding", "MIME-Version"}
    assert "\u202e" not in message.get_content()


def test_the_same_notice_bears_the_same_id_in_every_medium_each_time(run: Told, held: Event) -> None:
    once, again = of(run, held), of(run, held)

    assert once.id == again.id == held.id
    assert formats.webhook(once) == formats.webhook(again)
    mail = [formats.email(told, "a@acme.example", ["b@acme.example"])["Message-ID"] for told in (once, again)]
    assert mail == [f"<{held.id}@acme.turngate>"] * 2


def test_a_turn_of_many_long_calls_still_fits_a_slack_message(run: Told) -> None:
    names = [f"c{number}" for number in range(64)]
    run.say(TurnQuoted(turn=1, attempt=1, quotes=[quoted(name, about="&<" * 200) for name in names]))
    said = json.loads(formats.slack(of(run, run.hold(*(hold(name) for name in names)))))

    header, section = (block["text"]["text"] for block in said["blocks"][:2])
    assert len(header) <= 150
    assert len(section) <= 3000
    assert section.count("&") == section.count(";"), "no entity is cut in two"


@pytest.mark.parametrize(
    ("currency", "locale", "shown", "plain"),
    [
        ("XOF", "fr_SN", "18\u202f000\u00a0XOF", "18 000 XOF"),
        ("XOF", None, "XOF 18,000", "XOF 18,000"),
        ("JPY", "en_US", "¥18,000", "¥18,000"),
        ("KWD", "en_GB", "KWD\u00a018.000", "KWD 18.000"),
        ("XXX", "en_GB", "18000 minor units of XXX", "18000 minor units of XXX"),
    ],
)
def test_every_medium_tells_an_amount_in_the_tenants_currency(
    currency: str, locale: str | None, shown: str, plain: str
) -> None:
    run = Told(locale=locale)
    effect = Effect(summary="Refund", object="ORD-10042", amount_minor=18000, currency=currency)
    run.say(TurnQuoted(turn=1, attempt=1, quotes=[quoted().model_copy(update={"effect": effect})]))
    told = of(run, run.hold(hold()))

    [call] = json.loads(formats.webhook(told))["data"]["calls"]
    slack = json.loads(formats.slack(told))
    mail = formats.email(told, "desk@example.org", ["sam@example.org"])

    assert (call["amount"], call["amount_minor"]) == (shown, 18000)
    assert slack["text"].startswith(f"{plain} on TCK-2004 waits")
    assert f"{plain} on TCK-2004" in str(mail["Subject"])
    assert f", {plain}: held by" in mail.get_content()
