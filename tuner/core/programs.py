"""Values of tuned programs: schedules and times of their fusions, baselines, and results of tuning.

``CompiledFusion`` and ``FusionSchedule`` say how a fusion is computed, ``ExplainedFusion`` adds its time,
``ProgramBaseline`` is the program in another framework, and ``ProgramResult`` has all of these.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, QUANTIZED
from tuner.core.problem import Problem
from tuner.core.records import MedianInterval
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability

TUNED, SAME_CONTRACTION, NEAREST, FIRST, LOOPS = ORIGINS = (
    "tuned",  # the best trial of this fusion
    "same contraction",  # the best trial of a contraction of the same sizes with another epilogue
    "nearest",  # the best trial of the fusion of the same kind whose sizes are nearest
    "first",  # the initial configuration of the search space
    "loops",  # no schedule: scalar loops
)
PRODUCTS = (ATTENTION, CONTRACTION, CONVOLUTION, QUANTIZED)  # kinds of fusions that multiply matrices
# Rates on one thread, of schedules and of scalar loops (docs/decisions/models.md); estimates, no bounds.
PRODUCTS_PER_S = 80e9
ELEMENTWISE_PER_S = 20e9  # of fusions of other kinds
LOOPS_PER_S = 4e9  # of loops, which LLVM can make vectors of where they do not sum over a window
PRODUCT_LOOPS_PER_S = 1e9  # of contractions and convolutions as loops
BYTES_PER_S = 30e9  # of the caches
# loops_note reports loops only above this share of the program's time
LOOPS_LIMIT = 0.1
LOOPS_LEAST_S = 5e-6  # and only above this time, the overhead of one operator call in PyTorch
SHOWN_OPS = 4
NO_TIME_LEFT = "the budget ended before it was timed"  # why a baseline has no time
NO_GAIN = "none: "  # begins why a tuned program has no gain, where its times show that there is none
EAGER = "eager"
COMPILE = "torch.compile"
FREEZING = f"{COMPILE} freezing"
MAX_AUTOTUNE = f"{COMPILE} max_autotune"
ONNXRUNTIME = "onnxruntime"
OPENVINO = "openvino"
ALL = "all"
NONE = "none"
BASELINE_SETS = {
    ALL: (EAGER, COMPILE, FREEZING, MAX_AUTOTUNE, ONNXRUNTIME, OPENVINO),
    EAGER: (EAGER,),
    COMPILE: (EAGER, COMPILE, FREEZING, MAX_AUTOTUNE),
    NONE: (),
}


@dataclass(frozen=True)
class CompiledFusion:
    """One fusion of a compiled program: its operations, and the schedule or the loops that compute it."""

    kind: str  # one of tuner.core.fusions.KINDS
    ops: tuple[str, ...]  # names of the payload's operations
    strategy: str  # "" of loops
    knobs: tuple[tuple[str, int | str], ...]
    origin: str  # one of ORIGINS
    reason: str  # of loops: why no schedule was used
    element: str  # element type of its result; of a scheduled product, of what it multiplies
    flop: int
    moved_bytes: int  # read and written, each byte once
    is_divided: bool = False  # among all threads of the program; else one thread runs it
    given_up: tuple[str, ...] = ()  # why each earlier configuration was given up when it was compiled

    def is_computed_as(self, other: "CompiledFusion") -> bool:
        """Returns whether both fusions have the same strategy and knob values, whatever their ``origin``."""
        return (self.strategy, self.knobs) == (other.strategy, other.knobs)


@dataclass(frozen=True)
class ExplainedFusion:
    """A fusion of a program with its time: it is timed alone, with warm caches."""

    fusion: CompiledFusion
    time_s: float | None = None  # None: it was not timed
    share: float | None = None  # of the sum of all fusions' times
    roofline: float | None = None  # the least possible time over its time
    before_s: float | None = None  # its time with its initial configuration, of a program that was tuned
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of its times


@dataclass(frozen=True)
class FusionSchedule:
    """A configuration and its script for one fusion, or for one matmul of a program on a device."""

    candidate: Candidate
    script: str
    origin: str  # TUNED, SAME_CONTRACTION or NEAREST
    trial: int  # id of the stored trial that suggests it


@dataclass(frozen=True)
class TunedKernel:
    """A matmul of a program on a device whose script a stored trial suggests."""

    problem: Problem  # without its epilogue
    schedule: FusionSchedule


def estimated_s(fusion: CompiledFusion) -> float:
    """Returns an estimate of a fusion's seconds on one thread, from its operations and bytes."""
    if fusion.origin == LOOPS:
        is_product = any("matmul" in name or "conv" in name for name in fusion.ops)
        rate = PRODUCT_LOOPS_PER_S if is_product else LOOPS_PER_S
    else:
        rate = PRODUCTS_PER_S if fusion.kind in PRODUCTS else ELEMENTWISE_PER_S
    return max(fusion.flop / rate, fusion.moved_bytes / BYTES_PER_S)


