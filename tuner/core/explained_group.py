"""A group of operations of a compiled program: what it computes, by which schedule, what it takes."""

from dataclasses import dataclass, field

from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability


@dataclass(frozen=True)
class CompiledGroup:
    """One group of a program: what it computes, and by which schedule."""

    kind: str  # one of tuner.core.grouped_program.KINDS
    ops: tuple[str, ...]  # names of the payload's operations
    strategy: str  # "" of loops
    knobs: tuple[tuple[str, int | str], ...]
    origin: str  # one of tuner.core.schedule_origins.ORIGINS
    reason: str  # of loops: why no schedule was used
    element: str  # element type of its result; of a scheduled product, of what it multiplies
    flop: int
    moved_bytes: int  # read and written, each byte once
    is_divided: bool = False  # among all threads of the program; else one thread runs it


@dataclass(frozen=True)
class ExplainedGroup:
    """A group of a program with its time, alone and with warm caches."""

    group: CompiledGroup
    time_s: float | None = None  # None: it was not timed
    share: float | None = None  # of the sum of all groups' times
    roofline: float | None = None  # the least possible time over its time
    before_s: float | None = None  # its time with its first configuration, of a program that was tuned
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of its times
