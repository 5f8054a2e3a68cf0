"""A compiled program of groups as a value: machine code, and all that a call of it needs to know."""

from dataclasses import dataclass

from tuner.core.explained_group import CompiledGroup
from tuner.core.grouped_program import TensorType

PROGRAM_ENTRY, SINGLE_ENTRY = "program", "group_at"  # functions of the machine code
PART_ENTRY = "program_part"  # what each thread of a program for several threads runs
MEMBER_ENTRY, REPEAT_ENTRY = "team_member", "team_repeat"  # of the threads' team
# A part takes a pointer to its call, the thread's number and the number of threads; the call has a pointer
# to the frame, and the number of arrivals at barriers, 0 at first, on a line of the cache by itself.
PART_WORDS, ARRIVALS_OFFSET, CALL_BYTES = 8, 64, 128


@dataclass(frozen=True)
class Fill:
    """Elements of the arena that have a value before the first call: a buffer with padding."""

    offset_bytes: int
    type: TensorType
    value: float


@dataclass(frozen=True)
class GroupedCode:
    """A program of groups: its types, its machine code, and what the code expects in memory.

    The code takes a frame: an array of pointers to the arguments, the results, the packed weights and the
    arena, in this order, and a word for the text of an assertion that fails, such as that of an index. Code
    that ``asserts`` expects 0 there, and writes the address of the first such text; the results are then not
    defined.
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
    asserts: bool = False
