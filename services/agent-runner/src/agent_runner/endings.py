"""How a run ends, and in which words."""

from dataclasses import dataclass
from typing import Literal

from contracts.facts import RunEnded

from agent_runner.run import Run


@dataclass(frozen=True, slots=True)
class DayFull:
    """The tenant's day has no room for a model call, in micro-dollars: its budget, what of it is taken, and what the
    call may cost."""

    budget: int
    taken: int
    asked: int


@dataclass(frozen=True, slots=True)
class RunFull:
    """The run's money has no room for the call that was to be made: what of it is spent or may be owed, in
    micro-dollars."""

    taken: int


@dataclass(frozen=True, slots=True)
class TooOften:
    """The call was made so many times, each of which may have to be paid, and no answer came."""

    times: int


def ended(
    run: Run,
    status: Literal["resolved", "escalated", "budget_exhausted", "failed"],
    reason: str,
    *,
    handover: str | None = None,
    spent: tuple[int, int] | None = None,
) -> RunEnded:
    """The run's end; `spent` where the last call is not yet a fact: steps and micro-dollars."""
    steps, cost = spent or (run.steps, run.cost_micro_usd)
    return RunEnded(status=status, reason=reason, steps=steps, cost_micro_usd=cost, handover=handover)


def out_of_steps(run: Run) -> RunEnded:
    most = run.started.limits.max_steps
    reason = f"The agent used all of its {most} steps without finishing. A person must go on from here."
    return ended(run, "budget_exhausted", reason, handover=run.escalation)


def out_of_money(run: Run, taken: int = 0) -> RunEnded:
    """`taken` is what of the run's money is spent or may be owed, where that is more than the log tells."""
    owed = max(0, taken - run.cost_micro_usd)
    reason = (
        f"The agent has spent {_usd(run.cost_micro_usd)} of the run's {_usd(run.started.limits.max_cost_micro_usd)}"
        + (
            f", and {_usd(owed)} more may have to be paid for requests that brought no answer. What"
            if owed
            else ", and what"
        )
        + " is left does not pay for another step. A person must go on from here, or start a run with a higher limit."
    )
    return ended(run, "budget_exhausted", reason, handover=run.escalation)


def out_of_days_money(run: Run, full: DayFull) -> RunEnded:
    reason = (
        f"The model calls of the whole tenant may cost {_usd(full.budget)} a day (UTC). {_usd(full.taken)} of that is "
        f"spent or reserved today, and the next step may cost {_usd(full.asked)}, so the model was not asked. Nothing "
        "was done in this step; what was done before stays done. A person must go on with the ticket, or an admin "
        "raises the budget (`turngate budget --day`) and somebody starts the run again."
    )
    return ended(run, "budget_exhausted", reason, handover=run.escalation)


def asked_too_often(run: Run, tried: TooOften, status: str | None) -> RunEnded:
    """`status` says how the last request went, where it was ours."""
    reason = (
        f"The model was asked {tried.times} times in this step, and its answer never came or broke off"
        f"{f' (the last time: {status})' if status else ''}. Each of these requests may have to be paid, so it is not "
        "asked again. Nothing was done in this step; what was done before stays done. A person must go on with the "
        "ticket, or start a run again once the model answers."
    )
    return ended(run, "failed", reason, handover=run.escalation)


def waited_too_long(run: Run, seconds: float, status: str) -> RunEnded:
    reason = (
        f"The model has been away for {_span(seconds)} (the last time: {status}), which is as long as a run waits for "
        "it. Nothing was done in this step; what was done before stays done. A person must go on with the ticket, or "
        "start a run again once the model answers."
    )
    return ended(run, "failed", reason, handover=run.escalation)


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _usd(micro_usd: int) -> str:
    return f"${micro_usd / 1_000_000:.4f}"
