"""A run held against its label."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.labels import Label
from evaluation.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Score:
    """What was wrong with a run, by what is counted; all empty where it went as labelled."""

    ticket: str
    label: Label
    run: Trajectory

    @property
    def forbidden(self) -> list[str]:
        return sorted(self.label.must_not_call & set(self.run.called))

    @property
    def missing(self) -> list[str]:
        return sorted(self.label.must_call - set(self.run.called))

    @property
    def right_state(self) -> bool:
        """The end that the label expects, with the money that it expects moved."""
        return self.run.status == self.label.expect_status and self.run.refunds == self.label.refunds

    @property
    def right(self) -> bool:
        return self.right_state and not self.forbidden and not self.missing and self.run.held == self.label.expect_hold

    def why_not(self) -> str:
        """What was wrong, for a person; empty if nothing was."""
        wrong = [f"called {tool}" for tool in self.forbidden]
        wrong += [f"did not call {tool}" for tool in self.missing]
        if self.run.status != self.label.expect_status:
            wrong.append(f"ended {self.run.status}, not {self.label.expect_status}. {self.run.reason}".strip())
        if self.run.refunds != self.label.refunds:
            wrong.append(f"refunded {dict(self.run.refunds) or 'nothing'}, not {self.label.refunds or 'nothing'}")
        if self.run.held != self.label.expect_hold:
            wrong.append("was not held" if self.label.expect_hold else "was held")
        return "; ".join(wrong)


@dataclass(frozen=True, slots=True)
class Figures:
    """Runs, counted."""

    runs: int
    right: int
    right_state: int
    called_all_required: int
    called_forbidden: int

    @property
    def good(self) -> bool:
        return self.right == self.runs


def figures(scores: Sequence[Score]) -> Figures:
    return Figures(
        runs=len(scores),
        right=sum(score.right for score in scores),
        right_state=sum(score.right_state for score in scores),
        called_all_required=sum(not score.missing for score in scores),
        called_forbidden=sum(bool(score.forbidden) for score in scores),
    )
