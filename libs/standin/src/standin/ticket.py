"""The ticket as the agent finds it in the first message that it is sent: labelled lines, then the customer's words."""

import re
from dataclasses import dataclass

REFERENCE = re.compile(r"^\W*ticket\W*?:?\s+([A-Za-z0-9_-]{1,64})\s*$", re.IGNORECASE | re.MULTILINE)
SENDER = re.compile(r"^(?:from|customer)\s*:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
SUBJECT = re.compile(r"^subject\s*:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
BODY = re.compile(r"<ticket\b[^>]*>(.*)</ticket>", re.DOTALL | re.IGNORECASE)
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


@dataclass(frozen=True, slots=True)
class Ticket:
    """`name` and `email` are the sender's, as the desk knows them; subject and body are the customer's own words."""

    reference: str
    name: str
    email: str
    subject: str
    body: str

    def words(self) -> str:
        return f"{self.subject}\n{self.body}"


def reference(text: str) -> str:
    found = REFERENCE.search(text[:400])
    return found[1] if found else ""


def read(text: str) -> Ticket:
    """Reads a first message. Without the labels, all of it is the body."""
    body = BODY.search(text)
    head = text[: body.start()] if body else text.partition("\n\n")[0]
    sender, subject = SENDER.search(head), SUBJECT.search(head)
    labelled = body or sender or subject
    email = EMAIL.search(sender[1]) if sender else None
    name = sender[1][: email.start() if email else None].strip(" <,(") if sender else ""
    words = body[1] if body else text.partition("\n\n")[2] if labelled else text
    return Ticket(
        reference=reference(head),
        name=name,
        email=email[0].lower() if email else "",
        subject=subject[1].strip() if subject else "",
        body=words.strip(),
    )
