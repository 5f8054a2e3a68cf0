"""The best script that stock ``mlir-opt`` runs, and its slowdown against a given trial."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.analysis.run_comparison import between_trials
from tuner.analysis.selected_result import SelectedResult
from tuner.core.errors import UsageError
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.run_history.best_known import is_measured_there
from tuner.run_history.best_trials import best_results, group_of
from tuner.scripts.portability import custom_ops

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True)
class BestStock:
    """The best trial whose script has no transform op of tuner, compared with a given trial.

    Stock ``mlir-opt`` can run such a script. The best is chosen by stored times; nothing is timed.
    """

    trial: StoredTrial
    winner: StoredTrial  # the given trial; equal to ``trial`` where its script is portable itself
    compared: Comparable | NotComparable  # ``trial`` with ``winner``


def best_stock(store: "Store", winner: StoredTrial) -> BestStock:
    """Returns the best trial of ``winner``'s group of which stock ``mlir-opt`` can run the script.

    A group is a problem, machine, target and number of threads. The trial is ``winner`` itself where its
    script has no transform op of tuner. The result also has the ratio of both times, or the reason why no
    ratio may be printed. Raises UsageError where no such script was timed, and for a winner that was not
    timed.
    """
    if winner.best_s is None or not is_measured_there(group_of(winner)):
        raise UsageError(f"--stock: trial {winner.id} was not timed")
    trial = winner if not custom_ops(winner.script_text) else _selected(store, winner).best
    return BestStock(trial, winner, between_trials(store.run(winner.run), trial, winner))


def _selected(store: "Store", winner: StoredTrial) -> SelectedResult:
    record, group = winner.record, group_of(winner)
    query = TrialQuery.measured(record.problem, record.target, winner.machine, winner.threads)
    found = best_results(store, query, group.__eq__, lambda trial: not custom_ops(trial.script_text))
    if group not in found:
        trials = store.trials(query)
        ops = ", ".join(sorted({op for trial in trials for op in custom_ops(trial.script_text)}))
        raise UsageError(
            f"--stock: {record.problem.key}: all {len(trials)} timed scripts call custom ops ({ops})",
            "more trials, or another --strategy, may time one without",
        )
    return found[group].selected
