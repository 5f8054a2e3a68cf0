"""A report's section about one run: failures, list of trials, and plots."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.analysis.importance import Ablation, TooFew, ablate
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.errors import Failure, Stage
from tuner.core.queries import Counts
from tuner.core.runs import Run
from tuner.core.serialization import count_text
from tuner.core.trials import StoredTrial, alike_failures
from tuner.results.output.formatting import gflop_per_s, knobs_text, speed_text, trial_time_text
from tuner.results.report.content import (
    Bar,
    ReportedRun,
    ShownReliability,
    reliability_of,
    shown_trials,
    varying_knobs,
)
from tuner.results.report.roofline_plot import RooflinePlot, roofline_of
from tuner.results.report.run_plots import Convergence, convergence_of

KINDS_SHOWN = 12  # kinds of failure of a run, the most frequent
LINKS_SHOWN = 60  # trials linked per kind of failure


@dataclass(frozen=True)
class FailureKind:
    """The trials of a run that failed at one stage for reasons that differ only in numbers."""

    element_id: str  # id of the HTML element; "" if the page does not show this kind
    stage: Stage
    reason: str  # of the first failure of this kind
    trials: tuple[int, ...]  # ids, by number

    def linked(self, listed: frozenset[int]) -> tuple[int, ...]:
        """Returns the ids of at most 60 failed trials to link to, by number; ``listed``: ids on the page."""
        return tuple(trial for trial in self.trials if trial in listed)[:LINKS_SHOWN]


def failure_kinds(run: int, trials: tuple[StoredTrial, ...]) -> tuple[FailureKind, ...]:
    """Returns a run's failed trials by stage and reason without numbers, the most frequent group first."""
    kinds = []
    for index, alike in enumerate(alike_failures(trials)):
        element = f"failure-{run}-{index}" if index < KINDS_SHOWN else ""
        kinds.append(FailureKind(element, alike.failure.stage, alike.failure.reason, alike.trials))
    return tuple(kinds)


def stage_bars(kinds: tuple[FailureKind, ...]) -> tuple[Bar, ...]:
    """Returns a bar per stage at which trials failed, in order; a bar's length is the number of trials."""
    counts = {stage: sum(len(kind.trials) for kind in kinds if kind.stage is stage) for stage in Stage}
    most = max(counts.values())
    return tuple(
        Bar(stage.value, count / most, count_text(count, "trial"), "failed")
        for stage, count in counts.items()
        if count
    )


@dataclass(frozen=True)
class ListedTrial:
    """A trial in the list of a report: id, outcome, varying knobs, and a link to failures like it."""

    trial: int  # id
    outcome: tuple[str, ...]  # speed, time and reliability, or one text over these columns
    choices: str  # the strategy, if several are listed, and the knobs that vary
    link: str = ""  # id of the element of its kind of failure; "" if the page does not show one


def trial_rows(shown: tuple[StoredTrial, ...], kinds: Mapping[int, str]) -> tuple[ListedTrial, ...]:
    """Returns the list of trials on a page; ``kinds``: trial id -> HTML id of the failures like it."""
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


@dataclass(frozen=True)
class Section:
    """The section of a report about one run: result, reliability, listed trials and the data of the plots."""

    run: Run
    counts: Counts
    selected: SelectedResult | None  # None: no trial was timed
    trust: ShownReliability
    is_trusted: bool  # whether ratios of the run's times may be printed
    convergence: Convergence | None
    ablation: Ablation | TooFew
    failures: tuple[FailureKind, ...]
    trials: tuple[ListedTrial, ...]
    finished: int  # number of finished trials; ``trials`` may list fewer
    roofline: RooflinePlot | None

    @property
    def listed(self) -> frozenset[int]:
        return frozenset(row.trial for row in self.trials)


def section_of(reported: ReportedRun, runs: int) -> Section:
    """Returns the section of one run on a report's page that shows ``runs`` runs in all."""
    run = reported.run
    trials = reported.trials
    shown = shown_trials(reported, runs)
    selected = select_result(trials, run.noise)
    kinds = failure_kinds(run.id, trials)
    best = None if selected is None else selected.best
    return Section(
        run=run,
        counts=reported.counts,
        selected=selected,
        trust=reliability_of(run, best),
        is_trusted=best is not None and best.reliability.is_reliable,
        convergence=convergence_of(run, trials),
        ablation=ablate(trials),
        failures=kinds,
        trials=trial_rows(shown, {trial: kind.element_id for kind in kinds for trial in kind.trials}),
        finished=len(trials),
        roofline=None if run.roofline is None or best is None else roofline_of(run, run.roofline, best),
    )
