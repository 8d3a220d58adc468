"""The labelled tickets, worked end to end and scored."""

from evaluation.labels import Labels
from evaluation.place import People
from evaluation.score import Score
from evaluation.working import at_once, work


def evaluate(labels: Labels, people: People, start_as: str) -> list[Score]:
    """A run of each ticket. What a label expects to be held is released by who may; what else is held stays so."""
    operator, approver = people(start_as), people(labels.release_as)

    def score(reference: str) -> Score:
        label = labels.tickets[reference]
        return Score(reference, label, work(operator, reference, approver if label.expect_hold else None))

    return at_once(score, labels.tickets)
