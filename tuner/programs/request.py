"""The request for one run of a program, its options and its report; errors with the payload's file and line.

A ``ProgramRequest`` goes to a child process, which returns a ``ProgramReport``. Loads no MLIR.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from tuner.core.candidate import TargetName
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import DeviceFusion
from tuner.core.errors import CandidateError, TunerError, UsageError
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.core.programs import ExplainedFusion
from tuner.programs.program_times import ProgramTimes
from tuner.programs.run.recording_device import DeviceWork
from tuner.runtime.cpu.team_threads import checked_threads
from tuner.targets.backends import Backends
from tuner.targets.target import ProgramSupport

Form = Literal["streams", "tokens", "sync"]
FORMS: tuple[Form, ...] = get_args(Form)
# CUDA gives each device 8 connections to the host; streams beyond them share one. CUDA programming guide,
# CUDA_DEVICE_MAX_CONNECTIONS.
MAX_STREAMS = 8
LoweringStep = Literal["device-memory", "async", "streams", "gpux", "llvm", "ptx"]
STEPS: tuple[LoweringStep, ...] = get_args(LoweringStep)
# Steps whose text differs by ``form``, which only these take; each earlier step shows one fixed form.
WITH_FORM: tuple[LoweringStep, ...] = ("llvm", "ptx")
OPERATION = re.compile(r'"?([a-z_]\w*(?:\.\w+)+|[a-z_]\w+)')  # memref.load, "gpux.wait", call
# "line 8:3" in the forms of messages: after "error:", in parentheses, after the name of an operation.
POSITION = re.compile(r"(?:error: |note: )?(?: ?\(?at )?line (\d+:\d+)\)?(: )?")
CHILD = "program: "  # prefix of messages of the process that runs programs
SUBJECTS = ("payload: ", "host program: ")  # prefixes that the file's name replaces


@dataclass(frozen=True)
class DeviceOptions:
    """How a program issues its device work.

    Raises UsageError for an unknown form and for less than one stream.
    """

    form: Form = "streams"
    max_streams: int = MAX_STREAMS
    device_arguments: bool = False  # buffer arguments of public functions are in device memory already
    pinned: bool = False  # host memory that is allocated and copied is page-locked (gpu.alloc host_shared)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(f"form: found {self.form!r}, allowed {', '.join(FORMS)}")
        if self.max_streams < 1:
            raise UsageError(f"max_streams: found {self.max_streams}, allowed 1 and more")


DEFAULTS = DeviceOptions()


def in_file(reason: str, name: str, text: str = "") -> str:
    """Returns a message about a payload in compilers' form: "NAME:LINE:COLUMN: OPERATION: message".

    ``text``: MLIR of the payload. LINE:COLUMN is the first "line 8:3" in ``reason``; OPERATION is read from
    ``text`` there, and left out if the message has it or ``text`` none. Without a position: "NAME: message".
    """
    position = POSITION.search(reason)
    if position is None:
        return f"{name}: {reason.removeprefix(CHILD).removeprefix(f'{name}: ')}"
    rest = reason[: position.start()] + (position[2] or "") + reason[position.end() :]
    for subject in (CHILD, *SUBJECTS):
        rest = rest.removeprefix(subject)
    rest = rest.strip(" :")
    operation = operation_at(text, position[1])
    return f"{name}:{position[1]}: {rest if operation in rest else f'{operation}: {rest}'}"


def operation_at(text: str, position: str) -> str:
    """Returns the name of the operation at "LINE:COLUMN", counted from 1; "" where none begins there.

    ``text``: MLIR.
    """
    line, column = map(int, position.split(":"))
    match = OPERATION.match("".join(text.splitlines()[line - 1 : line])[column - 1 :])
    if match:
        return match[1]
    return ""


@contextlib.contextmanager
def named_in_errors(name: str, text: str) -> Iterator[None]:
    """Context manager: puts the payload's name before the message of tuner's errors that are raised inside.

    A position in the message moves there, NAME:8:3, with the operation there in ``text``, the payload.
    """
    try:
        yield
    except CandidateError as error:
        raise CandidateError(error.stage, in_file(error.reason, name, text)) from error
    except TunerError as error:
        if type(error) not in (TunerError, UsageError):
            raise
        raise type(error)(in_file(error.message, name, text), error.hint) from error


def targets_with(is_there: Callable[[ProgramSupport], bool], backends: Backends) -> str:
    """Returns the names of targets whose program support meets ``is_there``, as text: "cuda, simulator"."""
    targets = backends.targets.values()
    return ", ".join(target.name for target in targets if target.programs and is_there(target.programs))


def program_support(target: TargetName, backends: Backends) -> ProgramSupport:
    """Returns how a target runs programs. Raises UsageError for a target that runs only single operations."""
    known = backends.targets.get(target.kind) and backends.target(target)
    if known is None or known.programs is None:
        allowed = targets_with(lambda _programs: True, backends)
        raise UsageError(f"target: found {target.text}, allowed for programs: {allowed}")
    return known.programs


@dataclass(frozen=True)
class ProgramOptions:
    """Options of compiling and running a program, with the defaults of command line and Python API."""

    device: DeviceOptions = DEFAULTS
    order: str = STREAM_ORDERS[0]  # in which the simulator runs work that is ready
    seed: int = 0  # of random arguments, and of a random order
    trace: bool = False
    sample: int = 0  # approximate number of blocks per launch that the simulator runs; 0: all
    threads: int = 1  # of a program of fusions on the host

    def __post_init__(self) -> None:
        if self.order not in STREAM_ORDERS:
            raise UsageError(f"order: found {self.order!r}, allowed {', '.join(STREAM_ORDERS)}")
        if self.seed < 0:
            raise UsageError(f"seed: found {self.seed}, allowed 0 or more")
        if self.sample < 0:
            raise UsageError(f"sample: found {self.sample}, allowed 1 or more, or 0 for all")
        checked_threads(self.threads)

    def require_suiting(self, target: TargetName, backends: Backends) -> None:
        """Raises UsageError for an option that is set and that ``target`` does not have."""
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
    is_compared: bool = False  # with the payload as written, or as loops on the host
    is_timed: bool = True  # on hardware
    is_explained: bool = False  # on the host: each fusion is timed alone
    # results database whose best trials schedule the fusions, a path or URL; "": each fusion has
    # its initial configuration
    database: str = ""
    model: str = ""  # MODEL.py:FUNCTION or MODEL.pt2 that the payload comes from; "" of MLIR
    baselines: tuple[str, ...] = ()  # names of those that are timed next to a tuned model

    @property
    def bound(self) -> dict[Problem, Script] | None:
        """Returns the scripts of the request by problem; None if all matmuls become loops.

        A matmul that is not in the result gets a default script.
        """
        if self.scripts is None:
            return None
        return {key: Script.of(text) for key, text in self.scripts}


@dataclass(frozen=True)
class Comparison:
    """One compared value: its error relative to a reference, and the allowed error.

    The value is a result, a written argument, the printed text of a program, or elements that sampled blocks
    wrote.
    """

    name: str  # "result 0", "argument 2"
    max_error: float  # relative to the largest expected number; inf where a number is missing or not finite
    tolerance: float
    is_blind: bool = False  # an array of zeros would be within the tolerance

    @property
    def is_equal(self) -> bool:
        """True if the error is within the tolerance; where zeros would be as well, only if the error is 0."""
        return self.max_error == 0 or (self.max_error <= self.tolerance and not self.is_blind)

    @property
    def verdict(self) -> str:
        """Returns "equal", "unclear" (within the tolerance, but zeros would be as well) or "WRONG"."""
        is_near = self.max_error <= self.tolerance
        if self.is_equal:
            return "equal"
        if is_near:
            return "unclear"
        return "WRONG"


@dataclass(frozen=True)
class KernelSample:
    """The launches of one kernel: how many blocks the simulator ran, and the comparison with a reference."""

    kernel: str
    launches: int
    blocks: int  # blocks of all launches
    simulated: int  # blocks that the simulator ran
    elements: int = 0  # number of compared elements
    # name of the reference that computed the other blocks; "" where the simulator ran all
    reference: str = ""
    finished: int = 0  # blocks that the reference computed: fewer than all where its time ran out
    comparison: Comparison | None = None  # of the launch with the largest error

    @property
    def is_right(self) -> bool:
        """True if all blocks were simulated, or some elements were compared and equal the reference's."""
        return not self.reference or (self.comparison is not None and self.comparison.is_equal)


