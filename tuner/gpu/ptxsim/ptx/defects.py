"""Defects of a kernel: faults, which end the simulation, and hazards, which are collected."""

import enum
from dataclasses import dataclass

from tuner.core.errors import TunerError
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction


class Defect(enum.Enum):
    """A kind of defect: a fault, which ends the simulation, or a hazard, which is collected."""

    # Faults: end the simulation with a SimulationError.
    SYNTAX = "syntax"
    UNSUPPORTED = "unsupported instruction"
    ILLEGAL = "illegal operand"  # a value that the instruction does not allow: a shape, a size, a mask
    OUT_OF_BOUNDS = "out of bounds"
    MISALIGNED = "misaligned access"
    DIVERGENCE = "divergent warp"  # an instruction that needs the whole warp is executed by a part of it
    BARRIER = "barrier misused"  # too many arrivals, an mbarrier that was never initialised
    DEADLOCK = "deadlock"
    ENDLESS = "endless"
    TRAP = "trap"
    ASSERTION = "assertion fails"
    # Hazards: collected as Hazard.
    SHARED_RACE = "race in shared memory"
    GLOBAL_RACE = "race in global memory"  # between threads of one block or cluster
    BLOCK_RACE = "race between blocks"  # in global memory
    UNINITIALISED = "uninitialised shared memory"
    IN_FLIGHT = "touched while an asynchronous operation is in flight"
    MISSING_FENCE = "missing proxy fence"
    MISSING_WGMMA_FENCE = "missing wgmma.fence"
    ENDED_BLOCK = "shared memory of a block that may have ended"
    UNFINISHED = "asynchronous operation not waited for"
    # Benign hazards: collected, but do not change the result.
    SAME_VALUE = "same value written twice"  # unordered, but every order leaves the same memory
    LATE_ACCUMULATOR = "accumulator written after wgmma.fence"  # ptxas repairs this: warnings C7517, C7519


BENIGN = (Defect.SAME_VALUE, Defect.LATE_ACCUMULATOR)


@dataclass(frozen=True)
class Hazard:
    """All hazards of one kind at one instruction (line 0: at the kernel's end): their number, an example.

    A hazard is an unordered or undefined access, or an asynchronous operation that no thread waited for.
    """

    kind: Defect
    line: int  # of the PTX
    instruction: str
    example: str  # thread, access and address of the first occurrence
    count: int

    def __str__(self) -> str:
        return f"line {self.line}: {self.instruction}: {self.kind.value}: {self.example} ({self.count} times)"


class Fault(Exception):  # noqa: N818 - what a multiprocessor calls it
    """Raised when an instruction executes with a defect; the engine converts it to a SimulationError."""

    def __init__(self, kind: Defect, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class SimulationError(TunerError):
    """Raised for text that is not PTX, a kernel with a fault, and what is not simulated; ``line`` 0: none."""

    def __init__(self, kind: Defect, line: int, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.line = line
        self.reason = reason

    def __reduce__(self) -> tuple[type["SimulationError"], tuple[Defect, int, str]]:
        """Pickles by field, since the error crosses process boundaries."""
        return (type(self), (self.kind, self.line, self.reason))


class UnsupportedInstruction(SimulationError):  # noqa: N818 - named after what is found
    """Raised for an instruction, or a combination of modifiers, that the simulator does not implement."""


def at(instruction: Instruction, fault: Fault) -> SimulationError:
    """Returns the SimulationError for a fault of an instruction, with its line; does not raise it."""
    line = instruction.line
    reason = f"line {line}: {instruction.short_text}: {fault.kind.value}: {fault.reason}"
    return SimulationError(fault.kind, line, reason)


def unsupported(instruction: Instruction, construct: str) -> UnsupportedInstruction:
    """Returns the UnsupportedInstruction for a construct, such as "the instruction tex".

    Does not raise it.
    """
    reason = f"line {instruction.line}: {instruction.short_text}: the simulator does not know {construct}"
    return UnsupportedInstruction(Defect.UNSUPPORTED, instruction.line, reason)
