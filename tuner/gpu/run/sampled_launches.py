"""Simulates some blocks of large kernel launches, and compares them with a second implementation."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tuner.core.device_programs import DeviceProgram, MatmulKernel
from tuner.core.numpy_types import dtype_of
from tuner.core.problem import Problem
from tuner.gpu.interpreter.kernels import LaneKernel, LaneLaunch, read_kernels
from tuner.gpu.ptxsim.device.kernels import POINTER_BYTES, Near, PreparedLaunch
from tuner.gpu.ptxsim.device.memory import MemoryRegion
from tuner.gpu.ptxsim.launch import PausingRun
from tuner.gpu.ptxsim.memory.global_memory import Touched, device_number
from tuner.gpu.ptxsim.ptx.geometry import Index3, linear, whole_clusters
from tuner.gpu.target.block_sample import sample, written_tiles

Array = npt.NDArray[Any]
IsTimeUp = Callable[[], bool]  # returns whether the time limit of the references is exceeded
REFERENCES_LIMIT_S = 20.0  # for all references of a run, without the sampled blocks


class LaunchCopies:
    """Copies of the memory regions that the parameters of a kernel launch point into.

    ``launch``: the same launch, with parameters that point into the copies.
    """

    def __init__(self, launch: PreparedLaunch, near: Near) -> None:
        self._regions = {region.address: region for region in regions_of(launch, near)}
        self._copies = {
            address: MemoryRegion(region.name, region.kind, region.bytes.copy(), region.number)
            for address, region in self._regions.items()
        }
        self.launch = replace(launch, parameters=tuple(map(self._moved, launch.parameters)))

    def near(self, address: int) -> MemoryRegion | None:
        """Returns the copy that contains an address, or the copy of the device buffer that it belongs to.

        An address belongs to a buffer by its high bits, also outside of the buffer's bytes. None if it
        belongs to no copy.
        """
        number = device_number(address)
        copies = self._copies.values()
        return next((copy for copy in copies if copy.holds(address, 1) or copy.number == number), None)

    def of(self, region: MemoryRegion) -> MemoryRegion:
        """Returns the copy of a memory region that a parameter of the launch points into."""
        return self._copies[region.address]

    def in_place(self, touched: tuple[Touched, ...]) -> tuple[Touched, ...]:
        """Returns recorded memory accesses to copies as accesses to the original regions."""
        origins = {copy.address: address for address, copy in self._copies.items()}
        return tuple(
            replace(access, address=origins.get(access.address, access.address)) for access in touched
        )

    def _moved(self, content: bytes) -> bytes:
        address = int.from_bytes(content, "little")
        for region in self._regions.values() if len(content) == POINTER_BYTES else ():
            if region.holds(address, 1):
                moved = address - region.address + self._copies[region.address].address
                return moved.to_bytes(POINTER_BYTES, "little")
        return content


def regions_of(launch: PreparedLaunch, near: Near) -> tuple[MemoryRegion, ...]:
    """Returns the memory regions that a launch's parameters point into, each once."""
    pointers = (content for content in launch.parameters if len(content) == POINTER_BYTES)
    regions = (near(int.from_bytes(content, "little")) for content in pointers)
    return tuple({region.address: region for region in regions if region is not None}.values())


@dataclass(frozen=True, eq=False)
class ComparedElements:
    """Elements that the simulated blocks of a launch wrote (``actual``), and a reference's (``expected``)."""

    element: str  # MLIR element type; tf32 for a sum of products of tf32 factors
    terms: int  # number of terms that an element may be the sum of
    actual: Array
    expected: Array


@dataclass(frozen=True, eq=False)
class ReferenceOutcome:
    """What a reference implementation computed of a kernel launch, to check the simulator's results."""

    blocks: int  # number of blocks that it computed
    compared: tuple[ComparedElements, ...]  # of the blocks that the simulator ran


@dataclass(frozen=True, eq=False)
class PartialLaunch:
    """A kernel launch of which the simulator has run some blocks, on copies of its memory."""

    launch: PreparedLaunch
    near: Near
    blocks: tuple[Index3, ...]  # the blocks that were run
    copies: LaunchCopies
    touched: Sequence[Touched]  # accesses of these blocks to the copies

    def written(self, region: MemoryRegion, item_bytes: int) -> Array:
        """Returns a boolean array: per element of a memory region, whether the simulated blocks wrote it.

        ``item_bytes``: size of an element.
        """
        items = region.bytes.size // item_bytes
        written = np.zeros(items, bool)
        for access in self.touched:
            if access.address == region.address:
                written |= access.written(items, item_bytes)
        return written


