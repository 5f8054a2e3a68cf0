"""Expected improvement by a forest of random trees, which has no distances and so represents cliffs."""

import numpy as np

from tuner.samplers.expected_improvement import log_expected_improvement
from tuner.samplers.forest import grow
from tuner.samplers.initial_rows import is_starting, start_row
from tuner.samplers.method import AbstractMethod
from tuner.samplers.outcome_scaling import rows_to_model, standardized

MODELLED_LIMIT = 2000  # observed rows from which trees are grown


class Trees(AbstractMethod):
    """Chooses the configuration with the largest expected improvement under a forest of random trees.

    Pending configurations and failures count as slow.
    """

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of the unproposed configuration with the largest expected improvement.

        At the start of a run, before models can be fitted, returns that of ``start_row``; of a large set only
        a random sample is compared (``SearchTask.scope``).
        """
        task = self.task
        if is_starting(task):
            return start_row(task, rng)
        rows = rows_to_model(task.pool, len(task.pool.order), MODELLED_LIMIT)
        values = standardized(task.pool, rows)
        forest = grow(task.table.part(np.array(rows)), values, rng)
        scope = task.scope(rng)
        mean, deviation = forest.predict(scope.table)
        return task.best_unseen(scope, log_expected_improvement(mean, deviation, float(values.min())), rng)
