"""Which of two schedules is the simpler one: the measure that decides between equal times."""

from tuner.core.candidate import Candidate, Value
from tuner.core.runs import StoredTrial

OFF: tuple[Value, ...] = (0, 1, "none")  # values by which knobs leave something out: no block, no unrolling


def complexity(trial: StoredTrial) -> tuple[int, int]:
    """Returns what to compare, the smaller the simpler: lines of the script, then knobs that do something.

    A script has lines for all that it does: tiles, packing and pipelining that are left out are not in it.
    """
    knobs = 0 if trial.record is None else knobs_on(trial.record.candidate)
    return script_lines(trial.script_text), knobs


def script_lines(text: str) -> int:
    """Returns the lines of a script that are neither blank nor comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def knobs_on(candidate: Candidate) -> int:
    """Returns how many knobs have a value other than 0, 1 and 'none'."""
    return sum(1 for _, value in candidate.choices if value not in OFF)