class AbstractReference(Protocol):
    """A second implementation of one kernel, with which the simulator's results are compared."""

    @property
    def name(self) -> str:
        """Returns the name of this reference implementation in reports: "the interpreter"."""

    def fits(self, launch: PreparedLaunch) -> bool:
        """Returns whether this reference can compute a launch: it has the parameters of the kernel."""

    def finish(self, sampled: PartialLaunch, is_late: IsTimeUp) -> ReferenceOutcome:
        """Computes the launch in its original memory; returns the elements to compare with the simulator's.

        First computes all blocks that the simulator ran, then the others, until ``is_late()`` returns True. A
        reference that computes all blocks at once ignores ``is_late``.
        """


@dataclass(frozen=True, eq=False)
class InterpretedReference:
    """A reference implementation of a kernel that interprets the kernel's MLIR."""

    kernel: LaneKernel
    name: str = "the interpreter"

    def fits(self, launch: PreparedLaunch) -> bool:
        try:
            self.kernel.pointers(launch.parameters)
        except ValueError:
            return False
        return True

    def finish(self, sampled: PartialLaunch, is_late: IsTimeUp) -> ReferenceOutcome:
        launch = sampled.launch
        again = LaunchCopies(launch, sampled.near)
        chosen = tuple(linear(block, launch.grid) for block in sampled.blocks)
        self._run(again.launch, chosen)
        elements: dict[int, tuple[MemoryRegion, str]] = {}  # a region has its first memref's type
        for address, element in self.kernel.pointers(launch.parameters):
            region = sampled.near(address)
            if region is not None:
                elements.setdefault(region.address, (region, element))
        compared = tuple(
            self._compared(element, region, again.of(region), sampled)
            for region, element in elements.values()
        )
        piece = self._run(launch, chosen).blocks_at_once  # a second time, now in place
        others = np.setdiff1d(np.arange(math.prod(launch.grid)), chosen)
        done = 0
        while done < len(others) and not is_late():
            self._run(launch, others[done : done + piece].tolist())
            done = min(done + piece, len(others))
        return ReferenceOutcome(
            len(chosen) + done, tuple(elements for elements in compared if elements.actual.size)
        )

    def _run(self, launch: PreparedLaunch, blocks: Sequence[int]) -> LaneLaunch:
        sizes = LaneLaunch(launch.grid, launch.block, launch.shared_bytes, blocks)
        self.kernel.launch_bytes(sizes, launch.parameters)
        return sizes

    def _compared(
        self, element: str, before: MemoryRegion, again: MemoryRegion, sampled: PartialLaunch
    ) -> ComparedElements:
        """Returns the elements that the sampled blocks wrote, or that either implementation changed."""
        copy = sampled.copies.of(before)
        dtype = dtype_of(element)
        size = before.bytes.size // dtype.itemsize * dtype.itemsize  # without an incomplete number at the end
        numbers = [region.bytes[:size].view(dtype) for region in (before, copy, again)]
        was, actual, expected = (number.view(f"u{dtype.itemsize}") for number in numbers)  # bits
        chosen = sampled.written(copy, dtype.itemsize) | (actual != was) | (expected != was)
        return ComparedElements(element, self.kernel.terms, numbers[1][chosen], numbers[2][chosen])


