"""Candidates whose timing was cut off: too coarse to recall as a result, enough not to try the code again."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.record import Measurement, Record
from tuner.core.runs import Run, TrialQuery

if TYPE_CHECKING:
    from tuner.db.store import Store


class Hopeless:
    """Records of hopeless candidates by the hash of their script and of their code."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, trial: int, record: Record) -> None:
        """Remembers the record of a trial if it was cut off."""
        if not isinstance(record.outcome, Measurement) or record.outcome.is_complete:
            return
        source = replace(record, reused_from=record.reused_from or trial)
        self._records |= {record.script_sha256: source, record.artifact_sha256: source}

    def find(self, sha256: str) -> Record | None:
        """Returns the record of a script or of code, with the trial that it is from."""
        return self._records.get(sha256)


def hopeless_before(store: "Store", run: Run) -> Hopeless:
    """Returns what earlier runs of the same problem by the same compiler found hopeless on such a machine."""
    settings, problem, known = run.settings, run.settings.problem, Hopeless()
    query = TrialQuery.of(
        problem,
        target=settings.target.text,
        machine=run.machine.name,
        threads=settings.threads,
        status="measured",
    )
    is_same: dict[int, bool] = {}
    for trial in store.trials(query):
        if trial.run not in is_same:
            is_same[trial.run] = store.run(trial.run).compiler == run.compiler
        if is_same[trial.run]:
            known.add(trial.id, trial.record)
    return known
