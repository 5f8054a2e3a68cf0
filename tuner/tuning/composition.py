"""What a run is made of beside its target: the real ones import what is heavy when they are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.processors import PresentLoad, Processors
from tuner.core.runs import RunSettings
from tuner.core.target_name import TargetName
from tuner.mlir.op_place import OpPlace
from tuner.tuning.target_kind import TargetKind, TargetStatus


class Apply(Protocol):
    """Returns a payload after a script. Raises TunerError."""

    def __call__(self, script: str, payload: str, allows_effects: bool = False) -> str:
        """Runs passes that write files or start programs only where ``allows_effects``."""
        ...


@dataclass(frozen=True)
class Composition:
    """The parts that tests replace by ones without compiler and clock."""

    kinds: Mapping[str, TargetKind]  # by name
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

    def kind_of_run(self, settings: RunSettings) -> TargetKind:
        """Returns the kind of a run's target, with all that its settings say. Raises UsageError."""
        kind = self.kind(settings.target)
        return kind if kind.of_run is None else kind.of_run(settings)

    def targets(self) -> tuple[TargetStatus, ...]:
        """Returns what can be done here for each kind."""
        return tuple(kind.status() for kind in self.kinds.values())
