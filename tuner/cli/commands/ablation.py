"""`tuner show run:N --ablation`."""

from typing import TYPE_CHECKING

from tuner.analysis.ablation import TooFew, ablate
from tuner.cli.options import print_json
from tuner.cli.output.ablation import ablation_document, ablation_lines
from tuner.cli.screen import screen_columns
from tuner.core.errors import TunerError
from tuner.core.runs import TrialQuery

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
        print("\n".join(ablation_lines(run, ablation, screen_columns())))
