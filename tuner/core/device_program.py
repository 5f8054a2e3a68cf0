"""A host program as compiled code: LLVM-dialect text that allocates, copies, launches by ``mgpu*`` calls."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tuner.core.problem import Problem

Assemble = Callable[[str, tuple[str, ...]], bytes]  # PTX, names of its kernels -> cubin


@dataclass(frozen=True)
class BufferType:
    """The type of a buffer that a compiled host function takes or returns: a ranked memref."""

    element: str  # "f32", "f16", "bf16", "f64", "i32", ...
    shape: tuple[int | None, ...]  # None: dynamic, known at the call


@dataclass(frozen=True)
class ScalarType:
    """The type of a number that a compiled host function takes or returns by value."""

    element: str  # "index", "f32", "i64", ...


ValueType = BufferType | ScalarType


@dataclass(frozen=True)
class MatmulKernel:
    """A GPU kernel that computes a whole matmul in one launch: its name, its problem, its parameters."""

    name: str
    problem: Problem
    buffers: tuple[str, ...]  # "a", "b", "c", in the order of its parameters


@dataclass(frozen=True)
class ResidentBuffer:
    """Device memory that a program takes after its arguments, and keeps from call to call: a weight.

    One that is written is a buffer with padding, which calls leave as it is.
    """

    type: BufferType
    content: bytes = field(repr=False)  # before the first call
    is_written: bool


@dataclass(frozen=True)
class DeviceGroup:
    """A group of operations of a program for a GPU."""

    kind: str  # one of tuner.core.grouped_program.KINDS
    ops: tuple[str, ...]  # names of the payload's operations, in order
    reason: str = ""  # why it is not one kernel; "": it is


@dataclass(frozen=True)
class DeviceProgram:
    """A compiled host program that runs work on a GPU: its code, and how to call its entry function."""

    llvm: str  # LLVM-dialect text; contains the kernels as binaries
    entry: str  # function with llvm.emit_c_interface
    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]  # buffers are host memory that the caller frees
    written: tuple[bool, ...]  # per argument: the function may change it
    device_arguments: bool = False  # True: buffers of the arguments are device memory, nothing is copied
    stream_slots: int = 0  # trailing !llvm.ptr arguments; slot 0 is the caller's stream. 0: token form
    interpreted: str = (
        ""  # MLIR of kernels that host code calls and nobody compiles: see tuner.programs.interpret
    )
    # Where launches may be sampled: what their results are compared with.
    reference: str = ""  # MLIR of the kernels that can be interpreted
    matmuls: tuple[MatmulKernel, ...] = ()
    resident: tuple[ResidentBuffer, ...] = ()  # arguments after those of the caller
    groups: tuple[DeviceGroup, ...] = ()  # of a program that is computed as groups of operations
