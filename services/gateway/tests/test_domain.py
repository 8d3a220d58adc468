"""What the desk says next."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from contracts.events import Draft
from contracts.facts import CustomerSaid, PersonSaid, RunCancelled, RunFailed, RunTakenOver
from contracts.history import History
from contracts.identity import ROLES, Principal
from contracts.parts import Person
from gateway import domain
from gateway.domain import Refusal, Said

from .facts import ALEX, LEE, SAM, ended, started, story_to_the_hold
from .told import KEY, Told


def asker(person: Person) -> Principal:
    return Principal(
        subject=person.subject,
        issuer=person.issuer,
        tenant="acme",
        role=person.role,
        scopes=ROLES[person.role],
        token_id="t",
        expires_at=datetime.now(UTC) + timedelta(hours=1),
        limit_minor=person.limit_minor,
    )


TOM = Person(subject="cust-C-1004", issuer=ALEX.issuer, role="customer")
RUTH = Person(subject="cust-C-1009", issuer=ALEX.issuer, role="customer")


def test_the_first_to_start_a_run_says_its_first_fact() -> None:
    outcome = domain.start(History(KEY), started(), "k")

    assert isinstance(outcome, Draft)


def test_who_starts_a_run_that_is_there_is_shown_it() -> None:
    told = Told(started())

    outcome = domain.start(told.history, started(by=SAM), "k")

    assert outcome == Said(told.events[0])


def test_a_customer_writes_in_their_own_chat() -> None:
    told = Told(started(channel="chat"))

    outcome = domain.say(told.history, asker(TOM), "Any news?", "k")

    assert outcome == Draft(CustomerSaid(text="Any news?", message_id="k"), None, "k")


def test_what_an_operator_types_for_the_customer_says_who_typed_it() -> None:
    told = Told(started(channel="chat"))

    outcome = domain.say(told.history, asker(ALEX), "They ask for news.", "k")

    by = asker(ALEX).person()
    assert outcome == Draft(CustomerSaid(text="They ask for news.", message_id="k", by=by), None, "k")


@pytest.mark.parametrize("person", [SAM, LEE])
def test_who_may_decide_does_not_ask_in_the_customers_name(person: Person) -> None:
    told = Told(started(channel="chat"))

    outcome = domain.say(told.history, asker(person), "Please refund my order.", "k")

    assert isinstance(outcome, Refusal)
    assert outcome.status == 403
    assert "take the run over" in outcome.detail
    told.say(RunTakenOver(by=person))
    assert isinstance(domain.say(told.history, asker(person), "I am here.", "k"), Draft)


def test_for_another_customer_the_chat_does_not_exist() -> None:
    outcome = domain.say(Told(started(channel="chat")).history, asker(RUTH), "Hello", "k")

    assert outcome == domain.NO_RUN


def test_a_chat_without_a_customer_id_is_that_of_who_bears_its_email() -> None:
    begun = started(channel="chat")
    customer = begun.ticket.customer.model_copy(update={"id": None})
    told = Told(begun.model_copy(update={"ticket": begun.ticket.model_copy(update={"customer": customer})}))

    toms = domain.say(told.history, replace(asker(TOM), email="Tom.Whitfield@Mail.example"), "Any news?", "k")
    ruths = domain.say(told.history, replace(asker(RUTH), email="ruth@mail.example"), "Hello", "k")

    assert isinstance(toms, Draft)
    assert ruths == domain.NO_RUN


def test_a_ticket_takes_no_messages() -> None:
    outcome = domain.say(Told(started()).history, asker(ALEX), "Hello", "k")

    assert isinstance(outcome, Refusal)
    assert outcome.status == 409


def test_once_a_person_has_taken_over_their_words_go_to_the_customer() -> None:
    told = Told(started(), RunTakenOver(by=ALEX))

    outcome = domain.say(told.history, asker(ALEX), "I am Alex.", "k")

    assert outcome == Draft(PersonSaid(by=asker(ALEX).person(), text="I am Alex."), None, "k")


def test_the_same_message_sent_again_is_said_once() -> None:
    told = Told(started(channel="chat"))
    draft = domain.say(told.history, asker(TOM), "Any news?", "k")
    assert isinstance(draft, Draft)
    event = told.append(draft)

    assert domain.say(told.history, asker(TOM), "Any news?", "k") == Said(event)
    assert domain.say(told.history, asker(TOM), "Something else", "k") == domain.KEY_TAKEN


@pytest.mark.parametrize(("act", "fact"), [(domain.cancel, RunCancelled), (domain.take_over, RunTakenOver)])
def test_a_run_is_ended_once(act: object, fact: type) -> None:
    told = Told(*story_to_the_hold())
    assert callable(act)
    draft = act(told.history, asker(ALEX), "", "k")
    assert isinstance(draft.fact, fact)
    event = told.append(draft)

    assert act(told.history, asker(ALEX), "", "k") == Said(event)
    other = act(told.history, asker(ALEX), "", "another key")
    assert isinstance(other, Refusal)
    assert other.status == 409


def test_the_same_request_with_a_renewed_token_is_the_same_request() -> None:
    told = Told(started())
    draft = domain.cancel(told.history, asker(ALEX), "why", "k")
    assert isinstance(draft, Draft)
    event = told.append(draft)

    assert domain.cancel(told.history, replace(asker(ALEX), token_id="t-2"), "why", "k") == Said(event)


def test_a_run_whose_runner_gave_up_fails_once_and_only_if_it_has_not_ended() -> None:
    told = Told(started())
    draft = domain.fail(told.history, "dead 7")
    assert isinstance(draft, Draft)
    assert isinstance(draft.fact, RunFailed)
    told.append(draft)

    assert domain.fail(told.history, "dead 7") is None
    assert domain.fail(Told(started(), ended()).history, "dead 7") is None
    assert domain.fail(History(KEY), "dead 7") is None
