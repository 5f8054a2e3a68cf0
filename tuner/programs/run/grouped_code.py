"""A compiled program of groups as a value: machine code, and all that a call of it needs to know."""

from dataclasses import dataclass

from tuner.core.grouped_program import TensorType

PROGRAM_ENTRY, SINGLE_ENTRY = "program", "group_at"  # functions of the machine code


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
    origin: str  # one of tuner.core.schedule_origins.ORIGINS
    reason: str  # of loops: why no schedule was used
    element: str  # element type of its result
    flop: int
    moved_bytes: int  # read and written, each byte once


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