@dataclass(frozen=True)
class ProgramReport:
    """The outcome of one run of a program: types, matmuls, trace, defects, comparisons and times."""

    entry: str
    arguments: tuple[str, ...]  # "64x?xf32", "index"
    results: tuple[str, ...]
    problems: tuple[Problem, ...]  # distinct matmuls, one script each
    streams: int  # streams that the program uses, the caller's included; 0: the program creates its streams
    trace: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()  # defects: unordered accesses, leaks, and similar
    comparisons: tuple[Comparison, ...] = ()
    reference: str = ""  # what the comparisons are with; "" without any
    times: ProgramTimes | None = None
    printed: str = ""  # by the program: its kernels, and the functions of MLIR's runner libraries
    is_simulated: bool = False  # the device detects defects, and has no clock
    is_interpreted: bool = False  # some kernels are interpreted on the host: results, but no times

    samples: tuple[KernelSample, ...] = ()  # per kernel, where launches were sampled
    work: DeviceWork | None = None  # None: no device ran it
    work_without_fusions: DeviceWork | None = None  # of a program of fusions, were it compiled as a whole
    resident_bytes: int = 0  # that a program of fusions has on the device from call to call
    device_fusions: tuple[DeviceFusion, ...] = ()  # of a program on a device that is computed as fusions
    fusions: tuple[ExplainedFusion, ...] = ()  # of a program on the host that is computed as fusions
    why_no_fusions: str = ""  # why a program is computed as a whole

    @property
    def is_right(self) -> bool:
        """Returns whether no defect was reported and every comparison and every sampled kernel is equal."""
        is_equal = all(comparison.is_equal for comparison in self.comparisons)
        return is_equal and not self.reports and all(sample.is_right for sample in self.samples)
