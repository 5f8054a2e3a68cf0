"""The expected effect of a launch: computed by the interpreter of its IR, or by numpy for a matmul."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tuner.core.device_program import MatmulKernel
from tuner.core.problem import Problem
from tuner.programs.interpret.kernels import LaneKernel, LaneLaunch
from tuner.programs.run.element_types import dtype_of
from tuner.programs.run.sampled.launch_copies import LaunchCopies
from tuner.simulator.device.kernels import Near, PreparedLaunch
from tuner.simulator.device.memory import MemoryRegion
from tuner.simulator.ptx.geometry import Index3, linear
from tuner.simulator.ptx.memory.touched import Touched
from tuner.simulator.written_tiles import written_tiles

Array = npt.NDArray[Any]


IsTimeUp = Callable[[], bool]  # returns whether the time limit of the references is exceeded


@dataclass(frozen=True, eq=False)
class ComparedElements:
    """Numbers that sampled thread blocks wrote, and a reference's numbers at the same addresses."""

    element: str  # MLIR element type; tf32 for a sum of products of tf32 factors
    terms: int  # number of terms that an element may be the sum of
    found: Array
    expected: Array


@dataclass(frozen=True, eq=False)
class ReferenceOutcome:
    """What a reference implementation computed of a kernel launch, to check the simulator's results.

    It has the number of blocks computed, and the elements of the blocks that the simulator ran as a sample,
    each as found by the simulator and as expected by the reference.
    """

    blocks: int
    compared: tuple[ComparedElements, ...]


@dataclass(frozen=True, eq=False)
class PartialLaunch:
    """A kernel launch of which the simulator has run some blocks, on copies of its memory."""

    launch: PreparedLaunch
    near: Near
    blocks: tuple[Index3, ...]  # the blocks that were run
    copies: LaunchCopies
    touched: Sequence[Touched]  # accesses of these blocks to the copies

    def written(self, region: MemoryRegion, item_bytes: int) -> Array:
        """Returns per element of ``region``, a copied memory region, whether the simulated blocks wrote it.

        ``item_bytes`` is the size of an element.
        """
        items = region.bytes.size // item_bytes
        written = np.zeros(items, bool)
        for one in self.touched:
            if one.address == region.address:
                written |= one.written(items, item_bytes)
        return written


class AbstractReference(Protocol):
    """A second implementation of one kernel, with which the simulator's results are compared."""

    @property
    def name(self) -> str:
        """Returns the name of this reference implementation in reports: "the interpreter"."""

    def fits(self, launch: PreparedLaunch) -> bool:
        """Returns whether this reference can execute a launch: its parameters are those that it expects."""

    def finish(self, sampled: PartialLaunch, is_late: IsTimeUp) -> ReferenceOutcome:
        """Executes the launch on its original memory: sampled blocks first, other blocks up to a time limit.

        Returns the number of executed blocks, and the elements of the sampled blocks to compare.

        Args:
            sampled: the launch, of which the simulator ran some blocks on copies.
            is_late: returns whether the time limit is exceeded.

        Raises CandidateError where the sampled blocks left elements unwritten, or the launch faults.
        """


@dataclass(frozen=True, eq=False)
class InterpretedReference:
    """A reference implementation of a kernel that interprets the kernel's MLIR."""

    kernel: LaneKernel
    name: str = "the interpreter"

    def fits(self, launch: PreparedLaunch) -> bool:
        """Returns whether the launch has parameters that the interpreter can read for this kernel."""
        try:
            self.kernel.pointers(launch.parameters)
        except ValueError:
            return False
        return True

    def finish(self, sampled: PartialLaunch, is_late: IsTimeUp) -> ReferenceOutcome:
        """Interprets the launch on its original memory: sampled blocks, then others until ``is_late()``.

        Returns the number of interpreted blocks, and the elements that the sampled blocks wrote or changed,
        as found by the simulator and by the interpreter.
        """
        launch = sampled.launch
        again = LaunchCopies(launch, sampled.near)
        chosen = tuple(linear(block, launch.grid) for block in sampled.blocks)
        self._run(again.launch, chosen)
        compared = tuple(
            self._next_to(element, region, again.of(region), sampled)
            for region, element in self._elements(launch, sampled.near)
        )
        done = self._run_until(launch, chosen, is_late)
        return ReferenceOutcome(done, tuple(each for each in compared if each.found.size))

    def _run_until(self, launch: PreparedLaunch, first: tuple[int, ...], is_late: IsTimeUp) -> int:
        """Runs the blocks ``first``, then other blocks up to a time limit; returns the number of blocks."""
        piece = self._run(launch, first).blocks_at_once
        others = np.setdiff1d(np.arange(math.prod(launch.grid)), first)
        done = 0
        while done < len(others) and not is_late():
            self._run(launch, others[done : done + piece].tolist())
            done = min(done + piece, len(others))
        return len(first) + done

    def _run(self, launch: PreparedLaunch, blocks: Sequence[int]) -> LaneLaunch:
        sizes = LaneLaunch(launch.grid, launch.block, launch.shared_bytes, blocks)
        self.kernel.launch_bytes(sizes, launch.parameters)
        return sizes

    def _elements(self, launch: PreparedLaunch, near: Near) -> list[tuple[MemoryRegion, str]]:
        """Returns the regions of a launch, each with the element type of the first memref in the region."""
        found: dict[int, tuple[MemoryRegion, str]] = {}
        for address, element in self.kernel.pointers(launch.parameters):
            region = near(address)
            if region is not None:
                found.setdefault(region.address, (region, element))
        return list(found.values())

    def _next_to(
        self, element: str, before: MemoryRegion, again: MemoryRegion, sampled: PartialLaunch
    ) -> ComparedElements:
        """Returns the elements that the sampled blocks or the interpreter wrote or changed."""
        copy = sampled.copies.of(before)
        numbers = [_numbers(each.bytes, element) for each in (before, copy, again)]
        was, found, expected = (_bits(each) for each in numbers)
        written = sampled.written(copy, numbers[1].itemsize)
        chosen = written | (found != was) | (expected != was)
        return ComparedElements(element, self.kernel.terms, numbers[1][chosen], numbers[2][chosen])


