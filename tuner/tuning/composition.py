"""The replaceable parts of a run. The real parts import heavy modules only when they are called."""

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
    """A function that applies a transform script to a payload; returns the payload's new text.

    Raises TunerError where the script fails.
    """

    def __call__(self, script: str, payload: str, allows_effects: bool = False) -> str:
        """Returns the text of ``payload`` after the transform script ``script``; both are MLIR text.

        Passes that write files or start programs run only if ``allows_effects``. Raises TunerError.
        """
        ...


@dataclass(frozen=True)
class Recordings:
    """The functions that replay recorded search spaces in place of a machine: ``--target replay:FILE``."""

    status: TargetStatus  # of the target "replay", which never measures
    settings: Callable[[RunRequest, int], RunSettings]  # (request, workers); raises UsageError
    of_file: Callable[[Path], tuple[OutcomeSource, TargetName]]  # raises UsageError
    of_run: Callable[[RunSettings], OutcomeSource]  # of the run's recording; raises UsageError


@dataclass(frozen=True)
class Composition:
    """The replaceable parts of a run: target kinds, recordings, facts of this machine, the interpreter.

    Tests replace some of them by parts without compiler and clock.
    """

    kinds: Mapping[str, TargetKind]  # by name
    recordings: Recordings
    machine: Callable[[], Machine]  # this machine
    processors: Callable[[], Processors]  # that this process may use
    present_load: Callable[[], PresentLoad]  # of the usable processors, while nothing is timed
    load_average: Callable[[], float | None]  # of the last minute
    apply: Apply
    failing_op: Callable[[str, str], OpPlace | None]  # (script, payload); raises TunerError

    def kind(self, target: TargetName) -> TargetKind:
        """Returns the kind of a target, such as the kind ``cuda`` of ``cuda:sm_90``.

        Of a target whose detail is another machine's processor it is that kind's ``described``.
        Raises UsageError for a replay, which has no kind, and for an unknown kind.
        """
        kind = self.kinds.get(target.kind)
        if kind is None:
            raise UsageError(f"target {target.text!r}: not known here")
        return kind.described if kind.described is not None and target.detail else kind

    def outcomes(self, target: TargetName) -> OutcomeSource:
        """Returns the functions that compile, verify and time candidates for a target of a machine.

        Raises UsageError for a replay and for an unknown target.
        """
        return self.kind(target).outcomes

    def outcomes_of_run(self, settings: RunSettings) -> OutcomeSource:
        """Returns the functions that give a run its outcomes: of its target, or of its recording.

        Raises UsageError for an unknown target, for a baseline that its kind has no choice of, and for a file
        that is no recording.
        """
        if settings.target.has_machine:
            return self.kind(settings.target).outcomes_with(settings.baseline_library)
        return self.recordings.of_run(settings)

    def status(self, target: TargetName) -> TargetStatus:
        """Returns whether this machine can compile for a target and run on it, and why or why not.

        Raises UsageError for an unknown target.
        """
        return self.kind(target).status() if target.has_machine else self.recordings.status

    def targets(self) -> tuple[TargetStatus, ...]:
        """Returns the status on this machine of each target kind, then that of replays of recordings."""
        return (*(kind.status() for kind in self.kinds.values()), self.recordings.status)
