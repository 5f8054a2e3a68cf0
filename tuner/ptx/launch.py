"""The public calls: simulate a kernel of any PTX text, or a whole kernel program."""

import math
from collections.abc import Mapping

import numpy as np

from tuner.errors import UsageError
from tuner.kernel import KernelProgram
from tuner.ptx.arguments import (
    Argument,
    block_numbers,
    check_launch,
    place,
    place_variables,
    program_buffers,
)
from tuner.ptx.chunks import Launch, random_unit_lanes
from tuner.ptx.decode.program import decode
from tuner.ptx.dtypes import Array
from tuner.ptx.engine import Counts, Engine
from tuner.ptx.geometry import Geometry, Index3
from tuner.ptx.global_memory import GlobalMemory
from tuner.ptx.instruction import Kernel, Module
from tuner.ptx.layout import layout_of
from tuner.ptx.parser import parse
from tuner.ptx.simulation import Simulation
from tuner.ptx.touched import Touched

LANES_LIMIT = 2048  # that run at once: more need more memory, fewer pay more overhead


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
    """Executes a kernel of PTX text; arrays among the arguments are its buffers, changed in place.

    Arrays must be C-contiguous; numbers are passed in the parameter's type, bytes as they are; a
    ``TensorMap`` stands for a CUtensorMap. ``blocks`` names the blocks to run, all where it is None. Threads
    run in a fixed order, or in a random one of the given seed: what is reported as a race does not depend on
    it. Raises SimulationError for a fault (its ``kind`` says which) and for text that is no PTX,
    UnsupportedInstruction for an instruction the simulator does not know, UsageError for a launch that does
    not fit the kernel.
    """
    module = parse(ptx)
    return simulate_module(
        module, kernel, grid, block, arguments, dynamic_shared_bytes, blocks, schedule_seed
    )


def simulate_module(
    module: Module,
    kernel: str,
    grid: Index3,
    block: Index3,
    arguments: tuple[Argument, ...],
    dynamic_shared_bytes: int = 0,
    blocks: tuple[Index3, ...] | None = None,
    schedule_seed: int | None = None,
) -> Simulation:
    """Does what ``simulate`` does, with PTX that is already parsed."""
    return simulate_touching(
        module, kernel, grid, block, arguments, dynamic_shared_bytes, blocks, schedule_seed
    )[0]


def simulate_touching(
    module: Module,
    kernel: str,
    grid: Index3,
    block: Index3,
    arguments: tuple[Argument, ...],
    dynamic_shared_bytes: int = 0,
    blocks: tuple[Index3, ...] | None = None,
    schedule_seed: int | None = None,
) -> tuple[Simulation, tuple[Touched, ...]]:
    """Does what ``simulate_module`` does; tells also which bytes of its buffers the kernel touched."""
    entry = kernel_of(module, kernel)
    check_launch(entry, grid, block, arguments)
    numbers = block_numbers(grid, blocks)
    layout, global_ = layout_of(module, entry), GlobalMemory()
    symbols = {name: placed.address for name, placed in layout.places.items()}
    program = decode(layout, symbols | place_variables(module, global_))
    placement = place(layout, arguments, global_)
    launch = Launch(layout, placement, layout.static_shared_bytes + dynamic_shared_bytes)
    counts, at_once = Counts(), max(1, LANES_LIMIT // math.prod(block))
    with np.errstate(all="ignore"):  # registers wrap around and hold NaN by design
        for first in range(0, len(numbers), at_once):
            rng = None if schedule_seed is None else np.random.default_rng([schedule_seed, first])
            chunk = launch.chunk(Geometry(grid, block, numbers[first : first + at_once]), rng)
            Engine(entry, program, chunk, counts, rng, random_unit_lanes(entry)).run()
    conflicts, hazards = launch.conflicts.conflicts(), launch.log.hazards()
    simulation = Simulation(entry.name, len(numbers), counts.instructions, conflicts, hazards)
    return simulation, placement.touched()


def run_program(
    program: KernelProgram,
    buffers: dict[str, Array],
    blocks: Mapping[int, tuple[Index3, ...]] | None = None,
    schedule_seed: int | None = None,
) -> tuple[Simulation, ...]:
    """Runs the launches of a program in their order; returns one simulation each.

    ``buffers`` holds the inputs and outputs by name, changed in place; scratch buffers that are not given are
    made, full of NaN. Buffers that must hold zeros are zeroed. ``blocks`` says for launches, by their number,
    which blocks to run; the others run whole.
    """
    arrays = program_buffers(program, buffers)
    module = parse(program.ptx)
    return tuple(
        simulate_module(
            module,
            launch.kernel,
            launch.grid,
            launch.block,
            tuple(arrays[name] for name in launch.arguments),
            launch.dynamic_shared_bytes,
            (blocks or {}).get(number),
            schedule_seed,
        )
        for number, launch in enumerate(program.launches)
    )


def kernel_of(module: Module, name: str) -> Kernel:
    """Returns a kernel by its name. Raises UsageError."""
    names = [kernel.name for kernel in module.kernels]
    if name not in names:
        raise UsageError(f"{module.name}: found no kernel {name!r}, allowed {', '.join(names) or 'none'}")
    return module.kernels[names.index(name)]
