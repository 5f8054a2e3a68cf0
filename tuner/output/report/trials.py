"""The trials of a run in a list that drawings and failures point into."""

from collections.abc import Mapping

from tuner.core.errors import Failure
from tuner.core.runs import StoredTrial, record_of
from tuner.output.formatting import knobs_text, speed_text, trial_time_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.content import varying_knobs
from tuner.output.report.element import Markup, element


def trial_list(
    shown: tuple[StoredTrial, ...],
    of: int,  # trials that finished
    kinds: Mapping[int, str],  # trial -> place of its kind of failure
) -> Markup:
    """Lists finished trials, folded away until one is pointed at."""
    knobs = varying_knobs(shown)
    strategies = {record_of(trial).candidate.strategy for trial in shown}
    rows = (_row(trial, tuple(knobs), len(strategies) > 1, kinds) for trial in shown)
    heads = ("trial", "speed", "time", "knobs that differ")
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in heads)))
    words = (
        f"All {of} trials" if len(shown) == of else f"{len(shown)} of {of} trials, the fastest and a sample"
    )
    return element(
        "details",
        element("summary", words),
        element("div", element("table", head, element("tbody", *rows), class_="trials"), class_="wide"),
    )


def _row(
    trial: StoredTrial, knobs: tuple[str, ...], names_strategy: bool, kinds: Mapping[int, str]
) -> Markup:
    record = record_of(trial)
    choices = knobs_text([pair for pair in record.candidate.choices if pair[0] in knobs])
    words = f"{record.candidate.strategy} {choices}" if names_strategy else choices
    cells = element("td", words)
    name = element("th", str(trial.id), scope="row")
    if isinstance(record.outcome, Failure):
        return element("tr", name, _failed(trial.id, record.outcome, kinds), cells, id=f"t{trial.id}")
    if trial.best_s is None:
        return element("tr", name, element("td", "verified", colspan=2.0), cells, id=f"t{trial.id}")
    is_cut = trial.early_stopped is not None
    speed = element("td", speed_text(None if is_cut else gflop_per_s(record.problem, trial.best_s)))
    return element("tr", name, speed, element("td", trial_time_text(trial)), cells, id=f"t{trial.id}")


def _failed(trial: int, failure: Failure, kinds: Mapping[int, str]) -> Markup:
    words = f"failed: {failure.stage.value}"
    place = kinds.get(trial)
    return element("td", words if place is None else element("a", words, href=f"#{place}"), colspan=2.0)
