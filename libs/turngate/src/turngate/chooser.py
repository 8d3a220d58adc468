"""The page of the embedded issuer on which one chooses whom of the demo to be. No passwords: it is a demo."""

from collections.abc import Mapping
from html import escape

from contracts.unreal import Notice

from turngate.people import Somebody

DOES = {
    "operator": "starts runs, watches, stops, takes over; decides nothing",
    "approver": "the same, and decides on what is held",
    "lead": "decides on any hold, raises limits, promotes policies",
    "auditor": "reads everything, changes nothing",
    "admin": "stop switch, subscribers, erasure",
}
HANDED_ON = (
    "client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
)  # fmt: skip
NOT_LET_IN = (
    "Only the account that runs this demo signs people in. Open the link that turngate up has printed there; turngate "
    "status prints it again. It opens this page for twelve hours in this browser."
)
STYLE = """
:root { color-scheme: light dark; font: 16px/1.45 system-ui, sans-serif; }
body { margin: 0; color: light-dark(#17181b, #eeeef0); background: light-dark(#f6f6f4, #101113); }
main { width: min(560px, 100%); box-sizing: border-box; margin: 8vh auto; padding: 0 24px; }
.unreal { padding: 12px 16px; border-radius: 10px; color: light-dark(#fff, #131417);
  background: light-dark(#1b1c20, #eeeef0); }
h1 { font-size: 24px; }
h2 { margin: 24px 0 8px; font-size: 14px; }
p, .does { color: light-dark(#454850, #b9bcc4); }
ul { margin: 0; padding: 0; list-style: none; border: 1px solid light-dark(#e4e4df, #2a2c32); border-radius: 10px;
  overflow: clip; background: light-dark(#fff, #17181b); }
li + li { border-top: 1px solid light-dark(#e4e4df, #2a2c32); }
form { margin: 0; }
button { width: 100%; display: grid; grid-template-columns: 120px minmax(0, 1fr); gap: 4px 12px; padding: 10px 16px;
  border: 0; font: inherit; color: inherit; background: none; text-align: left; cursor: pointer; }
button:hover { background: light-dark(#f4f4f1, #1e2024); }
button:focus-visible { outline: 2px solid light-dark(#2456e6, #86a8ff); outline-offset: -2px; }
b, .role { display: block; }
.role, .does { font-size: 13px; }
.role { color: light-dark(#646873, #9498a3); }
"""


def page(people: list[Somebody], asked: Mapping[str, str], unreal: Notice | None) -> str:
    """Everyone who has a console, by tenant; each is a form that hands on what was asked."""
    by_tenant: dict[str, list[Somebody]] = {}
    for who in people:
        if who.role in DOES:
            by_tenant.setdefault(who.tenant, []).append(who)
    handed_on = "".join(_hidden(name, asked[name]) for name in HANDED_ON if name in asked)
    lists = "".join(
        f"<h2>{escape(tenant)}</h2>\n<ul>{''.join(_person(who, handed_on) for who in members)}</ul>\n"
        for tenant, members in by_tenant.items()
    )
    return _whole(
        "Sign in",
        f"{_told(unreal)}<p>These people live in the demo. Each signs in with one click; there are no passwords "
        f"here.</p>\n{lists}",
    )


def refused(why: str, unreal: Notice | None) -> str:
    return _whole("Not signed in", f"{_told(unreal)}<p>{escape(why)}</p>")


def _told(unreal: Notice | None) -> str:
    return f'<p class="unreal"><b>{escape(unreal.title)}</b> {escape(unreal.detail)}</p>\n' if unreal else ""


def _person(who: Somebody, handed_on: str) -> str:
    return (
        f'<li><form method="post" action="/authorize">{handed_on}{_hidden("as", who.subject)}'
        f"{_hidden('tenant', who.tenant)}<button><span><b>{escape(who.name)}</b>"
        f'<span class="role">{escape(who.role)}</span></span><span class="does">{escape(DOES[who.role])}</span>'
        "</button></form></li>\n"
    )


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def _whole(title: str, content: str) -> str:
    return f"""<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Turngate demo</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"""
