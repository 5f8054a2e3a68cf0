"""What a run is made of beside its target: the real ones import what is heavy when they are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.processors import PresentLoad, Processors
from tuner.core.runs import RunSettings
from tuner.core.target_name import TargetName
from tuner.mlir.op_place import OpPlace
from tuner.tuning.outcome_source import OutcomeSource
from tuner.tuning.run_request import RunRequest
from tuner.tuning.target_kind import TargetKind, TargetStatus


class Apply(Protocol):
    """Returns a payload after a script. Raises TunerError."""

    def __call__(self, script: str, payload: str, allows_effects: bool = False) -> str:
        """Runs passes that write files or start programs only where ``allows_effects``."""
        ...


@dataclass(frozen=True)
class Recordings:
    """Files that give outcomes in place of a machine: ``--target replay:FILE``."""

    status: TargetStatus  # of the word: a target that never measures here
    settings: Callable[[RunRequest, int], RunSettings]  # (request, workers); raises UsageError
    of_file: Callable[[Path], tuple[OutcomeSource, TargetName]]  # raises UsageError
    of_run: Callable[[RunSettings], OutcomeSource]  # of the file that a run was begun with; raises UsageError


@dataclass(frozen=True)
class Composition:
    """The parts that tests replace by ones without compiler and clock."""

    kinds: Mapping[str, TargetKind]  # by name
    recordings: Recordings
    machine: Callable[[], Machine]  # this one
    processors: Callable[[], Processors]  # that this process may use
    present_load: Callable[[], PresentLoad]  # of them, while nothing is timed
    load_average: Callable[[], float | None]  # of the last minute
    apply: Apply
    failing_op: Callable[[str, str], OpPlace | None]  # (script, payload); raises TunerError

    def kind(self, target: TargetName) -> TargetKind:
        """Returns the kind of a target. Raises UsageError for one that is not known."""
        kind = self.kinds.get(target.kind)
        if kind is None:
            raise UsageError(f"target {target.text!r}: not known here")
        return kind

    def outcomes(self, target: TargetName) -> OutcomeSource:
        """Returns what measures for a target. Raises UsageError for one without a machine that is known."""
        return self.kind(target).outcomes

    def outcomes_of_run(self, settings: RunSettings) -> OutcomeSource:
        """Returns what a run's outcomes come from: a machine, or the recording. Raises UsageError."""
        if settings.target.has_machine:
            return self.outcomes(settings.target)
        return self.recordings.of_run(settings)

    def status(self, target: TargetName) -> TargetStatus:
        """Returns what can be done here for a target. Raises UsageError for one that is not known."""
        return self.kind(target).status() if target.has_machine else self.recordings.status

    def targets(self) -> tuple[TargetStatus, ...]:
        """Returns what can be done here for each kind, and for recordings."""
        return (*(kind.status() for kind in self.kinds.values()), self.recordings.status)
