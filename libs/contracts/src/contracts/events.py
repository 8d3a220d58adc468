"""An event of the log: a fact in its CloudEvents envelope, sealed to the one before it."""

import copy
import hashlib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from contracts.canonical import canonical
from contracts.errors import CorruptLog
from contracts.facts import CATALOGUE, Fact
from contracts.parts import Json
from contracts.personal import ERASED, plan_of, put_back, take_out
from contracts.sealing import DataKey, Gone, place
from contracts.strict import unique
from contracts.subjects import RunKey, TenantKey, parse
from contracts.tenant_facts import TENANT_FACTS

TRAIL_LENGTH = 32
# Bytes. A broker takes messages of 1 MB with their headers; what it would not take must not look like an outage.
LARGEST = 900_000
SOURCES = {
    "desk": "/turngate/gateway",
    "agent": "/turngate/agent-runner",
    "tools": "/turngate/tools-shop",
    "policy": "/turngate/policy",
    "approvals": "/turngate/approvals",
}
_NAMESPACE = uuid.UUID("5a6cdd30-1a66-53a8-9f60-6a1f0c5b8a5e")
_HASH = re.compile(r"[0-9a-f]{64}")
# How an event's personal data was found: there is none or it was never sealed; opened with the run's key; sealed, since
# this reader has no key; lost, since the key was erased.
PersonalData = Literal["clear", "opened", "sealed", "erased"]
# Where the sealed part stands in an event's data (empty: the key was erased before the fact was said), and where in a
# document that was opened for somebody.
_SEALED, _OPENED = "sealed", "opened"
_LONGEST_ATTRIBUTE = 128  # an id is copied into each fact that it causes, a traceparent into all that follow


Known = Callable[[RunKey], DataKey | Gone | None]


