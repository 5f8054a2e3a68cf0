"""What users may say of how a program is compiled and run, and which targets it says something to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.programs.lower.device_options import DEFAULTS, DeviceOptions
from tuner.programs.request import ORDERS
from tuner.programs.support import kinds_with, program_support
from tuner.tuning.target_kind import ProgramSupport


@dataclass(frozen=True)
class ProgramWords:
    """Words with their defaults, the same on the command line and in the Python API."""

    options: DeviceOptions = DEFAULTS
    order: str = ORDERS[0]  # of work that is ready
    seed: int = 0  # of random arguments, and of a random order
    trace: bool = False
    sample: int = 0  # blocks of a launch that are simulated, about; 0: all

    def __post_init__(self) -> None:
        """Raises UsageError for a word that is not known."""
        if self.order not in ORDERS:
            raise UsageError(f"order: found {self.order!r}, allowed {', '.join(ORDERS)}")
        if self.seed < 0:
            raise UsageError(f"seed: found {self.seed}, allowed 0 or more")
        if self.sample < 0:
            raise UsageError(f"sample: found {self.sample}, allowed 1 or more, or 0 for all")

    def require_suiting(self, target: TargetName) -> None:
        """Raises UsageError for a word that says nothing to the target, or a target that runs no programs."""
        support = program_support(target)
        for name, found, is_met in self._wishes():
            if not is_met(support):
                raise UsageError(
                    f"{name}: found {found!r} for target {target}, allowed for {kinds_with(is_met)}"
                )

    def _wishes(self) -> Iterator[tuple[str, object, Callable[[ProgramSupport], bool]]]:
        """Yields the words that are no defaults, each with what programs of a target must have for it."""
        for field in fields(DeviceOptions):
            found = getattr(self.options, field.name)
            if found != getattr(DEFAULTS, field.name):
                yield field.name, found, lambda programs: programs.has_device
        if self.trace:
            yield "trace", self.trace, lambda programs: programs.has_device
        if self.order != ORDERS[0]:
            yield "order", self.order, lambda programs: programs.is_simulated
        if self.sample:
            yield "sample", self.sample, lambda programs: programs.is_simulated
