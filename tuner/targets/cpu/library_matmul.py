"""A library's matmul of given inputs: the port, and libraries that JIT-compiled code calls like kernels."""

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from tuner.core.problem import Problem
from tuner.core.target import Partition
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.payload.cpu import matrix_bytes
from tuner.payload.reference import Array, Inputs, output_dtype
from tuner.runtime.cpu.describe_host import processors
from tuner.runtime.cpu.guarded_arrays import placed_copy, placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.working_threads import pin_working_threads

Operands = tuple[Array, Array, Array]  # A, B, C


@dataclass(frozen=True, eq=False)
class LibraryCode:
    """How a library computes one problem: its name with version and kernel, and code that calls it.

    ``text`` is a module of the LLVM dialect with a function ``baseline`` of three pointers: to A, B and C.
    """

    name: str
    text: str
    computes_batch: bool = False  # True: a call computes every matrix of a batch; False: one of them
    kept: tuple[object, ...] = ()  # objects that own memory whose addresses are in ``text``


# (problem, operands, threads) -> code; raises TunerError where the library is missing or refuses the problem
Describe = Callable[[Problem, Operands, int], LibraryCode]


class AbstractLibraryMatmul(abc.ABC):
    """A baseline library's matmul of given inputs, at fixed addresses. Final subclasses only."""

    name: str  # with version and kernel: "MKL 2026.2 avx512"
    operands: tuple[Array, ...]  # A, B and C in memory, with the problem's alignment and no more

    @abc.abstractmethod
    def repeat(self, times: int) -> None:
        """Computes the matmul of the same inputs ``times`` times."""

    @abc.abstractmethod
    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once, and does little else."""

    @property
    @abc.abstractmethod
    def result(self) -> Array:
        """Returns the last C, of shape (rows, n), where rows are those of all matrices of a batch."""


@final
class CompiledLibraryMatmul(AbstractLibraryMatmul):
    """The matmul of given inputs by a C library, called from JIT-compiled code without Python in between."""

    def __init__(self, problem: Problem, inputs: Inputs, threads: int, describe: Describe) -> None:
        """Places the operands, compiles the call and pins the library's threads.

        Raises TunerError where ``describe`` does: the library is missing or refuses the problem.
        """
        offset = problem.offset_bytes
        result = placed_empty((problem.rows, problem.sizes[1]), output_dtype(problem), offset)
        placed = (placed_copy(inputs.a, offset), placed_copy(inputs.b, offset), result)
        described = describe(problem, placed, threads)
        self.operands = placed
        self.name = described.name
        if problem.batch > 1 and not described.computes_batch:
            self.name += ", a call for each matrix"
        m, n, _ = problem.sizes
        matrices = 1 if described.computes_batch else problem.batch
        whole = Partition("baseline", 0, 0, m, n, 0, matrices)
        bare = matrix_bytes(replace(problem, epilogue="none"))
        self._code = JittedModule(with_batch_loops(described.text, (whole,), bare), (whole.called,))
        self._arguments = PackedArguments(*(each.ctypes.data for each in placed))
        self._calls = ((self._code.addresses[whole.called], self._arguments.address),)
        self._kept = described.kept
        self._team = ThreadTeam(1)
        pin_working_threads(self.repeat, processors(threads))

    @property
    def result(self) -> Array:
        """Returns the last C, of shape (rows, n)."""
        return self.operands[2]

    def repeat(self, times: int) -> None:
        """Computes the matmul of the same inputs ``times`` times."""
        self._team.repeat(self._calls, times)

    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once, and does little else."""
        return self._team.once(self._calls)
