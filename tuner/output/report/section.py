"""The content of a report's section about one run."""

from dataclasses import dataclass

from tuner.analysis.ablation import Ablation, TooFew, ablate
from tuner.analysis.run_comparison import distrust
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.runs import Counts, Run
from tuner.output.report.badge import Badge, badge_of
from tuner.output.report.content import ReportedRun, shown_trials, varying_knobs
from tuner.output.report.convergence import Convergence, convergence_of
from tuner.output.report.failures import FailureKind, failure_kinds
from tuner.output.report.heat_map import HeatMap, heat_map_of
from tuner.output.report.parallel import Parallel, parallel_of
from tuner.output.report.roofline import RooflinePlot, roofline_of
from tuner.output.report.trials import ListedTrial, trial_rows


@dataclass(frozen=True)
class Section:
    """The section of a report about one run: result, reliability, listed trials and the data of the plots."""

    run: Run
    counts: Counts
    selected: SelectedResult | None  # None: no trial was timed
    trust: Badge
    is_trusted: bool  # whether ratios of the run's times may be printed
    convergence: Convergence | None
    ablation: Ablation | TooFew
    heat_map: HeatMap | None
    parallel: Parallel | None
    failures: tuple[FailureKind, ...]
    trials: tuple[ListedTrial, ...]
    finished: int  # number of finished trials; ``trials`` may list fewer
    roofline: RooflinePlot | None

    @property
    def listed(self) -> frozenset[int]:
        """Returns the ids of the trials that the page lists."""
        return frozenset(row.trial for row in self.trials)


def section_of(reported: ReportedRun, runs: int) -> Section:
    """Returns the section of one run on a report's page that shows ``runs`` runs in all."""
    run, trials, shown = reported.run, reported.trials, shown_trials(reported, runs)
    selected, ablation, kinds = (
        select_result(trials, run.noise),
        ablate(trials),
        failure_kinds(run.id, trials),
    )
    best = None if selected is None else selected.best
    return Section(
        run=run,
        counts=reported.counts,
        selected=selected,
        trust=badge_of(run, best),
        is_trusted=best is not None and not distrust(run, best),
        convergence=convergence_of(run, trials),
        ablation=ablation,
        heat_map=_heat_map(reported, ablation) if isinstance(ablation, Ablation) else None,
        parallel=parallel_of(shown),
        failures=kinds,
        trials=trial_rows(shown, {trial: kind.place for kind in kinds for trial in kind.trials}),
        finished=len(trials),
        roofline=None if run.roofline is None or best is None else roofline_of(run, run.roofline, best),
    )


def _heat_map(reported: ReportedRun, ablation: Ablation) -> HeatMap | None:
    own = tuple(
        trial
        for trial in reported.trials
        if trial.best_s is not None and trial.record.candidate.strategy == ablation.strategy
    )
    shares = {each.knob: each.importance for each in ablation.knobs}
    return heat_map_of(own, varying_knobs(own), shares)
