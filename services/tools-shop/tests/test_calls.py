from contracts import events
from contracts.canonical import canonical
from contracts.facts import TurnExecuted
from contracts.parts import CallResult
from hypothesis import example, given
from hypothesis import strategies as st
from tools_shop import calls

MOST_CALLS = 64


@given(
    st.integers(1, MOST_CALLS), st.sampled_from(["a", "é", "𝄞", "\x01"]), st.integers(0, 12_000), st.integers(0, 60_000)
)
@example(MOST_CALLS, "𝄞", 9_000, 0)  # fewer characters than a call's share, and more bytes
def test_the_results_of_any_turn_fit_into_one_fact(count: int, letter: str, length: int, data: int):
    # given results up to the longest that there can be
    whole = [CallResult(call_id=f"c{i}", content=letter * length, data={"text": "x" * data}) for i in range(count)]
    # when they are put into one fact
    executed = TurnExecuted(turn=1, attempt=1, receipt_id="r", results=calls.fitted(whole))
    # then it can be written, with one result a call
    assert len(canonical(executed.model_dump(mode="json"))) < events.LARGEST
    assert [result.call_id for result in executed.results] == [result.call_id for result in whole]


def test_short_results_are_left_as_they_are():
    results = [CallResult(call_id="c1", content="all of it", data={"n": 1})]
    assert calls.fitted(results) == results
