"""Takes each notice to each target of its tenant: at least once, in its own time, on its own line of the broker.

A delivery is a timer of the broker that falls due at once, and again later where a try came to nothing. So it outlives
this process, and one target that is slow or away holds up no other, and no decision.
"""

import json
import random
from collections import Counter
from datetime import timedelta

import prometheus_client
import structlog
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.events import Event
from contracts.log import Clock, JetStreamLog
from contracts.parts import Json
from pydantic import SecretStr

from approvals.notifications import formats
from approvals.notifications.delivery import Delivery, Undelivered
from approvals.notifications.mail import Mail
from approvals.notifications.notice import TELLS, Notice, notice
from approvals.notifications.posting import Post, secret_address, signed
from approvals.notifications.targets import AnyTarget, Email, Slack, Targets, Webhook, identity

logger = structlog.get_logger()
DELIVERIES = prometheus_client.Counter(
    "turngate_notifications_total", "Tries to tell somebody, by how they ended.", ["kind", "outcome"]
)
# Tries at one target at a time, and how many seconds the others stand back for.
AT_ONCE = 8
STAND_BACK = (1.0, 5.0)


class Courier:
    def __init__(
        self,
        bus: Bus,
        log: JetStreamLog,
        targets: Targets,
        post: Post,
        mail: Mail,
        secrets: dict[str, SecretStr],
        backoff: tuple[float, ...],
        console_url: str,
        clock: Clock,
    ) -> None:
        self._bus, self._log, self._targets = bus, log, targets
        self._post, self._mail, self._secrets = post, mail, secrets
        self._backoff, self._console_url, self._clock = backoff, console_url, clock
        self._under_way: Counter[str] = Counter()

    async def hear(self, event: Event) -> None:
        """Starts a delivery for each target. Whatever goes wrong here is not the run's fault, and ends no run."""
        tenant, run = event.key.tenant, event.key.run
        try:
            targets = self._targets.of(tenant)
            if not targets:
                DELIVERIES.labels("none", "nobody").inc()
                logger.warning("its tenant names nobody to tell", tenant=tenant, run=run, fact=event.kind)
            for target in targets:
                await self._set(Delivery(tenant=tenant, run=run, sequence=event.sequence, target=identity(target)), 0)
        except Outage:
            raise
        except Exception as error:
            await self._give_up(event, "every target", 0, str(error))

    async def deliver(self, body: Json) -> None:
        """One try. A delivery whose target its tenant has taken out since is over."""
        delivery = Delivery.model_validate(body)
        target = next((t for t in self._targets.of(delivery.tenant) if identity(t) == delivery.target), None)
        if target is None:
            logger.info("nobody to tell", sequence=delivery.sequence, target=delivery.target)
            return
        if self._under_way[delivery.target] >= AT_ONCE:
            await self._set(delivery, random.uniform(*STAND_BACK))  # noqa: S311 - spreads tries
            return
        self._under_way[delivery.target] += 1
        try:
            await self._try(delivery, target)
        finally:
            self._under_way[delivery.target] -= 1

    async def _try(self, delivery: Delivery, target: AnyTarget) -> None:
        event = await self._log.at(delivery.sequence)
        if event is None or event.key != delivery.key or event.kind not in TELLS:
            logger.warning("nothing to tell", sequence=delivery.sequence)
            return
        # A delivery may be tried again for days: what has ended since is told to nobody.
        told = notice(await self._log.read(event.key), event, self._console_url)
        if told is None:
            logger.warning("nothing to tell", sequence=delivery.sequence)
            return
        try:
            await self._send(told, target, delivery.pending)
            DELIVERIES.labels(target.kind, "told").inc()
            logger.info("told", target=target.name or target.kind, notice=told.id, tries=delivery.tries + 1)
        except Undelivered as error:
            await self._failed(delivery, event, target, error)

    async def _send(self, told: Notice, target: AnyTarget, pending: tuple[int, ...]) -> None:
        match target:
            case Webhook():
                body = formats.webhook(told)
                secret = self._secret(target.secret_env)
                await self._post.send(target.url, body, signed(secret, told.id, self._clock(), body))
            case Slack():
                await self._post.send(secret_address(self._secret(target.secret_env)), formats.slack(told), {})
            case Email():
                await self._mail_to(told, target, pending)

    async def _mail_to(self, told: Notice, target: Email, pending: tuple[int, ...]) -> None:
        """To those who are still to have it; the message names all, as at the first try."""
        wanted = [one for at, one in enumerate(target.to) if not pending or at in pending]
        outcome = await self._mail.send(formats.email(told, self._mail.sender, target.to), wanted)
        refused = _listed("the mail server refused for good: ", outcome.refused)
        if outcome.pending:
            raise Undelivered(
                _listed("the mail server did not take it now: ", outcome.pending),
                pending=tuple(at for at, one in enumerate(target.to) if one in outcome.pending),
                refused=refused,
            )
        if refused:
            raise Undelivered(refused, final=True)

    def _secret(self, name: str) -> str:
        if name not in self._secrets:
            raise Undelivered(f"the variable {name} is not set")
        return self._secrets[name].get_secret_value()

    async def _failed(self, delivery: Delivery, event: Event, target: AnyTarget, error: Undelivered) -> None:
        name = target.name or target.kind
        over = error.final or delivery.tries >= len(self._backoff)
        DELIVERIES.labels(target.kind, "dead" if over else "failed").inc()
        logger.warning("not told", target=name, sequence=event.sequence, tries=delivery.tries + 1, error=str(error))
        if not over:
            later = self._backoff[delivery.tries] * random.uniform(1, 1.2)  # noqa: S311 - spreads tries
            await self._set(delivery.again(error.pending), later)
        if lost := "; ".join(filter(None, (error.refused, str(error) if over else ""))):
            await self._give_up(event, name, delivery.tries + 1, lost)

    async def _set(self, delivery: Delivery, seconds: float) -> None:
        await self._bus.set_timer(delivery.timer, self._clock() + timedelta(seconds=seconds), delivery.body())

    async def _give_up(self, event: Event, target: str, tries: int, error: str) -> None:
        """Into the dead letters, under a subject that is no run's: nothing is wrong with the run."""
        letter = {
            "service": self._bus.service,
            "subject": f"notification.{event.key.tenant}.{event.key.run}.{event.kind}",
            "sequence": event.sequence,
            "event": json.dumps({"id": event.id, "target": target, "tries": tries}),
            "error": error[:2000],
        }
        answer = await self._bus.ask(f"dead.{self._bus.service}", letter, timeout=5)
        if "error" in answer:
            raise Outage(f"The dead letter was not taken: {answer['error']}")


def _listed(what: str, by_recipient: dict[str, str]) -> str:
    return what + ", ".join(f"{one} ({said})" for one, said in by_recipient.items()) if by_recipient else ""
