"""What may be said on a held call is one rule for all services: policy counts what approvals would record by it."""

from contracts.entitlement import Held, Word, above_own_limit, bar, roles_asked
from contracts.facts import TurnForwarded, TurnHeld
from contracts.parts import Person
from contracts.people import same
from contracts.testing import person, started
from hypothesis import given
from hypothesis import strategies as st
from policy.pack import PolicyPack, parse

from .quotes import PACK, refund
from .told import ALEX, LEE, LIA, SAM, SUE, Told, verdicts

PACKS = [
    parse(PACK.replace("    - up_to: 50000\n", "").replace("people: 2\n      one_of_role: lead", people))
    for people in (
        "people: 1",
        "people: 2",
        "people: 1\n      role: lead",
        "people: 2\n      role: lead",
        "people: 2\n      one_of_role: lead",
        "people: 3\n      one_of_role: lead",
    )
]
PEOPLE = [
    *(SAM, SUE, LEE, LIA, person("joe", "approver"), person("sam", "lead")),
    *(
        ALEX,
        person("alex", "lead"),
        person("C-1004", "lead"),
        person("cust-C-1004", "approver"),
        person("ada", "admin"),
    ),
    *(by.model_copy(update={"limit_minor": limit}) for by in (SAM, LEE) for limit in (9000, 18_000)),
]
CUSTOMER = started(ALEX).ticket.customer
people = st.sampled_from(PEOPLE)
words: st.SearchStrategy[Word] = st.sampled_from(["approve", "approve", "approve", "decline", "change"])


class Asked:
    """One held call as approvals knows it: what is held, who approved that, who changed the call into it."""

    def __init__(self, run: Told) -> None:
        self.run, self.attempt, self.quote = run, 1, refund("a", 36_000)
        self.approved_by: list[Person] = []
        self.editors: list[Person] = []
        self.changed_by: list[Person] = []
        held = run.quote(self.quote)
        assert isinstance(held, TurnHeld)
        self.hold = held.holds[0]

    def bar(self, by: Person, word: Word, *, but_for_their_yes: bool = False) -> str | None:
        approved_by = [] if but_for_their_yes else self.approved_by
        held = Held(ALEX, CUSTOMER, self.hold, self.quote, self.changed_by, approved_by)
        barred = bar(held, by, word)
        if barred is None and word == "change" and self.attempt == 3:
            return "Changed too often"
        return barred.title if barred else None

    @property
    def released(self) -> bool:
        return roles_asked(self.hold.needs, self.approved_by) == ()

    def change(self, by: Person) -> object:
        """To half of it, which is quoted anew. What policy says of that."""
        was, self.attempt = self.quote, self.attempt + 1
        assert was.effect is not None
        assert self.run.decide(by, was, edited={"amount_pence": 1}) is None
        minor = (was.effect.amount_minor or 0) // 2
        self.quote = refund("a", minor, edited=was.digest)
        answer = self.run.quote(self.quote, attempt=self.attempt)
        carries = above_own_limit(minor, self.quote, by) is None
        self.approved_by = [by] if carries else []
        if isinstance(answer, TurnHeld):
            self.hold = answer.holds[0]
            assert self.hold.edited_by == (None if carries else by)
        self.editors.append(by)
        self.changed_by = [one for one in self.editors if not (carries and same(one, by))]
        return answer


def say(asked: Asked, by: Person, word: Word) -> object:
    """What policy says of a word that approvals recorded."""
    if word == "change":
        return asked.change(by)
    if word == "approve":
        asked.approved_by.append(by)
    return asked.run.decide(by, asked.quote, word)


@given(st.sampled_from(PACKS), st.lists(st.tuples(people, words), max_size=9))
def test_each_word_counts_if_it_may_be_said_and_no_other_does(
    pack: PolicyPack, said: list[tuple[Person, Word]]
) -> None:
    asked = Asked(Told(pack))
    for by, word in said:
        barred = asked.bar(by, word)
        if barred is None:
            answer = say(asked, by, word)
            if word == "decline":
                assert verdicts(answer) == {"a": "declined"}
                return
            assert isinstance(answer, TurnForwarded) == asked.released, (by, word, asked.hold)
            if asked.released:
                assert verdicts(answer) == {"a": "run"}
                return
        elif word == "decline" and asked.bar(by, word, but_for_their_yes=True) is None:
            # Approvals records no second word of theirs; if one is in the log, the no is the one to heed.
            assert verdicts(asked.run.decide(by, asked.quote, word)) == {"a": "declined"}
            return
        elif word != "change":
            assert asked.run.decide(by, asked.quote, word) is None, (by, word, barred)
