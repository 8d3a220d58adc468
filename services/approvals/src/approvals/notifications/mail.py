"""Sends e-mail by the SMTP server of the settings."""

import asyncio
from email.message import EmailMessage

import aiosmtplib

from approvals.notifications.delivery import Undelivered
from approvals.settings import Smtp


class Mail:
    def __init__(self, smtp: Smtp | None, timeout: float) -> None:
        self._smtp, self._timeout = smtp, timeout

    @property
    def sender(self) -> str:
        return self._smtp.sender if self._smtp else ""

    async def send(self, message: EmailMessage) -> None:
        """Done once the server has taken it for every recipient that it knows. Raises Undelivered."""
        smtp = self._smtp
        if smtp is None:
            raise Undelivered("no SMTP server is set (TURNGATE_SMTP_HOST, TURNGATE_SMTP_SENDER)")
        try:
            async with asyncio.timeout(self._timeout):
                refused, _ = await aiosmtplib.send(
                    message,
                    hostname=smtp.host,
                    port=smtp.port,
                    username=smtp.user,
                    password=smtp.password.get_secret_value() if smtp.password else None,
                    use_tls=smtp.security == "tls",
                    start_tls=smtp.security == "starttls",
                    timeout=self._timeout,
                )
        except TimeoutError as error:
            raise Undelivered(f"the mail server did not take it within {self._timeout:g} s") from error
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise Undelivered("the mail server refused every recipient") from error
        except (aiosmtplib.SMTPException, OSError) as error:
            raise Undelivered(f"the mail server did not take it: {type(error).__name__}: {error}"[:500]) from error
        if refused:
            raise Undelivered(f"the mail server refused {len(refused)} recipients, the others have it", final=True)
