"""A compiled program of groups as a value: machine code, and all that a call of it needs to know."""

from dataclasses import dataclass

from tuner.core.group_schedule import NEAREST, SAME_CONTRACTION, TUNED
from tuner.core.grouped_program import TensorType

PROGRAM_ENTRY, SINGLE_ENTRY = "program", "group_at"  # functions of the machine code
PART_ENTRY = "program_part"  # what each thread of a program for several threads runs
MEMBER_ENTRY, REPEAT_ENTRY = "team_member", "team_repeat"  # of the threads' team
# A part takes a pointer to its call, the thread's number and the number of threads; the call has a pointer
# to the frame, and the number of arrivals at barriers, 0 at first, on a line of the cache by itself.
PART_WORDS, ARRIVALS_OFFSET, CALL_BYTES = 8, 64, 128
FIRST, LOOPS = "first", "loops"  # the first configuration of the search space; no schedule
ORIGINS = (TUNED, SAME_CONTRACTION, NEAREST, FIRST, LOOPS)  # where a group's schedule comes from


@dataclass(frozen=True)
class Fill:
    """Elements of the arena that have a value before the first call: a buffer with padding."""

    offset_bytes: int
    type: TensorType
    value: float


@dataclass(frozen=True)
class CompiledGroup:
    """One group of a program: what it computes, and by which schedule."""

    kind: str  # one of tuner.core.grouped_program.KINDS
    ops: tuple[str, ...]  # names of the payload's operations
    strategy: str  # "" of loops
    knobs: tuple[tuple[str, int | str], ...]
    origin: str  # one of ORIGINS
    reason: str  # of loops: why no schedule was used
    element: str  # element type of its result
    flop: int
    moved_bytes: int  # read and written, each byte once
    is_divided: bool = False  # among all threads of the program; else one thread runs it


@dataclass(frozen=True)
class GroupedCode:
    """A program of groups: its types, its machine code, and what the code expects in memory.

    The code takes a frame: an array of pointers to the arguments, the results, the packed weights and the
    arena, in this order.
    """

    entry: str  # name of the payload's function
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    arena_bytes: int
    fills: tuple[Fill, ...]
    weights_bytes: int  # of the packed weights
    needs: tuple[str, ...]  # instruction sets, as in tuner.core.instruction_sets
    compiler: str  # fingerprint
    groups: tuple[CompiledGroup, ...]
    object_code: bytes  # an object file of x86-64
    threads: int = 1  # that the program was compiled for
