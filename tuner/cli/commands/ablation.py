"""`tuner show run:N --ablation`."""

from typing import TYPE_CHECKING

from tuner.analysis.ablation import TooFew, ablate
from tuner.analysis.run_comparison import distrust
from tuner.cli.options import print_json
from tuner.cli.screen import screen_columns
from tuner.core.errors import TunerError
from tuner.core.runs import TrialQuery
from tuner.output.ablation import ablation_document, ablation_lines
from tuner.tuning.tuned_run import tuned_run

if TYPE_CHECKING:
    from tuner.db.store import Store


def show_ablation(store: "Store", run_id: int, as_json: bool) -> None:
    """Prints the ablation of a run. Raises TunerError where too few trials tell nothing."""
    run = store.run(run_id)
    ablation = ablate(store.trials(TrialQuery(run=run_id, sort="number")))
    if isinstance(ablation, TooFew) and len(ablation.strategies) < 2:
        raise TunerError(f"run {run_id}: {ablation.reason}")
    if as_json:
        print_json(ablation_document(run, ablation))
    else:
        best = tuned_run(store, run_id).best
        distrusted = "" if best is None else distrust(run, best)
        print("\n".join(ablation_lines(run, ablation, distrusted, screen_columns())))
