"""The request for one run of a program, with its options, and which options a target has.

A ``ProgramRequest`` goes to a child process, which returns a ``ProgramReport``. Loads no MLIR.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Final

from tuner.core.candidate import TargetName
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import DEFAULTS, DeviceOptions
from tuner.core.dtypes import IEEE, MATH, TILE_DTYPES
from tuner.core.dynamic_sizes import SizeRange
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.core.programs import KnownSchedules
from tuner.runtime.cpu.host import LIMIT_VARIABLE
from tuner.runtime.cpu.team_threads import checked_threads
from tuner.targets.backends import Backends
from tuner.targets.target import ProgramSupport

# Keys of MATH: what a CPU multiplies by tiles is for single operations only, on GPUs too
PROGRAM_MODES: Final = tuple(math for math, dtype in MATH.items() if dtype not in TILE_DTYPES)


def targets_with(is_there: Callable[[ProgramSupport], bool], backends: Backends) -> str:
    """Returns the names of the targets whose support of programs fulfils ``is_there``: "cuda, simulator"."""
    targets = backends.targets.values()
    return ", ".join(target.name for target in targets if target.programs and is_there(target.programs))


def program_support(target: TargetName, backends: Backends) -> ProgramSupport:
    """Returns how a target runs programs.

    Raises UsageError for a target that is unknown or that runs only single operations.
    """
    known = backends.targets.get(target.kind) and backends.target(target)
    if known is None or known.programs is None:
        allowed = targets_with(lambda _programs: True, backends)
        hint = ""
        if known is not None and known.is_timed():
            hint = f"{LIMIT_VARIABLE}={target.detail} in the environment limits programs, too"
        raise UsageError(f"target: found {target.text}, allowed for programs: {allowed}", hint)
    return known.programs


@dataclass(frozen=True)
class ProgramOptions:
    """Options of compiling and running a program, with the defaults of command line and Python API.

    Raises UsageError for a value that is not allowed.
    """

    device: DeviceOptions = DEFAULTS
    order: str = STREAM_ORDERS[0]  # in which the simulator runs work that is ready
    seed: int = 0  # of random arguments, and of a random order
    trace: bool = False
    sample: int = 0  # approximate number of blocks per launch that the simulator runs; 0: all
    threads: int = 1  # of a program of fusions on the host
    math: str = IEEE  # how matmuls of f32 multiply, one of PROGRAM_MODES

    def __post_init__(self) -> None:
        if self.order not in STREAM_ORDERS:
            raise UsageError(f"order: found {self.order!r}, allowed {', '.join(STREAM_ORDERS)}")
        if self.seed < 0:
            raise UsageError(f"seed: found {self.seed}, allowed 0 or more")
        if self.sample < 0:
            raise UsageError(f"sample: found {self.sample}, allowed 1 or more, or 0 for all")
        if self.math not in PROGRAM_MODES:
            raise UsageError(f"math: found {self.math!r}, allowed for programs {', '.join(PROGRAM_MODES)}")
        checked_threads(self.threads)

    def require_suiting(self, target: TargetName, backends: Backends) -> None:
        """Raises UsageError for an option that ``target`` does not have and that is not at its default."""
        support = program_support(target, backends)
        of_device = {field.name: _on_device for field in fields(DeviceOptions)}
        pairs = ((self.device, DEFAULTS, of_device), (self, PROGRAM_DEFAULTS, NEEDS))
        for options, defaults, needs in pairs:
            for name, is_met in needs.items():
                value = getattr(options, name)
                if value != getattr(defaults, name) and not is_met(support):
                    allowed = targets_with(is_met, backends)
                    option = name if value is True else f"{name} {value}"
                    raise UsageError(f"{option} cannot be combined with target {target}, only with {allowed}")


def _on_device(programs: ProgramSupport) -> bool:
    return programs.has_device


# Options of ``ProgramOptions`` -> which targets support a value that is not the default.
NEEDS: dict[str, Callable[[ProgramSupport], bool]] = {
    "trace": _on_device,
    "math": _on_device,
    "order": lambda programs: programs.is_simulated,
    "sample": lambda programs: programs.is_simulated,
    "threads": lambda programs: not programs.has_device,
}
PROGRAM_DEFAULTS = ProgramOptions()


@dataclass(frozen=True)
class ProgramRequest:
    """What to compile and run: a program, its target, options, scripts and arguments."""

    text: str  # the payload
    written: str = field(default="", kw_only=True)  # before a schedule in its file; "": as ``text``
    target: TargetName
    entry: str | None = None  # None: main, or the only public function
    options: ProgramOptions = PROGRAM_DEFAULTS
    # A problem without a script gets the default script; None: no scripts, all matmuls become loops.
    scripts: tuple[tuple[Problem, str], ...] | None = ()
    arguments: tuple[str, ...] = ()  # "2=7", "0=[8,4]zeros"; an argument that is not listed is random
    # results are compared with the payload as written, or as loops on the host
    is_compared: bool = False
    is_timed: bool = True  # on hardware
    is_explained: bool = False  # on the host: each fusion is timed alone
    # results database whose best trials schedule the fusions, and the matmuls on a device, a path or URL;
    # "": each has its initial configuration
    database: str = ""
    # those schedules, where they are read already; None: ``database`` has them
    schedules: KnownSchedules | None = None
    # id of the campaign whose program is timed now, so that its trials count in any case; 0: none
    campaign: int = 0
    kept: tuple[Problem, ...] = ()  # fusions that keep their initial configuration, whatever was tuned
    model: str = ""  # MODEL.py:FUNCTION or MODEL.pt2 that the payload comes from; "": written in MLIR
    baselines: tuple[str, ...] = ()  # names of the baselines that are timed next to a tuned model
    baselines_s: float | None = None  # seconds after which no further baseline is compiled; None: no limit

    @property
    def has_schedule(self) -> bool:
        """True if the program's file has its own schedule; ``text`` is ``written`` after this schedule."""
        return bool(self.written) and self.written != self.text

    @property
    def bound(self) -> dict[Problem, Script] | None:
        """Returns the scripts of the request by matmul; None if all matmuls become loops.

        A matmul that is not in the result gets a default script, or becomes loops where there is none.
        """
        if self.scripts is None:
            return None
        return {key: Script.of(text) for key, text in self.scripts}


def require_on_cpu(target: TargetName, sizes: SizeRange) -> None:
    """Raises UsageError for a range of sizes on another target than a CPU."""
    if not target.is_on_cpu:
        line = f"sizes {sizes.text} cannot be combined with target {target}"
        raise UsageError(f"{line}: programs of a dynamic size run on a CPU", "--target cpu")
