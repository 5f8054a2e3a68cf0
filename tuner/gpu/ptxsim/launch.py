"""Simulates one launch of a kernel of PTX text: preparation, execution block by block, and the result.

``simulate`` prepares a kernel and runs a whole launch. ``PreparedKernel.pausing_run`` is that as a generator:
arguments are placed in memory, groups of blocks are executed one after the other by an ``Engine`` each, and
counts and hazards become a ``Simulation``.
"""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tuner.core.compiled_code import KernelCode
from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.engine import Engine, ExecutionCounts, Pause
from tuner.gpu.ptxsim.instructions.decoder import DecodedBlock, decode
from tuner.gpu.ptxsim.memory.access_log import Access, AccessSample, BankConflict
from tuner.gpu.ptxsim.memory.global_memory import Find, GlobalMemory, Touched
from tuner.gpu.ptxsim.memory.tensor_maps import tensor_of
from tuner.gpu.ptxsim.ptx.defects import BENIGN, Defect, Hazard, SimulationError
from tuner.gpu.ptxsim.ptx.dtypes import Array
from tuner.gpu.ptxsim.ptx.geometry import Geometry, Index3
from tuner.gpu.ptxsim.ptx.layout import Layout, layout_of
from tuner.gpu.ptxsim.ptx.parser import parse
from tuner.gpu.ptxsim.ptx.syntax_tree import PtxKernel, PtxModule
from tuner.gpu.ptxsim.state.arguments import (
    Argument,
    ModuleVariables,
    block_numbers,
    check_launch,
    cluster_of,
    first_content,
    place_arguments,
    place_variables,
)
from tuner.gpu.ptxsim.state.resident_blocks import LaunchState, random_unit_lanes

LANES_LIMIT = 2048  # lanes of resident blocks: more lanes need more memory, fewer have more overhead
WAITING_LIMIT = 8  # batches of LANES_LIMIT lanes that may wait for other blocks while later batches run


@dataclass(frozen=True, eq=False)
class SimulatedCall:
    """What a launch gives to a kernel: blocks of the grid, threads of a block, arguments, shared memory."""

    grid: Index3
    block: Index3
    arguments: tuple[Argument, ...]  # one per parameter
    dynamic_shared_bytes: int = 0  # of each block


