"""The order in which a GPU should time the trials of a run that was compiled, or verified, without one."""

from typing import TYPE_CHECKING, final

from tuner.core.queries import TrialQuery
from tuner.search.cost_model.untimed import deciding_facts, predicted_first
from tuner.targets.target import UntimedOrder

if TYPE_CHECKING:
    from tuner.core.compiled_code import Predict
    from tuner.core.remote_results import PendingTrial
    from tuner.db.store import Store


@final
class GpuOrder(UntimedOrder):
    """Ranks trials by facts about their code, and by predicted cycles where there are any."""

    def promising(
        self, store: "Store", run: int, predict: "Predict", limit: int
    ) -> "tuple[PendingTrial, ...]":
        from tuner.db.pending_trials import pending_trials  # loads SQLAlchemy

        return predicted_first(pending_trials(store.database, TrialQuery(run=run)), predict, limit)

    def facts(self, trial: "PendingTrial") -> str:
        return deciding_facts(trial)
