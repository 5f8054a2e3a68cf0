"""The differences between two runs with the same settings, trial by trial, apart from clocks and IDs."""

from collections.abc import Iterator
from dataclasses import dataclass

from tuner.core.runs import StoredTrial


@dataclass(frozen=True)
class Difference:
    """One property of one trial that differs between two runs, with both values as text."""

    number: int  # of the trial
    what: str
    first: str
    second: str

    @property
    def text(self) -> str:
        """Returns the difference as one line: the trial's number, the property, and its value in each run."""
        return f"trial {self.number}: {self.what}: {self.first} in the first run, {self.second} in the second"


def differences(first: tuple[StoredTrial, ...], second: tuple[StoredTrial, ...]) -> tuple[Difference, ...]:
    """Returns the differences between two runs' trials, matched by number: at most one per trial.

    That is the first unequal property of proposal, outcome, knobs, verdict, script, code, origin and final
    time. A trial that only one run has differs, too.
    """
    ours, theirs = _facts(first), _facts(second)
    return tuple(
        Difference(number, name, a, b)
        for number in sorted({*ours, *theirs})
        for name, a, b in list(_unequal(ours.get(number, {}), theirs.get(number, {})))[:1]
    )


def _unequal(first: dict[str, object], second: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    for name in {**first, **second}:
        a, b = first.get(name), second.get(name)
        if a != b:
            yield name, str(a), str(b)


def _facts(trials: tuple[StoredTrial, ...]) -> dict[int, dict[str, object]]:
    """Returns, by trial number, the properties that do not depend on interruptions of a run."""
    numbers = {trial.id: trial.number for trial in trials}
    return {trial.number: dict(_facts_of(trial, numbers)) for trial in trials}


def _facts_of(trial: StoredTrial, numbers: dict[int, int]) -> Iterator[tuple[str, object]]:
    yield "row", trial.row
    record = trial.record
    yield "outcome", record.outcome
    yield "knobs", record.candidate.text
    yield "verdict", record.verdict
    yield "script", record.script_sha256
    yield "code", record.artifact_sha256
    origin = record.reused_from
    yield "reused from", origin if origin is None else numbers.get(origin, f"trial {origin} of another run")
    yield "final", trial.final
