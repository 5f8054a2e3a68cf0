"""Compiled code as values: the kernels that compute a problem, their launches and buffers.

``KernelCode`` is what compilers return and devices load: text, binary, ``Launch`` values and the
``KernelBuffer`` values that launches take. ``Resources`` is the assembler's report, ``PredictedCycles`` that
of a cycle model.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Self

from tuner.core.problem import Problem

Assemble = Callable[[str, tuple[str, ...]], bytes]  # text of a module, names of its kernels -> binary


@dataclass(frozen=True)
class TensorMapLayout:
    """How a tensor map (CUtensorMap) tiles a tensor: arguments of cuTensorMapEncodeTiled."""

    sizes: tuple[int, ...]  # elements, innermost first
    strides_bytes: tuple[int, ...]  # of every dimension but the innermost
    box: tuple[int, ...]  # elements, innermost first
    dtype: int  # CUtensorMapDataType
    interleave: int = 0  # CUtensorMapInterleave
    swizzle: int = 0  # CUtensorMapSwizzle
    l2_promotion: int = 0  # CUtensorMapL2promotion
    out_of_bounds: int = 0  # CUtensorMapFloatOOBfill


@dataclass(frozen=True)
class KernelBuffer:
    """A buffer in GPU memory to which the launches of a program take pointers: name, size and role."""

    name: str  # "a", "b", "bias", "c" of the problem; "workspace", "packed_a", ... of the program
    bytes: int
    role: str  # "input", "output" or "scratch"
    is_zeroed: bool = False  # must be zero before the first launch (atomic split-K)
    # a run leaves zeros in the zeroed buffer: memory that is kept from run to run is filled only once
    keeps_zeros: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class BufferMap:
    """A tensor map (CUtensorMap) of a whole buffer, which a kernel takes by value as one of its arguments."""

    name: str  # among the launch's arguments
    buffer: str
    layout: TensorMapLayout


@dataclass(frozen=True)
class Launch:
    """One kernel launch of a program: kernel, grid, block, shared memory, and arguments by name."""

    kernel: str  # entry of the code
    grid: tuple[int, int, int]  # blocks
    block: tuple[int, int, int]  # threads
    dynamic_shared_bytes: int
    arguments: tuple[str, ...]  # names of buffers or tensor maps, in the order of the kernel's parameters
    tensor_maps: tuple[BufferMap, ...] = field(default=(), repr=False)
    # tiles of C along x and y, where a block computes several; None: each computes one
    tile_grid: tuple[int, int] | None = field(default=None, repr=False)

    def tensor_map(self, argument: str) -> BufferMap | None:
        return next((mapped for mapped in self.tensor_maps if mapped.name == argument), None)

    def tiles_of(self, block: tuple[int, int, int]) -> int:
        """Returns how many tiles of C one thread block computes; ``block`` is its (x, y, z) in the grid.

        1 without ``tile_grid``. Else the grid is a row of n clusters, of which c computes c, c + n, c + 2 n,
        ... of the clusters of tiles, numbered along x, then y.
        """
        if self.tile_grid is None:
            return 1
        # x counts the blocks of all clusters, one cluster after the other; y only those within a cluster
        blocks_in_row, blocks_in_cluster_column, _ = self.grid
        tiles_in_row = math.prod(self.tile_grid) // blocks_in_cluster_column
        return -(-(tiles_in_row - block[0]) // blocks_in_row)


@dataclass(frozen=True)
class Resources:
    """The assembler's report on one kernel (registers, spills, shared memory), and the kernel's occupancy."""

    kernel: str
    registers: int  # of one thread
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    stack_bytes: int
    occupancy: float  # theoretical: resident warps over the most that a multiprocessor holds
    blocks_per_multiprocessor: int
    notes: tuple[str, ...] = ()  # warnings and advice of the assembler, one line each

    @property
    def spilled_bytes(self) -> int:
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True)
class KernelCode:
    """Compiled kernels: as text, as a binary, and what a device needs to launch them.

    For a CPU the text is in LLVM dialect, and the host calls its functions. For a device, text and binary are
    what its assembler or driver takes, and are of the same kernels.
    """

    chip: str  # of a device, "sm_90"; "": the host calls a function
    text: str
    binary: bytes = b""  # b"": nothing assembled the text
    launches: tuple[Launch, ...] = ()  # of a device, in order
    buffers: tuple[KernelBuffer, ...] = ()
    resources: tuple[Resources, ...] = ()  # one per kernel; () without a binary

    @classmethod
    def of_host(cls, text: str) -> Self:
        """Returns code for the CPU, without binary and launches.

        ``text``: LLVM dialect of functions to call.
        """
        return cls("", text)

    @property
    def is_for_device(self) -> bool:
        """Returns whether the kernels are launched on a device such as a GPU.

        False for functions of the host.
        """
        return bool(self.chip)


def code_sha256(program: KernelCode) -> str:
    """Returns the SHA-256 (hex) of what a device runs: binary (without one: text), launches and buffers."""
    launches = repr((program.launches, program.buffers))
    maps = [launch.tensor_maps for launch in program.launches if launch.tensor_maps]
    options = launches + (repr(maps) if maps else "")  # programs without tensor maps hash as they always did
    return hashlib.sha256((program.binary or program.text.encode()) + options.encode()).hexdigest()


def buffers_of(problem: Problem) -> tuple[KernelBuffer, ...]:
    """Returns the buffers of a problem: inputs "a" and "b", extra inputs of the epilogue, output "c".

    They are in the order of the payload function's arguments.
    """
    *inputs, c = problem.arguments
    return (
        *(KernelBuffer(argument.name, argument.bytes, "input") for argument in inputs),
        KernelBuffer(c.name, c.bytes, "output"),
    )


@dataclass(frozen=True)
class BusyCycles:
    """Predicted cycles for which each unit of a multiprocessor is busy, and cycles of one warp alone."""

    issue: float  # of instructions
    products: float  # arithmetic pipes
    ports: float  # of registers, where threads hold many sums; else 0
    integers: float  # arithmetic pipes
    memory: float  # shared memory and L1
    second_level: float  # bytes from the L2
    critical_path: float  # of one warp in sequence, whatever other warps do

    @property
    def bottleneck(self) -> float:
        """Returns the largest of the predicted cycles: of the busiest unit, or of a warp's critical path."""
        longest: float = max(astuple(self))
        return longest


@dataclass(frozen=True)
class PredictedCycles:
    """Cycles that a model of the GPU predicts for a program; never seconds, never stored as a measurement."""

    cycles: float  # of one call
    parts: BusyCycles | None  # in the launch with most multiply-adds; None: none has any
    # of a multiprocessor in that launch: tiles that the TMA may copy at once; 0: it copies none
    in_flight_bytes: int = 0


Predict = Callable[[Problem, KernelCode], PredictedCycles | None]  # None: no machine code that can be read
