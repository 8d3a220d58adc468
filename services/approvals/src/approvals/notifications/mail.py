"""Sends e-mail by the SMTP server of the settings, and says of each recipient what came of it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage

import aiosmtplib

from approvals.notifications.delivery import Undelivered
from approvals.settings import Smtp

FOR_GOOD = 500  # reply codes from here on (RFC 5321, section 4.2.1); those below may be another another time

SERVICE_CLOSED, NO_SUCH_ADDRESS = 421, 553  # what a server would say that hangs up, or is not given an address


@dataclass
class Outcome:
    """`pending` may take it another time, `refused` never will; both with what the server said. All others have it."""

    pending: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def add(self, recipient: str, code: int, said: str) -> None:
        (self.refused if code >= FOR_GOOD else self.pending)[recipient] = f"{code} {said}"


class Mail:
    def __init__(self, smtp: Smtp | None, timeout: float) -> None:
        self._smtp, self._timeout = smtp, timeout

    @property
    def sender(self) -> str:
        return self._smtp.sender if self._smtp else ""

    async def send(self, message: EmailMessage, recipients: Sequence[str]) -> Outcome:
        """One message to all; where the server has something against it as a whole, one to each, so that nobody goes
        without because of another. Raises Undelivered where the server cannot be spoken to: then nobody has it."""
        if self._smtp is None:
            raise Undelivered("no SMTP server is set (TURNGATE_SMTP_HOST, TURNGATE_SMTP_SENDER)")
        outcome = Outcome()
        if not await self._sent(self._smtp, message, recipients, outcome):
            for at, recipient in enumerate(recipients):
                try:
                    await self._sent(self._smtp, message, [recipient], outcome)
                except Undelivered as error:
                    outcome.pending |= dict.fromkeys(recipients[at:], str(error))
                    break
        return outcome

    async def _sent(self, smtp: Smtp, message: EmailMessage, recipients: Sequence[str], outcome: Outcome) -> bool:
        """Whether it is known of each recipient what came of it; never False for a single one."""
        alone = len(recipients) == 1
        refused: Mapping[str, tuple[int, str]]
        try:
            async with asyncio.timeout(self._timeout):
                refused, _ = await aiosmtplib.send(
                    message,
                    recipients=recipients,
                    hostname=smtp.host,
                    port=smtp.port,
                    username=smtp.user,
                    password=smtp.password.get_secret_value() if smtp.password else None,
                    use_tls=smtp.security == "tls",
                    start_tls=smtp.security == "starttls",
                    timeout=self._timeout,
                )
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = {one.recipient: (one.code, one.message) for one in error.recipients}
        except (aiosmtplib.SMTPSenderRefused, aiosmtplib.SMTPDataError) as error:
            if error.code >= FOR_GOOD and not alone:
                return False
            refused = dict.fromkeys(recipients, (error.code, error.message))
        except aiosmtplib.SMTPServerDisconnected as error:
            if not alone:
                return False
            refused = {recipients[0]: (SERVICE_CLOSED, error.message)}
        except (aiosmtplib.SMTPNotSupported, ValueError) as error:  # an address that this server cannot be given
            if not alone:
                return False
            refused = {recipients[0]: (NO_SUCH_ADDRESS, str(error))}
        except TimeoutError as error:
            raise Undelivered(f"the mail server did not take it within {self._timeout:g} s") from error
        except (aiosmtplib.SMTPException, OSError) as error:
            raise Undelivered(f"the mail server did not take it: {type(error).__name__}: {error}"[:500]) from error
        for recipient, (code, said) in refused.items():
            outcome.add(recipient, code, said)
        return True
