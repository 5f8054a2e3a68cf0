"""Outcomes that trials with an equal script or equal code reuse: of the database, and of the run itself.

``OutcomesByCode`` finds outcomes by hash. ``KnownOutcomes`` asks the run's own outcomes, the early-stopped
ones and the database; ``is_reusable`` says which outcomes may be reused at all.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.errors import Failure
from tuner.core.queries import ReuseKey, TrialQuery
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import Compiler, Run

if TYPE_CHECKING:
    from tuner.db.store import Store


class OutcomesByCode:
    """Finds records of trials by the hash of their script or of their code; the record added last wins."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, trial: int, record: Record, *, is_compiled_alike: bool = True) -> None:
        """Stores ``record`` by the hash of its code and, if ``is_compiled_alike``, by that of its script.

        ``is_compiled_alike``: today's compiler is the one that compiled the trial. Reuse refers to ``trial``,
        an id, or, if ``record`` is reused itself, to the trial that it came from.
        """
        # without the program, which the store has
        source = replace(record, reused_from=record.reused_from or trial, kernel_code=None)
        self._records[record.artifact_sha256] = source
        if is_compiled_alike:
            self._records[record.script_sha256] = source

    def find(self, sha256: str) -> Record | None:
        """Returns the record with this SHA-256 of its script or code; None if the hash is unknown or ""."""
        if sha256:
            return self._records.get(sha256)
        return None


class KnownOutcomes:
    """Outcomes that a trial with equal script or code reuses: of the database and of this run.

    A fresh run (``--fresh``) reuses only its own.
    """

    def __init__(self, store: "Store", run: Run) -> None:
        settings = run.settings
        self._store = store
        self._is_fresh = settings.fresh
        self._key = ReuseKey(
            settings.problem, settings.target, settings.threads, run.machine.name, run.compiler
        )
        if settings.fresh:
            self._early_stopped = OutcomesByCode()
        else:
            self._early_stopped = early_stopped_before(store, run)
        self._own = OutcomesByCode()  # of this run, for a fresh one: else the database has them

    def add(self, trial: int, record: Record) -> None:
        """Adds the outcome of a trial (id) of this run, if trials of equal code may reuse it.

        Left out are failures that may not repeat, candidates that were only compiled, and complete outcomes
        that were reused themselves.
        """
        if is_early_stopped(record):
            self._early_stopped.add(trial, record)
        elif is_reusable(record) and record.reused_from is None:
            self._own.add(trial, record)

    def recall(self, script_sha256: str, artifact_sha256: str) -> Record | None:
        """Returns the known outcome with this script hash; if the script hash is "", with this code hash.

        None if unknown. ``reused_from`` of the result is the trial that was compiled and run.
        """
        either = script_sha256 or artifact_sha256
        early_stopped = self._early_stopped.find(either)
        # a complete time precedes
        if self._is_fresh:
            return self._own.find(either) or early_stopped
        known = self._store.recall(self._key, script_sha256 or None, artifact_sha256 or None)
        if known is None:
            return early_stopped
        return replace(known.record, reused_from=known.record.reused_from or known.id)


def early_stopped_before(store: "Store", run: Run) -> OutcomesByCode:
    """Returns stored early-stopped outcomes of the same problem, target, threads, machine and tools."""
    settings = run.settings
    outcomes = OutcomesByCode()
    query = TrialQuery.measured(settings.problem, settings.target, run.machine, settings.threads)
    compilers: dict[int, Compiler] = {}
    for trial in store.trials(query):
        if trial.early_stopped is None or trial.stale:
            continue
        if trial.run not in compilers:
            compilers[trial.run] = store.run(trial.run).compiler
        compiler = compilers[trial.run]
        if compiler.tools == run.compiler.tools:
            outcomes.add(trial.id, trial.record, is_compiled_alike=compiler == run.compiler)
    return outcomes


def is_early_stopped(record: Record) -> bool:
    """Returns True for an early-stopped timing, which only shows that the code is too slow."""
    return isinstance(record.outcome, Measurement) and not record.outcome.is_complete


def is_reusable(record: Record) -> bool:
    """Returns whether equal code may reuse this outcome: verified, timed, or sure to fail again."""
    if isinstance(record.outcome, Verdict):
        return record.outcome.elements > 0
    if isinstance(record.outcome, Failure):
        return record.outcome.would_repeat
    return not is_early_stopped(record)
