"""Which ratios of a run's stored times may be printed, by the stored quality of its timing round."""

from tuner.analysis.comparison import Comparable, NotComparable, comparison
from tuner.analysis.selected_result import timed
from tuner.core.round_quality import Evidence, objection
from tuner.core.runs import Run, StoredTrial


def against_baseline(run: Run, trial: StoredTrial) -> Comparable | NotComparable | None:
    """Returns the ratio of a trial's time to the time of its run's baseline, or why no ratio may be printed.

    None where the run has no baseline. Raises ValueError for a trial that was not timed.
    """
    if run.baseline is None:
        return None
    is_interleaved = trial.final is not None and run.baseline.is_interleaved
    evidence = Evidence(is_interleaved, run.noise, run.unreliable)
    return comparison(timed(trial), run.baseline.measurement, evidence)


def between_trials(run: Run, ours: StoredTrial, reference: StoredTrial) -> Comparable | NotComparable:
    """Returns the ratio ``ours`` / ``reference`` of two trials' times, or why no ratio may be printed.

    ``run`` is the run of ``ours``. There is a ratio only if its final re-measurement timed both trials.
    Raises ValueError for a trial that was not timed.
    """
    return comparison(timed(ours), timed(reference), _evidence(run, ours, reference))


def distrust(run: Run, trial: StoredTrial) -> str:
    """Returns why no ratio of this trial's time to any other may be printed; '' if a ratio may be printed.

    ``run`` is the run of the trial. Raises ValueError for a trial that was not timed.
    """
    return objection((timed(trial),), _evidence(run, trial))


def _evidence(run: Run, *trials: StoredTrial) -> Evidence:
    """Returns how trials were timed: final times of one run are all of the same timing round."""
    is_interleaved = all(trial.final is not None and trial.run == run.id for trial in trials)
    return Evidence(is_interleaved, run.noise, run.unreliable)