@dataclass(frozen=True)
class Simulation:
    """The result of one simulated launch that ran to its end: counts, bank conflicts, hazards, output."""

    kernel: str
    blocks: int  # simulated thread blocks
    instructions: int  # warp-level instructions
    conflicts: tuple[BankConflict, ...]  # of instructions that access shared memory, see ConflictCounter
    hazards: tuple[Hazard, ...]
    printed: str = ""  # output of vprintf
    touched: tuple[Touched, ...] = field(default=(), repr=False, compare=False)  # per array
    cluster: Index3 = (1, 1, 1)  # blocks of a cluster along x, y and z

    @property
    def races(self) -> tuple[Hazard, ...]:
        """Returns the hazards that can change the result.

        Blocks that synchronise by spinning are reported, too.
        """
        return tuple(hazard for hazard in self.hazards if hazard.kind not in BENIGN)

    @property
    def benign(self) -> tuple[Hazard, ...]:
        """Returns the hazards that change no result: unordered silent stores, and late accumulators.

        A silent store leaves the value in memory unchanged.
        """
        return tuple(hazard for hazard in self.hazards if hazard.kind in BENIGN)

    @property
    def conflict_ratio(self) -> float:
        """Returns the wavefronts of shared memory divided by those without bank conflicts.

        1.0 without accesses.
        """
        ideal = sum(conflict.ideal_wavefronts for conflict in self.conflicts)
        if ideal:
            return sum(conflict.wavefronts for conflict in self.conflicts) / ideal
        return 1.0

    def written(self, array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Returns which elements of ``array`` the launch wrote; all False if it is not an argument."""
        flags = np.zeros(array.size, bool)
        for touched in self.touched:
            if touched.address == array.ctypes.data:
                flags |= touched.written(array.size, array.itemsize)
        return flags.reshape(array.shape)


PausingRun: TypeAlias = Generator[Pause, None, Simulation]  # a launch; at each yield other work may run


def simulate(
    ptx: str | PtxModule,
    kernel: str,
    grid: Index3,
    block: Index3,
    arguments: tuple[Argument, ...],
    dynamic_shared_bytes: int = 0,
    blocks: tuple[Index3, ...] | None = None,
    schedule_seed: int | None = None,
    variables: ModuleVariables | None = None,
) -> Simulation:
    """Executes one launch of a kernel on numpy arrays, and returns counts, bank conflicts and hazards.

    Args:
    - ptx, kernel: PTX text or a parsed module, and the name of one of its kernels.
    - grid, block: thread blocks of the grid, and threads of a block, along x, y and z.
    - arguments: one per parameter. Arrays must be C-contiguous, and the kernel changes them in place; a
      ``Pointer`` points into an array; numbers are converted to the parameter's type; bytes are passed
      unchanged; a ``TensorMap`` stands for a CUtensorMap.
    - dynamic_shared_bytes: dynamic shared memory of each block.
    - blocks: the thread blocks (x, y, z) to execute, with all blocks of their clusters; None: the whole grid.
    - schedule_seed: seed of a random schedule of threads and order of blocks; None: a fixed one. Vector
      clocks find races that this schedule does not show.
    - variables: bytes of the module's variables by name, which the launch changes in place; None: their
      initial bytes (``first_content``).

    Raises SimulationError for a fault (``kind`` holds the defect) and for text that is not PTX,
    UnsupportedInstruction for an instruction that is not simulated, UsageError for an unknown kernel and a
    launch that does not fit the kernel.
    """
    module = parse(ptx) if isinstance(ptx, str) else ptx
    entry = kernel_of(module, kernel)
    check_launch(entry, grid, block, arguments)
    call = SimulatedCall(grid, block, arguments, dynamic_shared_bytes)
    initial = first_content(module) if variables is None else variables
    pausing_run = prepare(module, entry).pausing_run(call, initial, [], blocks, schedule_seed)
    return alone(pausing_run, kernel)


@dataclass(frozen=True, eq=False)
class PreparedKernel:
    """A kernel of PTX, laid out in memory and decoded once, for any number of simulated launches."""

    module: PtxModule
    layout: Layout
    program: tuple[DecodedBlock, ...]

    def pausing_run(
        self,
        call: SimulatedCall,
        variables: ModuleVariables,
        printed: list[str],
        blocks: tuple[Index3, ...] | None = None,
        schedule_seed: int | None = None,
        find: Find | None = None,
    ) -> PausingRun:
        """Returns a generator that executes one launch; it yields a Pause when other work may run.

        The generator changes arrays and variables in place, and returns the Simulation. Threads that only
        repeat the same raise nothing: stuck pauses are yielded without end.

        Args:
        - call: its arguments have been accepted by ``check_launch``.
        - variables, blocks, schedule_seed: as for ``simulate``.
        - printed: gets what the kernel prints, also before a fault.
        - find: looks up addresses that are in no argument.

        The generator raises SimulationError for a fault, UsageError for an argument that does not fit its
        parameter, or a block outside of the grid.
        """
        entry = self.layout.kernel
        cluster = cluster_of(self.layout.kernel)
        numbers = _in_order(block_numbers(call.grid, blocks, cluster), math.prod(cluster), schedule_seed)
        global_ = GlobalMemory(self.layout.cell_bytes, *(() if find is None else (find,)))
        launch = self._launch(call, variables, global_, printed=printed)
        counts = ExecutionCounts()
        clusters = max(1, LANES_LIMIT // math.prod(call.block + cluster))
        at_once = clusters * math.prod(cluster)
        waiting: list[Engine] = []
        for first in range(0, len(numbers), at_once):
            rng = None if schedule_seed is None else np.random.default_rng([schedule_seed, first])
            geometry = Geometry(call.grid, call.block, numbers[first : first + at_once], cluster)
            resident = launch.resident_blocks(geometry, rng)
            engine = Engine(entry, self.program, resident, counts, rng, random_unit_lanes(entry))
            while (pause := _run_to_pause(engine)) is not None and not pause.is_stuck:
                yield pause
            if pause is not None:
                waiting.append(engine)
            while len(waiting) == WAITING_LIMIT:
                yield from _resume(waiting)
        while waiting:
            yield from _resume(waiting)
        conflicts = launch.conflicts.conflicts()
        hazards = launch.log.hazards()
        touched = launch.placement.global_.touched()
        text = "".join(printed)
        counted = (len(numbers), counts.instructions, conflicts, hazards)
        return Simulation(entry.name, *counted, text, touched, cluster)

    def accesses(self, call: SimulatedCall, instructions: int = 4000) -> tuple[Access, ...]:
        """Simulates about the first ``instructions`` instructions of block (0, 0, 0) and its cluster.

        Changes the call's arrays. Returns a sample of the memory accesses. Raises SimulationError or
        UsageError as a whole launch would.
        """
        entry = self.layout.kernel
        cluster = cluster_of(self.layout.kernel)
        check_launch(entry, call.grid, call.block, call.arguments)
        sample = AccessSample()
        global_ = GlobalMemory(self.layout.cell_bytes)
        launch = self._launch(call, first_content(self.module), global_, sample)
        numbers = block_numbers(call.grid, ((0, 0, 0),), cluster)
        geometry = Geometry(call.grid, call.block, numbers, cluster)
        with np.errstate(all="ignore"):
            resident = launch.resident_blocks(geometry, None)
            Engine(entry, self.program, resident, ExecutionCounts(), None).run(instructions)
        return tuple(sample.accesses())

    def _launch(
        self,
        call: SimulatedCall,
        variables: ModuleVariables,
        global_: GlobalMemory,
        sample: AccessSample | None = None,
        printed: list[str] | None = None,
    ) -> LaunchState:
        place_variables(self.module, variables, global_)
        placement = place_arguments(self.layout, call.arguments, global_)
        shared_bytes = self.layout.static_shared_bytes + call.dynamic_shared_bytes
        text = [] if printed is None else printed
        return LaunchState(self.layout, placement, shared_bytes, printed=text, sample=sample)


def _in_order(numbers: tuple[int, ...], cluster_blocks: int, schedule_seed: int | None) -> tuple[int, ...]:
    """Returns blocks as they run: in the order of their numbers, or whole clusters in a random one."""
    if schedule_seed is None:
        return numbers
    clusters = np.array(numbers).reshape(-1, cluster_blocks)
    order = np.random.default_rng([schedule_seed, len(numbers)]).permutation(len(clusters))
    return tuple(clusters[order].ravel().tolist())


def alone(pausing_run: PausingRun, kernel: str) -> Simulation:
    """Runs a launch to its end, without other work; ``kernel``: its name, for messages.

    Raises SimulationError for a defect of the kernel, and if its threads wait forever.
    """
    before: Pause | None = None
    while True:
        try:
            pause = next(pausing_run)
            if pause.is_stuck and before == pause:
                what = f"{Defect.ENDLESS.value}: nothing writes what is waited for"
                reason = f"kernel {kernel}: {what}: {pause.where}"
                pausing_run.throw(SimulationError(Defect.ENDLESS, 0, reason))
        except StopIteration as end:
            return cast("Simulation", end.value)
        before = pause


def _run_to_pause(engine: Engine) -> Pause | None:
    with np.errstate(all="ignore"):  # registers wrap around and hold NaN by design
        return engine.run_to_pause()


def _resume(waiting: list[Engine]) -> Iterator[Pause]:
    """Runs each engine of ``waiting`` to its next pause and removes engines that ended from the list.

    Yields one pause for all engines that remain; it is stuck if all are stuck and no engine ended.
    """
    pauses = [(engine, _run_to_pause(engine)) for engine in waiting]
    left = [(engine, pause) for engine, pause in pauses if pause is not None]
    waiting[:] = [engine for engine, _ in left]
    if left:
        is_stuck = len(left) == len(pauses) and all(pause.is_stuck for _, pause in left)
        yield Pause(left[0][1].where, is_stuck, left[-1][1].checksum)


def prepare(module: PtxModule, kernel: PtxKernel) -> PreparedKernel:
    """Lays out and decodes a kernel of ``module``, for any number of launches.

    Raises UnsupportedInstruction for an instruction that is not simulated, SimulationError for an unknown
    label, or registers of a type that is not simulated.
    """
    layout = layout_of(module, kernel)
    symbols = {name: slot.address for name, slot in layout.slots.items()}
    # variables come first in each launch's global memory, so that their addresses never change
    symbols |= place_variables(module, first_content(module), GlobalMemory())
    return PreparedKernel(module, layout, decode(layout, symbols))


def program_accesses(program: KernelCode) -> tuple[tuple[Access, ...], ...]:
    """Returns a sample of memory accesses for each launch of ``program``.

    Simulates about the first 4000 instructions of block (0, 0, 0) and its cluster; buffers begin as zeros.
    A sample holds up to 16 accesses of warps per PTX instruction: loads of global memory, and loads, stores
    and cp.async of shared memory. Raises SimulationError for a fault, UnsupportedInstruction for an
    instruction that is not simulated, UsageError for a launch that does not fit its kernel.
    """
    arrays: dict[str, Array] = {buffer.name: np.zeros(buffer.bytes, np.uint8) for buffer in program.buffers}
    module = parse(program.text)
    samples = []
    for launch in program.launches:
        maps = {
            tensor_map.name: tensor_of(tensor_map.layout, arrays[tensor_map.buffer])
            for tensor_map in launch.tensor_maps
        }
        arguments = tuple(maps[name] if name in maps else arrays[name] for name in launch.arguments)
        kernel = prepare(module, kernel_of(module, launch.kernel))
        call = SimulatedCall(launch.grid, launch.block, arguments, launch.dynamic_shared_bytes)
        samples.append(kernel.accesses(call))
    return tuple(samples)


def kernel_of(module: PtxModule, name: str) -> PtxKernel:
    """Returns the kernel of ``module`` with this name. Raises UsageError for an unknown name."""
    names = [kernel.name for kernel in module.kernels]
    if name not in names:
        raise UsageError(f"{module.name}: found no kernel {name!r}, allowed {', '.join(names) or 'none'}")
    return module.kernels[names.index(name)]
