"""A tuned program as it is stored: where it comes from, what its groups take, how fast others run it."""

from dataclasses import dataclass, field

from tuner.core.explained_group import ExplainedGroup
from tuner.core.median_interval import MedianInterval
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability


@dataclass(frozen=True)
class ProgramSource:
    """Where a program comes from and how it is called: what a resumed tuning compiles and times again."""

    payload: str  # absolute: FILE.mlir, MODEL.py:FUNCTION or MODEL.pt2
    entry: str | None
    arguments: tuple[str, ...]  # as typed: "0=[8,4]zeros"
    cache: str  # what the caches hold when a group is timed
    baselines: tuple[str, ...]  # names of those that are timed next to the program


@dataclass(frozen=True)
class ProgramBaseline:
    """A program run by something else, timed interleaved with the tuned program in one process.

    Both numbers are None where it was not timed, for a reason; the ratio alone where none may be printed.
    """

    name: str  # "eager", "torch.compile freezing"
    call_s: MedianInterval | None = None  # seconds of a call
    speed: MedianInterval | None = None  # its time over that of the tuned program: above 1, tuner is faster
    reason: str = ""  # why it was not timed, or has no ratio; "" where it has one
    # of the times, and so of the ratio, which an older tuner stored without
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)


@dataclass(frozen=True)
class ProgramResult:
    """What came of tuning a program: times of a call, its groups, and its baselines."""

    call_s: float | None  # of the tuned program; None: not timed
    before_s: float | None  # of the program with first configurations
    speed: MedianInterval | None  # of the two, above 1: tuning has gained; None: not comparable
    groups: tuple[ExplainedGroup, ...]
    left_out: tuple[str, ...] = ()  # a line for each group that is not tuned
    baselines: tuple[ProgramBaseline, ...] = ()
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the times of a call
    gain_unknown: str = ""  # why ``speed`` is None; "" where it is there
