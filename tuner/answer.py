"""Trials -> the answer of a run: the best one, or the set that this session cannot tell apart."""

from dataclasses import dataclass

from tuner.record import Measurement
from tuner.runs import StoredTrial


@dataclass(frozen=True)
class Answer:
    """The trial to use, and those whose times mean the same."""

    best: StoredTrial  # the simplest of the tied set
    tied: tuple[StoredTrial, ...]  # the best is among them; fastest first

    @property
    def measurement(self) -> Measurement:
        """Returns the time of the best: the interleaved one when there is one."""
        return timed(self.best)


def timed(trial: StoredTrial) -> Measurement:
    """Returns the time that a measured trial is judged by. Raises ValueError when it was not timed."""
    if trial.final is not None:
        return trial.final
    if trial.record is not None and isinstance(trial.record.outcome, Measurement):
        return trial.record.outcome
    raise ValueError(f"trial {trial.id} was not timed")


def answer_of(trials: tuple[StoredTrial, ...], noise: float | None) -> Answer | None:
    """Returns the best of the measured trials and what is tied with it; None when none was measured.

    Where finalists were timed again, only they count: times of other minutes do not compare.
    Tied with the fastest means: the 95 % intervals overlap, and the medians differ by no more than ``noise``.
    Among the tied, the simplest schedule wins: fewest lines of script, then fewest knobs, then the fastest.
    """
    candidates = finalists_of(trials)
    if not candidates:
        return None
    by_time = sorted(candidates, key=lambda trial: (timed(trial).median_s, trial.number))
    fastest = timed(by_time[0])
    tied = tuple(trial for trial in by_time if is_tied(timed(trial), fastest, noise))
    return Answer(best=min(tied, key=_complexity), tied=tied)


def finalists_of(trials: tuple[StoredTrial, ...]) -> tuple[StoredTrial, ...]:
    """Returns the trials timed again together; where none was, every measured one."""
    finals = tuple(trial for trial in trials if trial.final is not None)
    return finals or tuple(trial for trial in trials if trial.best_s is not None)


def is_tied(measurement: Measurement, fastest: Measurement, noise: float | None) -> bool:
    """Says whether a time differs from the fastest by nothing that was shown to mean anything."""
    overlaps = measurement.interval_s[0] <= fastest.interval_s[1]
    if measurement is fastest or noise is None:
        return overlaps
    return overlaps and measurement.median_s <= fastest.median_s * (1 + noise)


def script_lines(text: str) -> int:
    """Returns the lines of a script that are neither blank nor comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def _complexity(trial: StoredTrial) -> tuple[int, int, float]:
    knobs = 0 if trial.record is None else len(trial.record.candidate.choices)
    return (script_lines(trial.script_text), knobs, timed(trial).median_s)