@dataclass(frozen=True, eq=False)
class MatmulReference:
    """A reference implementation of a matmul kernel: numpy computes the product in float64."""

    kernel: MatmulKernel
    name: str = "float64 products"

    def fits(self, launch: PreparedLaunch) -> bool:
        """Returns whether the launch has one parameter per buffer of the matmul."""
        return len(launch.parameters) == len(self.kernel.buffers)

    def finish(self, sampled: PartialLaunch, is_late: IsTimeUp) -> ReferenceOutcome:
        """Computes all of C with numpy and writes it to the original memory; ``is_late`` is not used.

        Returns the number of all blocks, and the elements of C that the sampled blocks wrote, to compare.
        Raises CandidateError(VERIFY) where the sampled blocks did not write whole tiles of C.
        """
        problem, launch, copies = self.kernel.problem, sampled.launch, sampled.copies
        a, b, c = (self._matrix(launch, sampled.near, name) for name in "abc")
        found = self._matrix(copies.launch, copies.near, "c")
        region = copies.near(found.ctypes.data)
        assert region is not None
        first = (found.ctypes.data - region.address) // found.itemsize
        written = sampled.written(region, found.itemsize)[first : first + found.size]
        mask = written.reshape(found.shape)
        places = {block[:2] for block in sampled.blocks}
        written_tiles(mask, len(places), (launch.grid[0], launch.grid[1]))
        c[...] = product(problem, a, b).astype(c.dtype)
        element = "tf32" if problem.dtype == "tf32" else problem.result_dtype
        compared = ComparedElements(element, problem.sizes[2], found[mask], c[mask])
        return ReferenceOutcome(math.prod(launch.grid), (compared,))

    def _matrix(self, launch: PreparedLaunch, near: Near, name: str) -> Array:
        problem = self.kernel.problem
        address = int.from_bytes(launch.parameters[self.kernel.buffers.index(name)], "little")
        region = near(address)
        assert region is not None
        element = problem.result_dtype if name == "c" else problem.stored_dtype
        dtype, shape = dtype_of(element), shape_of(problem, name)
        first = address - region.address
        size_bytes = int(np.prod(shape)) * dtype.itemsize
        return region.bytes[first : first + size_bytes].view(dtype).reshape(shape)


def shape_of(problem: Problem, name: str) -> tuple[int, int]:
    """Returns the (rows, columns) of matrix "a", "b" or "c" as stored, transposed as the layout says."""
    m, n, k = problem.sizes
    a = (k, m) if problem.layout[0] == "t" else (m, k)
    b = (n, k) if problem.layout[1] == "t" else (k, n)
    return {"a": a, "b": b, "c": (m, n)}[name]


def product(problem: Problem, a: Array, b: Array) -> Array:
    """Returns the matrix product in float64 of A and B as stored, transposed as the problem's layout says."""
    wide = [each.astype(np.float64) for each in (a, b)]
    one, other = (
        each.T if letter == "t" else each for each, letter in zip(wide, problem.layout, strict=True)
    )
    found: Array = one @ other
    return found


def _numbers(content: npt.NDArray[np.uint8], element: str) -> Array:
    """Returns bytes as numbers; an incomplete number at the end is dropped."""
    dtype = dtype_of(element)
    return content[: content.size // dtype.itemsize * dtype.itemsize].view(dtype)


def _bits(numbers: Array) -> Array:
    return numbers.view(f"u{numbers.itemsize}")