def no_key(_: RunKey) -> None:
    """For readers without keys."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact that someone wants to say: what led to it, and the key that tells it from others of the same cause."""

    fact: Fact
    cause: "Event | None"
    key: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One earlier event of the run, as a trail names it."""

    sequence: int
    kind: str


@dataclass(frozen=True, slots=True)
class Event:
    """What the log holds. `sequence` is the stream's, 0 until it is accepted; `payload` are the bytes as published.

    `fact` is None where this reader does not know the kind: newer writers may say more than older readers understand.
    Where `personal` is "sealed" or "erased", the fact's personal fields hold placeholders.

    recent: whether whoever handles it may take it for its run's head. An event that was delivered before, that waited,
    or that is handled again after an outage may be far behind it.
    """

    id: str
    key: RunKey
    kind: str
    fact: Fact | None
    ordinal: int
    cause: str | None
    time: datetime
    trail: tuple[Link, ...]
    chain: str
    traceparent: str | None
    sequence: int = 0
    payload: bytes = field(default=b"", repr=False, compare=False)
    personal: PersonalData = field(default="clear", compare=False)
    recent: bool = field(default=True, repr=False, compare=False)
    # What was taken out of the payload's data, where this reader could open it.
    _opened: Json | None = field(default=None, repr=False, compare=False)

    @property
    def author(self) -> str:
        return self.kind.split(".")[0]

    @property
    def name(self) -> str:
        return self.kind.split(".")[1]

    @property
    def terminal(self) -> bool:
        return self.fact is not None and self.fact.terminal

    def document(self) -> Json:
        """The CloudEvent as published, parsed: its personal data sealed."""
        document: Json = json.loads(self.payload)
        return document

    def opened_document(self) -> Json:
        """The CloudEvent with its personal data as far as this reader has it; else with placeholders that say why not.

        What was sealed is still in it, as `data.opened`, so that who has no key can check the chain.
        """
        document = self.document()
        if self._opened is not None:
            put_back(plan_of(self.kind), document["data"], self._opened)
        elif self.personal == "erased":
            take_out(plan_of(self.kind), document["data"], ERASED)
        if self.personal in ("opened", "erased") and _SEALED in document["data"]:
            document["data"][_OPENED] = document["data"].pop(_SEALED)
        return document

    def follows(self, chain: str) -> bool:
        """Whether the seal is right, given the chain of the event before ('' for the first).

        The seal is over what is said, not over its spelling: blanks and the order of keys may have changed since.
        """
        cut = self.payload.replace(b'"chain":"' + self.chain.encode() + b'",', b"", 1)
        if self.chain == _seal(chain, cut):
            return True
        try:
            document = json.loads(self.payload, object_pairs_hook=unique)
            del document["chain"]
            return self.chain == _seal(chain, canonical(document))
        except (ValueError, KeyError):
            return False  # nothing that was ever sealed


def event_id(key: RunKey, cause: str | None, kind: str, discriminator: str) -> str:
    """UUIDv5 of what makes an event that event, so that a repeated attempt bears the same id."""
    author, name = kind.split(".")
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join((key.tenant, key.run, cause or "", author, name, discriminator))))


def write(
    key: RunKey,
    draft: Draft,
    before: "Event | None",
    time: datetime,
    traceparent: str | None = None,
    data_key: DataKey | Gone | None = None,
) -> Event:
    """The event that says `draft` behind `before`. Its payload is canonical, so that the seal is checked as it is.

    With a key the personal part of the fact is sealed; with an erased one it is left out, and lost.
    Raises ValueError for a fact that JSON cannot carry, or that is larger than the broker takes.
    """
    fact = draft.fact
    ordinal = before.ordinal + 1 if before else 0
    data = fact.model_dump(mode="json")
    taken = take_out(plan_of(fact.kind), data) if data_key is not None else {}
    if isinstance(data_key, DataKey) and taken:
        data[_SEALED] = data_key.seal(canonical(taken), place(key, ordinal, fact.kind))
    elif taken:
        data[_SEALED] = ""
    trail = (*before.trail, Link(before.sequence, before.kind))[-TRAIL_LENGTH:] if before else ()
    cause = draft.cause.id if draft.cause else None
    document: Json = {
        "specversion": "1.0",
        "id": event_id(key, cause, fact.kind, draft.key),
        "source": SOURCES[fact.author],
        "type": f"turngate.{fact.kind}.v1",
        "subject": key.run,
        "time": time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
        "tenant": key.tenant,
        "ordinal": ordinal,
        "trail": " ".join(f"{link.sequence}:{link.kind}" for link in trail),
    }
    if cause:
        document["cause"] = cause
    if traceparent:
        document["traceparent"] = traceparent
    body = canonical(document)
    if len(body) > LARGEST:
        raise ValueError(f"{fact.kind} of {key.run} has {len(body):,} bytes; a fact has at most {LARGEST:,}.")
    chain = _seal(before.chain if before else "", body)
    event = Event(
        id=document["id"],
        key=key,
        kind=fact.kind,
        fact=fact,
        ordinal=ordinal,
        cause=cause,
        time=time,
        trail=trail,
        chain=chain,
        traceparent=traceparent,
        # `chain` sorts right before `data`, and only `cause`, a UUID, comes before both.
        payload=body.replace(b'"data":', b'"chain":"' + chain.encode() + b'","data":', 1),
    )
    if not taken or data_key is None:
        return event
    if isinstance(data_key, DataKey):
        return replace(event, personal="opened", _opened=taken)
    return opened(event, data_key)


def read(subject: str, sequence: int, payload: bytes, known: Known = no_key) -> Event:
    """The event that the stream holds under `subject`. What the body says of itself must agree with the subject.

    `known` gives a run's data key where it is in hand; without it what is sealed stays so, until `opened`.
    """
    try:
        key, kind = parse(subject)
        document = json.loads(payload, object_pairs_hook=unique)
        event = from_document(document, sequence, payload, type(key), known)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptLog(f"Event {sequence} of {subject} cannot be read: {error!r}"[:2000]) from error
    if event.key != key or event.kind != kind:
        raise CorruptLog(f"Event {sequence} says that it is {event.kind} of {event.key}; its subject is {subject}.")
    return event


def opened(event: Event, data_key: DataKey | Gone) -> Event:
    """An event that was read while its key was not in hand, read again with it. Raises CorruptLog if it misfits."""
    try:
        document = event.document()
        again = from_document(document, event.sequence, event.payload, type(event.key), lambda _: data_key)
        return again if event.recent else replace(again, recent=False)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptLog(
            f"What is sealed in event {event.ordinal} of {event.key.run} cannot be read: {error}"
        ) from None


def from_document(
    document: Json,
    sequence: int = 0,
    payload: bytes | None = None,
    line: type[RunKey] | None = None,
    known: Known = no_key,
) -> Event:
    """A parsed CloudEvent as an Event; the payload is made anew (canonical) where none is given. Whose line it stands
    in, a run's or a tenant's, its kind tells where nobody knows better.

    Of a document that was opened for somebody the payload that is made is the sealed form: the chain is over that.
    Raises ValueError, KeyError, TypeError or AttributeError for what is no event of ours.
    """
    prefix, author, name, version = document["type"].split(".")
    if prefix != "turngate" or version != "v1":
        raise ValueError(f"type {document['type']!r} is not one of ours")
    kind = f"{author}.{name}"
    line = line or (TenantKey if kind in TENANT_FACTS else RunKey)
    fact = (TENANT_FACTS if line is TenantKey else CATALOGUE).get(kind)
    key = _key(document["tenant"], document["subject"], line)
    trail = _read_trail(document["trail"])
    _check(document, trail)
    personal: PersonalData = "clear"
    taken: Json | None = None
    if fact is not None and isinstance(document["data"].get(_OPENED), str):
        personal, sealed_form, taken = "opened", *_sealed_form(document, kind)
        payload = canonical(sealed_form) if payload is None else payload
    elif fact is not None and isinstance(sealed := document["data"].get(_SEALED), str):
        payload = canonical(document) if payload is None else payload
        personal, taken = _open(document, sealed, kind, known(key))
    return Event(
        id=document["id"],
        key=key,
        kind=kind,
        fact=fact.model_validate(document["data"], extra="ignore") if fact else None,
        ordinal=document["ordinal"],
        cause=document.get("cause"),
        time=_read_time(document["time"]),
        trail=trail,
        chain=document["chain"],
        traceparent=document.get("traceparent"),
        sequence=sequence,
        payload=canonical(document) if payload is None else payload,
        personal=personal,
        _opened=taken,
    )


def _open(document: Json, sealed: str, kind: str, data_key: DataKey | Gone | None) -> tuple[PersonalData, Json | None]:
    """Puts the personal part of a document back, in place, or what says that it is lost."""
    if isinstance(data_key, DataKey) and sealed:
        key, plan = RunKey(document["tenant"], document["subject"]), plan_of(kind)
        taken: Json = json.loads(data_key.open(sealed, place(key, document["ordinal"], kind)))
        put_back(plan, document["data"], taken)
        return "opened", taken
    if data_key is None and sealed:
        return "sealed", None
    take_out(plan_of(kind), document["data"], ERASED)
    return "erased", None


def was_opened(document: Json) -> bool:
    """Whether a document was opened for somebody: it is not what the log holds, but tells what that is."""
    return isinstance(data := document.get("data"), dict) and _OPENED in data


def _sealed_form(document: Json, kind: str) -> tuple[Json, Json]:
    """What the log holds of a document that was opened for somebody, and what that somebody was shown."""
    data = copy.deepcopy(document["data"])
    data[_SEALED] = data.pop(_OPENED)
    shown = take_out(plan_of(kind), data)
    return {**document, "data": data}, shown


def _check(document: Json, trail: tuple[Link, ...]) -> None:
    """What readers rely on without looking again."""
    ordinal = document["ordinal"]
    if type(ordinal) is not int or ordinal < 0:
        raise ValueError(f"ordinal {ordinal!r} is no position in a run")
    if len(trail) != min(ordinal, TRAIL_LENGTH):
        raise ValueError(f"a trail of {len(trail)} at ordinal {ordinal}")
    if not _HASH.fullmatch(document["chain"]):
        raise ValueError("chain is no SHA-256")
    for name, value in (("id", document["id"]), *((n, document.get(n, "")) for n in ("cause", "traceparent"))):
        if not isinstance(value, str) or len(value) > _LONGEST_ATTRIBUTE:
            raise ValueError(f"{name} is no short text")


def _key(tenant: str, about: str, line: type[RunKey]) -> RunKey:
    if line is not TenantKey:
        return RunKey(tenant, about)
    if about != tenant:
        raise ValueError(f"a fact of tenant {tenant!r} that says it is about {about!r}")
    return TenantKey(tenant)


def _read_trail(text: str) -> tuple[Link, ...]:
    return tuple(Link(int(s), k) for s, k in (entry.split(":") for entry in text.split())) if text else ()


def _read_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return time


def _seal(previous: str, body: bytes) -> str:
    return hashlib.sha256(previous.encode() + body).hexdigest()