def loops_note(fusions: Sequence[ExplainedFusion]) -> str:
    """Returns a sentence about the time spent in fusions without a schedule, which run as scalar loops.

    The times are measured if every fusion has a reliable time, else estimated. "" where the loops take at
    most LOOPS_LIMIT of the whole, or less than LOOPS_LEAST_S.
    """
    measured = [
        (timed.time_s, timed.fusion) for timed in fusions if timed.time_s and timed.reliability.is_reliable
    ]
    is_measured = len(measured) == len(fusions)
    if is_measured:
        times = measured
    else:
        times = [(estimated_s(untimed.fusion), untimed.fusion) for untimed in fusions]
    slow = [(time_s, fusion) for time_s, fusion in times if fusion.origin == LOOPS]
    in_loops_s = sum(time_s for time_s, _ in slow)
    whole_s = sum(time_s for time_s, _ in times)
    if in_loops_s < LOOPS_LEAST_S or in_loops_s <= LOOPS_LIMIT * whole_s:
        return ""
    slow.sort(key=itemgetter(0), reverse=True)
    ops = [*dict.fromkeys(name for _, fusion in slow for name in fusion.ops)]
    names = ", ".join(ops[:SHOWN_OPS]) + (f" and {len(ops) - SHOWN_OPS} more" if len(ops) > SHOWN_OPS else "")
    how = "measured" if is_measured else "estimated"
    return f"{in_loops_s / whole_s:.0%} of the time ({how}) is scalar loops, as no schedule fits: {names}"


def given_up_note(fusions: Sequence[CompiledFusion]) -> str:
    """Returns a sentence about fusions of which earlier configurations failed to compile.

    "" for no such fusion. Names the first such fusion with the reasons, and counts the others.
    """
    affected = [fusion for fusion in fusions if fusion.given_up]
    if not affected:
        return ""
    first = affected[0]
    others = f", and {len(affected) - 1} more" if len(affected) > 1 else ""
    instead = "it is scalar loops" if first.origin == LOOPS else "the next configuration is used"
    return f"{', '.join(dict.fromkeys(first.ops))}: {'; '.join(first.given_up)}; {instead}{others}"


# (problem, threads that it is divided among) -> the best first; a script may fail to compile
Schedules = Callable[[Problem, int], Iterator[FusionSchedule]]


def no_schedules(_problem: Problem, _threads: int) -> Iterator[FusionSchedule]:
    """Returns an empty iterator: no stored schedule, so that each fusion gets its initial configuration."""
    return iter(())


@dataclass(frozen=True)
class KnownSchedules:
    """The stored schedules of a program's fusions as a value: processes that get it open no database."""

    stored: Mapping[tuple[Problem, int], tuple[FusionSchedule, ...]]  # of a fusion and a number of threads

    def __call__(self, problem: Problem, threads: int) -> Iterator[FusionSchedule]:
        """Returns the schedules of a fusion, the best first; none of one that was not asked for."""
        return iter(self.stored.get((problem, threads), ()))


@dataclass(frozen=True)
class ProgramSource:
    """Where a program comes from and how it is called; a resumed tuning compiles and times it again."""

    payload: str  # absolute: FILE.mlir, MODEL.py:FUNCTION or MODEL.pt2
    entry: str | None
    arguments: tuple[str, ...]  # as typed: "0=[8,4]zeros"
    cache: str  # what the caches hold when a fusion is timed
    baselines: tuple[str, ...]  # names of those that are timed next to the program
    threads: int = 1  # of the program's calls
    size: int = 0  # n of the static program, where the payload has a dynamic size n; 0: it has none


def chosen_baselines(choice: str) -> tuple[str, ...]:
    """Returns the names of the baselines that ``choice`` stands for.

    Raises UsageError for a choice that is not a key of BASELINE_SETS.
    """
    if choice not in BASELINE_SETS:
        raise UsageError(f"baseline: found {choice!r}, allowed {', '.join(BASELINE_SETS)}")
    return BASELINE_SETS[choice]


@dataclass(frozen=True)
class ProgramBaseline:
    """The same program run by another framework, timed interleaved with the tuned program in one process."""

    name: str  # "eager", "torch.compile freezing"
    call_s: MedianInterval | None = None  # seconds of a call
    speed: MedianInterval | None = None  # its time over that of the tuned program: above 1, tuner is faster
    reason: str = ""  # why it was not timed, or has no ratio; "" where it has one
    # of the times, and so of the ratio; an older tuner stored none
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)
    # the timed part: operators, and the numbers of their fusions, "max_pool2d (g2)"; "": the whole program
    part: str = ""

    @property
    def is_faster(self) -> bool:
        """True if the baseline is reliably faster: the 95 % interval of the ratio of times is below 1."""
        return self.speed is not None and self.reliability.is_reliable and self.speed.high < 1

    @property
    def title(self) -> str:
        """Returns the name, and the part of the program that was timed: "eager, max_pool2d (g2)"."""
        if self.part:
            return f"{self.name}, {self.part}"
        return self.name


@dataclass(frozen=True)
class ProgramResult:
    """The result of tuning a program: seconds per call before and after, its fusions, and its baselines."""

    call_s: float | None  # of the tuned program; None: not timed
    before_s: float | None  # of the program with initial configurations
    speed: MedianInterval | None  # ``before_s`` over ``call_s``; above 1: faster; None: not comparable
    fusions: tuple[ExplainedFusion, ...]
    left_out: tuple[str, ...] = ()  # a line for each fusion that is not tuned
    baselines: tuple[ProgramBaseline, ...] = ()
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the times of a call
    gain_unknown: str = ""  # why ``speed`` is None; "" where it is there

    def uses(self, name: str) -> bool:
        """Returns whether a fusion that the name of a run lists has a tuned schedule in the program.

        ``name``: such as "g0, g8". True also if ``fusions`` has none of the listed fusions, as where the
        program was not timed.
        """
        is_known = False
        for index in fusion_numbers(name):
            if index < len(self.fusions):
                is_known = True
                if self.fusions[index].fusion.origin == TUNED:
                    return True
        return not is_known


def fusion_numbers(name: str) -> tuple[int, ...]:
    """Returns the indices of the fusions that the name of a run lists: (0, 8) of "g0, g8".

    Raises ValueError for another name.
    """
    return tuple(map(int, name.replace("g", "").split(", ")))
