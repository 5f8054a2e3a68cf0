"""The list of a run's trials, whose rows plots and failures link to."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.core.errors import Failure
from tuner.core.runs import StoredTrial
from tuner.output.formatting import knobs_text, speed_text, trial_time_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.content import varying_knobs


@dataclass(frozen=True)
class ListedTrial:
    """A trial in the list of a report: id, outcome, varying knobs, and a link to its kind of failure."""

    trial: int  # id
    outcome: tuple[str, ...]  # speed, time and reliability, or one text over these columns
    choices: str  # knobs that vary among the listed trials
    link: str = ""  # anchor of its kind of failure; "" if the page does not show one


def trial_rows(shown: tuple[StoredTrial, ...], kinds: Mapping[int, str]) -> tuple[ListedTrial, ...]:
    """Returns the list of trials on a report's page, one entry per trial in ``shown``.

    ``kinds``: trial id -> HTML id of the trial's kind of failure.
    """
    knobs = varying_knobs(shown)
    strategies = {trial.record.candidate.strategy for trial in shown}
    listed = []
    for trial in shown:
        candidate = trial.record.candidate
        choices = knobs_text([pair for pair in candidate.choices if pair[0] in knobs])
        text = f"{candidate.strategy} {choices}" if len(strategies) > 1 else choices
        listed.append(ListedTrial(trial.id, _outcome(trial), text, kinds.get(trial.id, "")))
    return tuple(listed)


def _outcome(trial: StoredTrial) -> tuple[str, ...]:
    record = trial.record
    if isinstance(record.outcome, Failure):
        return (f"failed: {record.outcome.stage.value}",)
    if trial.best_s is None:
        return ("verified",)
    is_cut = trial.early_stopped is not None
    speed = speed_text(None if is_cut else gflop_per_s(record.problem, trial.best_s))
    return speed, trial_time_text(trial), trial.reliability.word
