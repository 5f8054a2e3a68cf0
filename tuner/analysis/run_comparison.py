"""Which ratios of a run's stored times may be printed, by what is stored with its round of timing."""

from tuner.analysis.comparison import Comparable, Evidence, NotComparable, comparison, objection
from tuner.analysis.selected_result import timed
from tuner.core.runs import Run, StoredTrial


def against_baseline(run: Run, trial: StoredTrial) -> Comparable | NotComparable | None:
    """Returns the time of a run's trial over the baseline's, or why no ratio may be printed.

    None where the run has no baseline.
    """
    if run.baseline is None:
        return None
    is_interleaved = trial.final is not None and run.baseline.is_interleaved
    evidence = Evidence(is_interleaved, run.noise, run.unreliable)
    return comparison(timed(trial), run.baseline.measurement, evidence)


def between_trials(run: Run, ours: StoredTrial, reference: StoredTrial) -> Comparable | NotComparable:
    """Returns the time of a trial over another's, or why no ratio may be printed; ``run`` is that of ours."""
    return comparison(timed(ours), timed(reference), _evidence(run, ours, reference))


def distrust(run: Run, trial: StoredTrial) -> str:
    """Returns why no ratio with the time of a run's trial may be printed, whatever to; '' where one may."""
    return objection((timed(trial),), _evidence(run, trial))


def _evidence(run: Run, *trials: StoredTrial) -> Evidence:
    """Returns how trials were timed: final times of one run are all of the round that its run answers by."""
    is_interleaved = all(trial.final is not None and trial.run == run.id for trial in trials)
    return Evidence(is_interleaved, run.noise, run.unreliable)
