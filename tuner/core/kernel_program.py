"""Compiled GPU code as values: the launches that do a problem, their buffers, and what ptxas says of them."""

import hashlib
import math
from dataclasses import dataclass, field

from tuner.core.device import TensorMapLayout
from tuner.core.problem import Problem

# Notes of ptxas 13 that mean a pipeline of wgmma with a wait in every step: "Potential Performance Loss: ..."
SERIALIZED = ("C7510", "C7511", "C7514", "C7517", "C7519")


@dataclass(frozen=True)
class KernelBuffer:
    """One buffer in global memory that launches take pointers to."""

    name: str  # "a", "b", "bias", "c" of the problem; "workspace", "packed_a", ... of the program
    bytes: int
    role: str  # "input", "output" or "scratch"
    is_zeroed: bool = False  # must hold zeros before the first launch (atomic split-K)


@dataclass(frozen=True)
class BufferMap:
    """A tensor map of a whole buffer, which a kernel takes by value."""

    name: str  # among the launch's arguments
    buffer: str
    layout: TensorMapLayout


@dataclass(frozen=True)
class Launch:
    """One kernel launch, in the order of the program."""

    kernel: str  # entry of the PTX
    grid: tuple[int, int, int]  # blocks
    block: tuple[int, int, int]  # threads
    dynamic_shared_bytes: int
    arguments: tuple[str, ...]  # names of buffers or tensor maps, in the order of the kernel's parameters
    tensor_maps: tuple[BufferMap, ...] = field(default=(), repr=False)
    # tiles of C along x and y, where blocks make several; None: each makes one
    tile_grid: tuple[int, int] | None = field(default=None, repr=False)

    def tensor_map(self, argument: str) -> BufferMap | None:
        """Returns the tensor map that an argument is, None for a pointer."""
        return next((each for each in self.tensor_maps if each.name == argument), None)

    def tiles_of(self, block: tuple[int, int, int]) -> int:
        """Returns how many tiles of C a block makes: its own, and the one of each further grid of blocks."""
        if self.tile_grid is None:
            return 1
        columns, rows, _ = self.grid
        return -(-(math.prod(self.tile_grid) // rows - block[0]) // columns)


@dataclass(frozen=True)
class Resources:
    """What ptxas reports of one kernel, and how many of its blocks a multiprocessor can hold."""

    kernel: str
    registers: int  # of one thread
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    stack_bytes: int
    occupancy: float  # theoretical: resident warps over the most that a multiprocessor holds
    blocks_per_multiprocessor: int
    notes: tuple[str, ...] = ()  # warnings and advice of ptxas, one line each

    @property
    def is_serialized(self) -> bool:
        """Tells whether ptxas lets each wgmma wait for the one before, which its notes say."""
        return any(f"({code})" in note for note in self.notes for code in SERIALIZED)

    @property
    def spilled_bytes(self) -> int:
        """Returns the bytes of registers that the code of one thread stores to memory and loads again."""
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True)
class KernelProgram:
    """Everything that is needed to run a problem's kernels: code, launches, buffers."""

    chip: str  # "sm_90"
    ptx: str
    cubin: bytes  # b"" where no ptxas is at hand
    launches: tuple[Launch, ...]
    buffers: tuple[KernelBuffer, ...]
    resources: tuple[Resources, ...] = ()  # one per kernel; () where no ptxas is at hand


def code_sha256(program: KernelProgram) -> str:
    """Hashes what runs: machine code, or for want of it PTX, with its launches and buffers."""
    launches = repr((program.launches, program.buffers))
    maps = [launch.tensor_maps for launch in program.launches if launch.tensor_maps]
    words = launches + (repr(maps) if maps else "")  # programs without tensor maps hash as they always did
    return hashlib.sha256((program.cubin or program.ptx.encode()) + words.encode()).hexdigest()


def buffers_of(problem: Problem) -> tuple[KernelBuffer, ...]:
    """Returns A, B[, bias] and C in the order of the payload function's arguments."""
    m, n, k = problem.sizes
    bias = (
        (KernelBuffer("bias", n * problem.output_bytes, "input"),) if problem.epilogue == "bias_relu" else ()
    )
    return (
        KernelBuffer("a", problem.batch * m * k * problem.input_bytes, "input"),
        KernelBuffer("b", problem.batch * k * n * problem.input_bytes, "input"),
        *bias,
        KernelBuffer("c", problem.batch * m * n * problem.output_bytes, "output"),
    )
