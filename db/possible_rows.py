"""Whether rows of another database can be true: anybody may have written them."""

from tuner.core.possible_outcome import most_flop_per_s, why_impossible, why_no_verdict
from tuner.core.record import Verdict
from tuner.db.models import FIRST, MeasurementRow, RunRow, TrialRow
from tuner.db.rows import machine_of, measurement_of, problem_of


def why_impossible_trial(trial: TrialRow, run: RunRow) -> str:
    """Returns why the outcome of a trial cannot be one; "" where it can, and where there is none."""
    if trial.elements is not None:
        verdict = Verdict(trial.max_error or 0.0, trial.elements)
        why = why_no_verdict(verdict, problem_of(run.problem))
        if why:
            return why
    first = next((each for each in trial.measurements if each.kind == FIRST), None)
    return "" if first is None else why_impossible_time(first, run)


def why_impossible_time(row: MeasurementRow, run: RunRow) -> str:
    """Returns why a measurement cannot be one of a run's problem on its machine; "" where it can."""
    problem = problem_of(run.problem)
    limit_flop_per_s = most_flop_per_s(problem.dtype, machine_of(run.machine), run.threads)
    try:
        return why_impossible(measurement_of(row), problem, limit_flop_per_s)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # columns of another kind
        return f"found a measurement that cannot be read ({type(error).__name__})"
