"""Differences between the trials of two runs that should be equal."""

from dataclasses import dataclass

from tuner.core.trials import StoredTrial


@dataclass(frozen=True)
class Difference:
    """A property of a trial that differs between two runs, with the value in each run as text."""

    number: int  # of the trial
    what: str
    first: str
    second: str

    @property
    def text(self) -> str:
        """Returns the difference as one line: the trial's number, the property, and its value in each run."""
        return f"trial {self.number}: {self.what}: {self.first} in the first run, {self.second} in the second"


def differences(first: tuple[StoredTrial, ...], second: tuple[StoredTrial, ...]) -> tuple[Difference, ...]:
    """Returns the differences between the trials of two runs, matched by number: at most one per trial.

    It is the first unequal property; a trial that only one run has is a difference, too.
    """
    all_ours = _run_facts(first)
    all_theirs = _run_facts(second)
    unequal = []
    for number in sorted({*all_ours, *all_theirs}):
        ours = all_ours.get(number, {})
        theirs = all_theirs.get(number, {})
        name = next((fact for fact in {**ours, **theirs} if ours.get(fact) != theirs.get(fact)), None)
        if name is not None:
            unequal.append(Difference(number, name, str(ours.get(name)), str(theirs.get(name))))
    return tuple(unequal)


def _run_facts(trials: tuple[StoredTrial, ...]) -> dict[int, dict[str, object]]:
    """Returns, by trial number, the properties that do not depend on interruptions of a run."""
    numbers = {trial.id: trial.number for trial in trials}
    facts: dict[int, dict[str, object]] = {}
    for trial in trials:
        record = trial.record
        origin = trial.record.reused_from
        facts[trial.number] = {
            "row": trial.row,
            "outcome": record.outcome,
            "knobs": record.candidate.text,
            "verdict": record.verdict,
            "script": record.script_sha256,
            "code": record.artifact_sha256,
            "reused from": origin and numbers.get(origin, f"trial {origin} of another run"),
            "final": trial.final,
        }
    return facts
