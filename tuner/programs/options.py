"""How a program is compiled and run: one value, from the command line to the process that runs it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.programs.lower.device_options import DEFAULTS, DeviceOptions
from tuner.programs.support import kinds_with, program_support
from tuner.runtime.cpu.program_team import checked_threads
from tuner.simulator.device.lazy_streams import ORDERS
from tuner.tuning.composition import Composition
from tuner.tuning.target_kind import ProgramSupport


@dataclass(frozen=True)
class ProgramOptions:
    """Options of compiling and running a program, with the defaults of command line and Python API."""

    device: DeviceOptions = DEFAULTS
    order: str = ORDERS[0]  # in which the simulator runs work that is ready
    seed: int = 0  # of random arguments, and of a random order
    trace: bool = False
    sample: int = 0  # approximate number of blocks per launch that the simulator runs; 0: all
    threads: int = 1  # of a program of groups on the host

    def __post_init__(self) -> None:
        """Raises UsageError for a value that is not allowed."""
        if self.order not in ORDERS:
            raise UsageError(f"order: found {self.order!r}, allowed {', '.join(ORDERS)}")
        if self.seed < 0:
            raise UsageError(f"seed: found {self.seed}, allowed 0 or more")
        if self.sample < 0:
            raise UsageError(f"sample: found {self.sample}, allowed 1 or more, or 0 for all")
        checked_threads(self.threads)

    def require_suiting(self, target: TargetName, composition: Composition) -> None:
        """Raises UsageError for an option that differs from its default and that the target does not support.

        Also raises UsageError for a target that cannot run whole programs.
        """
        support = program_support(target, composition)
        for name, found, is_met in self._changed():
            if not is_met(support):
                allowed = kinds_with(is_met, composition)
                option = name if found is True else f"{name} {found}"
                raise UsageError(f"{option} cannot be combined with target {target}, only with {allowed}")

    def _changed(self) -> Iterator[tuple[str, object, Callable[[ProgramSupport], bool]]]:
        """Yields the name, value and target requirement of each option that differs from its default."""
        for field in fields(DeviceOptions):
            found = getattr(self.device, field.name)
            if found != getattr(DEFAULTS, field.name):
                yield field.name, found, lambda programs: programs.has_device
        if self.trace:
            yield "trace", self.trace, lambda programs: programs.has_device
        if self.order != ORDERS[0]:
            yield "order", self.order, lambda programs: programs.is_simulated
        if self.sample:
            yield "sample", self.sample, lambda programs: programs.is_simulated
        if self.threads != 1:
            yield "threads", self.threads, lambda programs: not programs.has_device


PROGRAM_DEFAULTS = ProgramOptions()
