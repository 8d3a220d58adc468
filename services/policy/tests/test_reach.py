"""What of a pack nobody could release, by those who decide for a tenant: said when the pack is checked."""

from pathlib import Path

import pytest
from contracts.parts import Person
from contracts.testing import person
from policy.handlers import checking
from policy.pack import parse
from policy.packs import Packs
from policy.reach import unmet

from .quotes import PACK
from .told import LEE, LIA, SAM, SUE

TWO_LEADS = PACK.replace("people: 2\n      one_of_role: lead", "people: 2\n      role: lead")
LEAD_LIMIT = PACK.replace("people: 2\n      one_of_role: lead", "people: 3") + (
    "limits:\n  customer_day: {refunds: 3, role: lead}\n"
)


@pytest.mark.parametrize(
    ("text", "known", "says"),
    [
        (PACK, [SAM, LEE], []),
        (PACK, [SAM, SUE, LEE], []),
        (PACK, [LEE], ["£2,000.00"]),
        (PACK, [SAM, SUE], ["£2,000.00", "a tool that the pack does not name"]),
        (PACK, [], ["£500.00", "£2,000.00", "a tool that the pack does not name"]),
        (TWO_LEADS, [SAM, SUE, LEE], ["£2,000.00"]),
        (TWO_LEADS, [LEE, LIA], []),
        (LEAD_LIMIT, [SAM, SUE, LEE], []),
        (LEAD_LIMIT, [SAM, SUE, person("sid", "approver")], ["a lead as well", "a lead as well", "a tool"]),
    ],
)
def test_each_need_that_the_known_people_cannot_meet_is_named(text: str, known: list[Person], says: list[str]) -> None:
    found = unmet(parse(text), known)

    assert len(found) == len(says)
    assert all(words in sentence for words, sentence in zip(says, found, strict=True))


def test_whoever_may_release_less_than_a_tier_reaches_does_not_count_for_it() -> None:
    limited = [one.model_copy(update={"limit_minor": 40_000}) for one in (SAM, SUE)]

    [upper] = unmet(parse(PACK), [*limited, LEE])

    assert "£2,000.00" in upper
    assert "the only one is lee (lead)" in upper


async def test_the_answer_to_a_promotion_says_it_where_it_is_known_who_decides(tmp_path: Path) -> None:
    known = {"acme": [SAM, SUE, LEE]}
    asked = {"tenant": "acme", "text": TWO_LEADS}

    [warning] = (await checking(Packs(tmp_path), known)(asked))["warnings"]

    assert "needs 2 leads" in warning
    assert "only be declined, or expires" in warning
    assert "warnings" not in await checking(Packs(tmp_path), known)(asked | {"text": PACK})
    assert "warnings" not in await checking(Packs(tmp_path), known)(asked | {"tenant": "globex"})
    assert "warnings" not in await checking(Packs(tmp_path))(asked)
