"""What services ask one another: the same models on both sides, and answers that say no in words."""

import pytest
from contracts import asks
from contracts.answers import No
from contracts.asks import SAY_OF_TENANT, AskDecide, AskQuote, AskSetStop, Decide
from contracts.validation import explain
from pydantic import ValidationError

DECISION = {"turn": 1, "call_id": "c1", "digest": "0" * 64, "decision": "approve"}


def test_a_question_is_read_from_the_wire_as_it_was_put_there_and_its_token_is_in_no_log() -> None:
    asked = AskDecide(token="header.payload.signature", run="TCK-2004-1", **DECISION)  # type: ignore[arg-type]

    assert AskDecide.model_validate(asked.model_dump(mode="json")) == asked
    assert "header" not in repr(asked)


def test_a_question_names_nothing_that_its_answerer_would_not_ask_for() -> None:
    with pytest.raises(ValidationError):
        AskDecide.model_validate({"token": "t", "run": "TCK-2004-1", "tenant": "globex", **DECISION})


def test_a_decline_changes_nothing() -> None:
    with pytest.raises(ValidationError, match="a decline changes nothing"):
        Decide.model_validate({**DECISION, "decision": "decline", "edited": {"amount_pence": 1}})


@pytest.mark.parametrize("model", [AskDecide, AskQuote])
def test_arguments_are_bounded_the_same_wherever_they_are_asked_about(model: type[AskDecide | AskQuote]) -> None:
    fields = DECISION if model is AskDecide else {"turn": 1, "call_id": "c1"}
    wanted = {"token": "t", "run": "R-1", **fields, "edited": {"note": "x" * asks.LARGEST_ARGUMENTS}}

    with pytest.raises(ValidationError, match="at most 20,000 bytes"):
        model.model_validate(wanted)


def test_a_word_on_a_tenant_is_told_from_the_others_by_what_it_says() -> None:
    asked = AskSetStop(token="t", reason=" a wave ", tool="issue_refund")  # type: ignore[arg-type]

    assert asked.reason == "a wave"
    assert SAY_OF_TENANT.validate_python(asked.model_dump(mode="json")) == asked
    with pytest.raises(ValidationError):
        AskSetStop(token="t", reason="  ")  # type: ignore[arg-type]


def test_a_no_is_read_as_it_was_said_and_what_was_asked_for_is_none() -> None:
    no = No(409, "Moved on", "Reload.")

    assert No.in_answer(no.on_the_wire()) == no
    assert No.in_answer({"status": 200, "event": {}}) is None
    assert No.in_answer({"status": 503}) == No(503, "Not possible", "It was not said why. Nothing was changed.")
    assert No.in_answer({}) == No(500, "Not possible", "It was not said why. Nothing was changed.")


def test_what_is_wrong_with_a_request_is_said_without_its_words() -> None:
    with pytest.raises(ValidationError) as caught:
        Decide.model_validate({**DECISION, "note": "secret" * 1000})

    assert "note: " in explain(caught.value)
    assert "secret" not in explain(caught.value)