@dataclass(frozen=True, eq=False)
class MatmulReference:
    """A reference implementation of a matmul kernel: numpy computes the product in float64."""

    kernel: MatmulKernel
    name: str = "float64 products"

    def fits(self, launch: PreparedLaunch) -> bool:
        return len(launch.parameters) == len(self.kernel.buffers)

    def finish(self, sampled: PartialLaunch, is_late: IsTimeUp) -> ReferenceOutcome:
        problem = self.kernel.problem
        launch = sampled.launch
        copies = sampled.copies
        a, b, c = (self._matrix(launch, sampled.near, name) for name in "abc")
        actual = self._matrix(copies.launch, copies.near, "c")
        region = copies.near(actual.ctypes.data)
        assert region is not None
        first = (actual.ctypes.data - region.address) // actual.itemsize
        written = sampled.written(region, actual.itemsize)[first : first + actual.size]
        mask = written.reshape(actual.shape)
        tiles = {block[:2] for block in sampled.blocks}
        written_tiles(mask, len(tiles), launch.grid[:2])  # raises for a tile of a sampled block with gaps
        c[...] = product(problem, a, b).astype(c.dtype)
        element = "tf32" if problem.dtype == "tf32" else problem.result_dtype
        compared = ComparedElements(element, problem.sizes[2], actual[mask], c[mask])
        return ReferenceOutcome(math.prod(launch.grid), (compared,))

    def _matrix(self, launch: PreparedLaunch, near: Near, name: str) -> Array:
        problem = self.kernel.problem
        address = int.from_bytes(launch.parameters[self.kernel.buffers.index(name)], "little")
        region = near(address)
        assert region is not None
        element = problem.result_dtype if name == "c" else problem.stored_dtype
        dtype = dtype_of(element)
        shape = shape_of(problem, name)
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
    wide = [matrix.astype(np.float64) for matrix in (a, b)]
    left, right = (
        matrix.T if letter == "t" else matrix for matrix, letter in zip(wide, problem.layout, strict=True)
    )
    total: Array = left @ right
    return total


@dataclass(frozen=True, eq=False)
class LaunchSample:
    """How many blocks of one launch the simulator ran, and the elements to compare with a reference."""

    kernel: str
    blocks: int  # blocks of the launch
    simulated: int  # blocks that the simulator ran
    reference: str = ""  # name of the implementation that computed the launch; "": the simulator ran all
    finished: int = 0  # blocks that the reference computed: fewer than all where its time ran out
    compared: tuple[ComparedElements, ...] = ()


class SampledLaunches:
    """Simulates only some blocks of large kernel launches; a reference implementation computes the launch.

    The memory after a sampled launch is that of the reference, which later launches and the host read. A slow
    reference computes the sampled blocks, and as many others as a time limit allows.
    """

    def __init__(
        self,
        program: DeviceProgram,
        limit: int,  # pairs (x, y) of blocks to simulate of a launch; of a larger launch 9 to about 20
        note: Callable[[LaunchSample], None],  # receives one sample per launch
        references_limit_s: float = REFERENCES_LIMIT_S,  # of all references of a run
    ) -> None:
        self._limit = limit
        self._note = note
        self._left_s = references_limit_s
        self._references = references_of(program)

    def run(self, launch: PreparedLaunch, near: Near, seed: int | None) -> PausingRun:
        """Generator that simulates a launch, or only some blocks of a large launch with a reference.

        Returns the simulation. ``near`` finds the memory region of an address. ``seed``: of the schedule of
        the threads; None: a fixed schedule. Raises DeviceError for a defect in the simulated kernel,
        CandidateError where the reference fails.
        """
        count = math.prod(launch.grid)
        reference = self._references.get(launch.name)
        blocks = self._blocks(launch)
        if reference is None or len(blocks) >= count or not reference.fits(launch):
            self._note(LaunchSample(launch.name, count, count))
            return (yield from launch.pausing_run(near, seed))
        copies = LaunchCopies(launch, near)
        simulation = yield from copies.launch.pausing_run(copies.near, seed, blocks)
        blocks = whole_clusters(blocks, simulation.cluster)
        start_s = time.monotonic()
        sampled = PartialLaunch(launch, near, blocks, copies, simulation.touched)
        outcome = reference.finish(sampled, lambda: time.monotonic() - start_s > self._left_s)
        self._left_s -= time.monotonic() - start_s
        share = (count, len(blocks), reference.name, outcome.blocks)
        self._note(LaunchSample(launch.name, *share, outcome.compared))
        return replace(simulation, touched=copies.in_place(simulation.touched))

    def _blocks(self, launch: PreparedLaunch) -> tuple[Index3, ...]:
        blocks = sample(launch.grid, self._limit)
        if launch.grid[2] == 1:
            return blocks
        # sampled along z as well: about twice the limit in all
        return blocks[:: max(1, len(blocks) // max(self._limit, 1) // 2)]


def references_of(program: DeviceProgram) -> Mapping[str, AbstractReference]:
    """Returns the reference implementation of each kernel of a program that has one, by kernel name."""
    interpreted = read_kernels(program.reference) if program.reference else {}
    matmuls = {matmul.name: MatmulReference(matmul) for matmul in program.matmuls}
    return {name: InterpretedReference(kernel) for name, kernel in interpreted.items()} | matmuls
