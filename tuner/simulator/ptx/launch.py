"""Public functions: simulate one launch of a kernel of PTX text. Programs run on a SimulatedDevice."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.kernel_program import KernelProgram, Launch
from tuner.simulator.ptx.decode.program import DecodedBlock, decode
from tuner.simulator.ptx.defects import Defect, SimulationError
from tuner.simulator.ptx.dtypes import Array
from tuner.simulator.ptx.engine import Engine, ExecutionCounts, Pause
from tuner.simulator.ptx.geometry import Geometry, Index3
from tuner.simulator.ptx.instruction import PtxKernel, PtxModule
from tuner.simulator.ptx.memory.global_memory import Find, GlobalMemory
from tuner.simulator.ptx.memory.map_layouts import tensor_of
from tuner.simulator.ptx.parse.layout import Layout, layout_of
from tuner.simulator.ptx.parse.parser import parse
from tuner.simulator.ptx.races.access_sample import Access, AccessSample
from tuner.simulator.ptx.simulation import Simulation
from tuner.simulator.ptx.state.arguments import (
    Argument,
    ModuleVariables,
    block_numbers,
    check_launch,
    cluster_of,
    first_content,
    place_arguments,
    place_variables,
)
from tuner.simulator.ptx.state.launch_state import LaunchState, random_unit_lanes

LANES_LIMIT = 2048  # lanes of resident blocks: more lanes need more memory, fewer have more overhead
WAITING_LIMIT = 8  # times LANES_LIMIT: blocks that wait for other blocks while later ones are run
Turns: TypeAlias = Generator[Pause, None, Simulation]  # a launch that lets other work run now and then


def simulate(
    ptx: str,
    kernel: str,
    grid: Index3,
    block: Index3,
    arguments: tuple[Argument, ...],
    dynamic_shared_bytes: int = 0,
    blocks: tuple[Index3, ...] | None = None,
    schedule_seed: int | None = None,
) -> Simulation:
    """Executes one launch of a kernel on numpy arrays, and returns counts, bank conflicts and hazards.

    Args:
    - ptx, kernel: the PTX text, and the name of one of its kernels.
    - grid, block: thread blocks of the grid, and threads of a block, along x, y and z.
    - arguments: one per parameter. Arrays must be C-contiguous, and the kernel changes them in place; a
      ``Pointer`` points into an array; numbers are converted to the parameter's type; bytes are passed
      unchanged; a ``TensorMap`` stands for a CUtensorMap.
    - dynamic_shared_bytes: dynamic shared memory of each block.
    - blocks: the thread blocks (x, y, z) to execute, with all blocks of their clusters; None: the whole grid.
    - schedule_seed: seed of a random schedule of threads; None: a fixed schedule. Vector clocks find
      races that this schedule does not show.

    Raises SimulationError for a fault (``kind`` holds the defect) and for text that is not PTX,
    UnsupportedInstruction for an instruction that is not simulated, UsageError for an unknown kernel and a
    launch that does not fit the kernel.
    """
    module = parse(ptx)
    return simulate_module(
        module, kernel, grid, block, arguments, dynamic_shared_bytes, blocks, schedule_seed
    )


def simulate_module(
    module: PtxModule,
    kernel: str,
    grid: Index3,
    block: Index3,
    arguments: tuple[Argument, ...],
    dynamic_shared_bytes: int = 0,
    blocks: tuple[Index3, ...] | None = None,
    schedule_seed: int | None = None,
    variables: ModuleVariables | None = None,
) -> Simulation:
    """Executes one launch of a kernel, as ``simulate`` does, of a PTX module that is already parsed.

    ``variables`` holds the bytes of the module's global and constant variables by name, as ``first_content``
    returns them; the kernel changes them in place, so that they keep their content between launches. None:
    the initial content.
    """
    entry = kernel_of(module, kernel)
    check_launch(entry, grid, block, arguments)
    prepared = prepare(module, entry)
    return prepared.run(grid, block, arguments, dynamic_shared_bytes, blocks, schedule_seed, variables)


@dataclass(frozen=True, eq=False)
class PreparedKernel:
    """A kernel of PTX, laid out in memory and decoded once, for any number of simulated launches."""

    module: PtxModule
    layout: Layout
    program: tuple[DecodedBlock, ...]

    def run(
        self,
        grid: Index3,
        block: Index3,
        arguments: tuple[Argument, ...],
        dynamic_shared_bytes: int = 0,
        blocks: tuple[Index3, ...] | None = None,
        schedule_seed: int | None = None,
        variables: ModuleVariables | None = None,
    ) -> Simulation:
        """Executes one launch, whose arguments are those of ``simulate_module``; changes arrays in place.

        The launch must be one that ``check_launch`` accepts, which is not checked again. Raises
        SimulationError for a fault, also where threads wait for ever for what none of them writes, UsageError
        for an argument that does not fit its parameter or a block outside of the grid.
        """
        turns = self.turns(grid, block, arguments, dynamic_shared_bytes, blocks, schedule_seed, variables, [])
        return alone(turns, self.layout.kernel.name)

    def turns(
        self,
        grid: Index3,
        block: Index3,
        arguments: tuple[Argument, ...],
        dynamic_shared_bytes: int,
        blocks: tuple[Index3, ...] | None,
        schedule_seed: int | None,
        variables: ModuleVariables | None,
        printed: list[str],
        find: Find | None = None,
    ) -> Turns:
        """Executes one launch, as ``run`` does; yields where it is whenever other work may run.

        Blocks whose threads wait in a loop for what others write are resumed when later blocks have run.
        ``printed`` receives what the kernel prints, also before a fault. ``find`` finds memory that is none
        of the arguments, but whose address the kernel has read; None: there is none.
        """
        entry, cluster = self.layout.kernel, cluster_of(self.layout.kernel)
        numbers = block_numbers(grid, blocks, cluster)
        global_ = GlobalMemory(self.layout.cell_bytes, *(() if find is None else (find,)))
        launch = self._launch(arguments, dynamic_shared_bytes, variables, global_, printed=printed)
        counts, clusters = ExecutionCounts(), max(1, LANES_LIMIT // math.prod(block + cluster))
        at_once = clusters * math.prod(cluster)
        waiting: list[Engine] = []
        for first in range(0, len(numbers), at_once):
            rng = None if schedule_seed is None else np.random.default_rng([schedule_seed, first])
            geometry = Geometry(grid, block, numbers[first : first + at_once], cluster)
            resident = launch.resident_blocks(geometry, rng)
            engine = Engine(entry, self.program, resident, counts, rng, random_unit_lanes(entry))
            while (pause := _turn(engine)) is not None and not pause.is_stuck:
                yield pause
            if pause is not None:
                waiting.append(engine)
            while len(waiting) == WAITING_LIMIT:
                yield from _resume(waiting)
        while waiting:
            yield from _resume(waiting)
        conflicts, hazards = launch.conflicts.conflicts(), launch.log.hazards()
        done = len(numbers), counts.instructions
        touched = launch.placement.global_.touched()
        return Simulation(entry.name, *done, conflicts, hazards, "".join(printed), touched, cluster)

    def accesses(
        self,
        grid: Index3,
        block: Index3,
        arguments: tuple[Argument, ...],
        dynamic_shared_bytes: int = 0,
        instructions: int = 4000,
    ) -> tuple[Access, ...]:
        """Simulates the beginning of a launch; returns a sample of its memory accesses, by PTX instruction.

        Only block (0, 0, 0) and its cluster run, for about ``instructions`` instructions; arrays are changed
        in place. The sample holds up to 16 accesses of warps per instruction: loads of global memory, and
        loads, stores and cp.async of shared memory. Raises SimulationError for a fault, UsageError for a
        launch that does not fit.
        """
        entry, cluster = self.layout.kernel, cluster_of(self.layout.kernel)
        check_launch(entry, grid, block, arguments)
        sample = AccessSample()
        global_ = GlobalMemory(self.layout.cell_bytes)
        launch = self._launch(arguments, dynamic_shared_bytes, None, global_, sample)
        geometry = Geometry(grid, block, block_numbers(grid, ((0, 0, 0),), cluster), cluster)
        with np.errstate(all="ignore"):
            resident = launch.resident_blocks(geometry, None)
            Engine(entry, self.program, resident, ExecutionCounts(), None).run(instructions)
        return tuple(sample.accesses())

    def _launch(
        self,
        arguments: tuple[Argument, ...],
        dynamic_shared_bytes: int,
        variables: ModuleVariables | None,
        global_: GlobalMemory,
        sample: AccessSample | None = None,
        printed: list[str] | None = None,
    ) -> LaunchState:
        place_variables(self.module, first_content(self.module) if variables is None else variables, global_)
        placement = place_arguments(self.layout, arguments, global_)
        shared_bytes = self.layout.static_shared_bytes + dynamic_shared_bytes
        text = [] if printed is None else printed
        return LaunchState(self.layout, placement, shared_bytes, printed=text, sample=sample)


def alone(turns: Turns, kernel: str) -> Simulation:
    """Runs a launch of ``kernel`` to its end while no other work runs.

    Raises SimulationError where its threads wait for ever, or what ``turns`` makes of this error.
    """
    before: Pause | None = None
    while True:
        try:
            pause = next(turns)
            if pause.is_stuck and before == pause:
                what = f"{Defect.ENDLESS.value}: nothing writes what is waited for"
                reason = f"kernel {kernel}: {what}: {pause.where}"
                turns.throw(SimulationError(Defect.ENDLESS, 0, reason))
        except StopIteration as end:
            return cast("Simulation", end.value)
        before = pause


def _turn(engine: Engine) -> Pause | None:
    with np.errstate(all="ignore"):  # registers wrap around and hold NaN by design
        return engine.turn()


def _resume(waiting: list[Engine]) -> Iterator[Pause]:
    """Gives each of ``waiting`` a turn, removes those that end; yields one pause for the others, if any."""
    pauses = [(engine, _turn(engine)) for engine in waiting]
    left = [(engine, pause) for engine, pause in pauses if pause is not None]
    waiting[:] = [engine for engine, _ in left]
    if left:
        is_stuck = len(left) == len(pauses) and all(pause.is_stuck for _, pause in left)
        yield Pause(left[0][1].where, is_stuck, left[-1][1].checksum)


def prepare(module: PtxModule, kernel: PtxKernel) -> PreparedKernel:
    """Lays out and decodes ``kernel``, a kernel of ``module``, for any number of launches.

    Raises UnsupportedInstruction for an instruction that is not simulated, SimulationError for a branch to an
    unknown label or registers of a type that is not simulated.
    """
    layout = layout_of(module, kernel)
    symbols = {name: slot.address for name, slot in layout.slots.items()}
    # variables come first in each launch's global memory, so that their addresses never change
    symbols |= place_variables(module, first_content(module), GlobalMemory())
    return PreparedKernel(module, layout, decode(layout, symbols))


def program_accesses(program: KernelProgram, instructions: int = 4000) -> tuple[tuple[Access, ...], ...]:
    """Returns, for each launch of ``program``, a sample of its memory accesses.

    Simulates about the first ``instructions`` instructions of block (0, 0, 0) and its cluster. A sample holds
    up to 16 accesses of warps per PTX instruction: loads of global memory, and loads, stores and cp.async of
    shared memory. All buffers initially hold zeros; launches that come later see what earlier ones wrote.
    Raises SimulationError, UnsupportedInstruction and UsageError as ``simulate`` does.
    """
    arrays: dict[str, Array] = {each.name: np.zeros(each.bytes, np.uint8) for each in program.buffers}
    module = parse(program.ptx)
    return tuple(
        prepare(module, kernel_of(module, launch.kernel)).accesses(
            launch.grid, launch.block, _arguments(launch, arrays), launch.dynamic_shared_bytes, instructions
        )
        for launch in program.launches
    )


def _arguments(launch: Launch, arrays: dict[str, Array]) -> tuple[Argument, ...]:
    """Returns the arguments of a launch: arrays, and tensor maps over arrays."""
    maps = {each.name: tensor_of(each.layout, arrays[each.buffer]) for each in launch.tensor_maps}
    return tuple(maps[name] if name in maps else arrays[name] for name in launch.arguments)


def kernel_of(module: PtxModule, name: str) -> PtxKernel:
    """Returns the kernel of ``module`` with this name. Raises UsageError for an unknown name."""
    names = [kernel.name for kernel in module.kernels]
    if name not in names:
        raise UsageError(f"{module.name}: found no kernel {name!r}, allowed {', '.join(names) or 'none'}")
    return module.kernels[names.index(name)]
