"""A notice as each medium takes it; what others have written in it is made harmless for that medium."""

import json
import unicodedata
from email.message import EmailMessage
from email.utils import format_datetime

from contracts.parts import Json

from approvals.notifications.notice import LONGEST, Notice, Waiting


def webhook(notice: Notice) -> bytes:
    """The payload of a Standard Webhook: its type, when it happened, and the data."""
    return _json(
        {
            "type": notice.kind,
            "timestamp": _iso(notice),
            "data": {
                "id": notice.id,
                "tenant": notice.tenant,
                "run": notice.run,
                "reference": notice.reference,
                "turn": notice.turn,
                "roles": list(notice.roles),
                "calls": [
                    {
                        "tool": call.tool,
                        "object": call.object,
                        "amount_minor": call.amount_minor,
                        "currency": call.currency,
                        "amount": call.amount,
                        "rule": call.rule,
                        "needs": {"role": call.role, "people": call.people, "one_of_role": call.one_of_role}
                        | ({} if call.count_of_role is None else {"count_of_role": call.count_of_role}),
                    }
                    for call in notice.calls
                ],
                "total": notice.total,
                "beside": [
                    {
                        "tool": part.quote.tool[:LONGEST],
                        "object": part.quote.effect.object[:LONGEST] if part.quote.effect else None,
                        "amount_minor": part.money.amount_minor,
                        "currency": part.money.currency,
                        "amount": part.money.text(notice.locale),
                    }
                    for part in notice.beside
                    if part.money is not None
                ],
                "expires_at": notice.expires_at.isoformat(),
                "link": notice.link,
                "text": plain(notice.headline),
            },
        }
    )


def slack(notice: Notice) -> bytes:
    """A message for an incoming webhook: plain text only, so that nothing in it is a mention, a link or bold."""
    lines = _lines(notice)
    return _json(
        {
            "text": _entities(plain(notice.headline)),
            "mrkdwn": False,
            "unfurl_links": False,
            "unfurl_media": False,
            "blocks": [
                {"type": "header", "text": _plain_text(notice.headline, 150)},
                {"type": "section", "text": _plain_text("\n".join([*lines, _until(notice)]), 3000)},
                {
                    "type": "actions",
                    "elements": [
                        {"type": "button", "text": _plain_text("Open in the console", 75), "url": notice.link}
                    ],
                },
            ],
        }
    )


def email(notice: Notice, sender: str, to: list[str]) -> EmailMessage:
    """A text-only message whose Message-ID is the notice's, so that a repeated one is known as such."""
    message = EmailMessage()
    message["Subject"] = f"[Turngate] {plain(notice.headline, 200)}"
    message["From"] = sender
    message["To"] = ", ".join(to)
    message["Date"] = format_datetime(notice.time)
    message["Message-ID"] = f"<{notice.id}@{notice.tenant}.turngate>"
    message["Auto-Submitted"] = "auto-generated"
    lines = [plain(notice.headline, 200) + ".", "", *_lines(notice), _until(notice)]
    message.set_content("\n".join([*lines, "", notice.link, ""]))
    return message


def plain(text: str, at_most: int = 500) -> str:
    """One line of text in which nothing is invisible or turns the reading order: control and format characters show."""
    shown = "".join("\ufffd" if unicodedata.category(letter)[0] == "C" else letter for letter in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= at_most else shown[: at_most - 1] + "…"


def _lines(notice: Notice) -> list[str]:
    """The calls that are held, what runs with them, and what the turn moves all together."""
    lines = [_line(call) for call in notice.calls]
    for part in notice.beside:
        about = f"{part.quote.tool} on {part.quote.effect.object}" if part.quote.effect else part.quote.tool
        amount = f", {part.money.text(notice.locale)}" if part.money else ""
        lines.append(plain(f"{about}{amount}: runs with it, in the same turn"))
    several = len(notice.beside) + sum(call.amount is not None for call in notice.calls) > 1
    return [*lines, f"All together: {notice.total}."] if several and notice.total else lines


def _line(call: Waiting) -> str:
    about = f"{call.tool} on {call.object}" if call.object else call.tool
    money = f", {call.amount}" if call.amount else ""
    count = "one" if call.count_of_role is None else call.count_of_role
    one = f", {count} of the {call.one_of_role} role" if call.one_of_role else ""
    people = f" ({call.people} people{one})" if call.people > 1 else ""
    return plain(f"{about}{money}: held by {call.rule}, needs the {call.role} role{people}")


def _until(notice: Notice) -> str:
    verb = "Expired" if notice.kind == "approvals.hold-expired" else "Expires"
    return f"{verb} at {notice.expires_at:%Y-%m-%d %H:%M} UTC; then it counts as declined."


def _plain_text(text: str, at_most: int) -> Json:
    kept = _entities("\n".join(plain(line) for line in text.splitlines()))
    if len(kept) > at_most:
        kept = kept[: at_most - 1].rsplit("&", 1)[0] if "&" in kept[at_most - 6 : at_most] else kept[: at_most - 1]
        kept += "…"
    return {"type": "plain_text", "text": kept, "emoji": False}


def _entities(text: str) -> str:
    """What Slack reads as markup in every kind of text: mentions, links and its own entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _iso(notice: Notice) -> str:
    return notice.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()
