"""The public calls: simulate a kernel of any PTX text, or a whole kernel program."""

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from tuner.errors import UsageError
from tuner.kernel import KernelProgram
from tuner.ptx.chunk import Chunk
from tuner.ptx.clocks import Clocks
from tuner.ptx.conflicts import ConflictCounter
from tuner.ptx.copies import Copies
from tuner.ptx.decode.program import decode
from tuner.ptx.dtypes import TYPES, Array
from tuner.ptx.engine import Counts, Engine
from tuner.ptx.geometry import THREADS_LIMIT, Geometry, Index3, linear
from tuner.ptx.global_memory import Buffer, GlobalMemory
from tuner.ptx.hazards import HazardLog
from tuner.ptx.instruction import Instruction, Kernel, Module
from tuner.ptx.layout import Layout, layout_of
from tuner.ptx.parser import parse
from tuner.ptx.shared_memory import SharedMemory
from tuner.ptx.simulation import Simulation
from tuner.ptx.spaces import Spaces
from tuner.ptx.watch import Watch

Argument: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.generic]] | int | float | np.generic"
LANES_LIMIT = 2048  # that run at once: more need more memory, fewer pay more overhead
IDLE = Instruction("begin", (), None, 0, "begin")


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
    """Executes a kernel of PTX text; arrays among the arguments are its buffers, read and written in place.

    Arrays must be C-contiguous; numbers are passed by value in the parameter's type. ``blocks`` names the
    blocks to run, all where it is None. Threads run in a fixed order, or in a random one of the given seed:
    what is reported as a race does not depend on it. Raises SimulationError for a fault (its ``kind`` says
    which) and for text that is no PTX, UnsupportedInstruction for an instruction the simulator does not know,
    UsageError for a wrong launch.
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
    entry = kernel_of(module, kernel)
    _check_launch(entry, grid, block, arguments)
    layout = layout_of(module, entry)
    numbers = _block_numbers(grid, blocks)
    global_ = GlobalMemory()
    symbols = {name: place.address for name, place in layout.places.items()}
    symbols |= _place_variables(module, global_)
    parameters = _parameters(layout, arguments, global_)
    program = decode(layout, symbols)
    log, conflicts, counts = HazardLog(), ConflictCounter(), Counts()
    shared_bytes = layout.static_shared_bytes + dynamic_shared_bytes
    threads = math.prod(block)
    at_once = max(1, LANES_LIMIT // threads)
    with np.errstate(all="ignore"):  # registers wrap around and hold NaN by design
        for first in range(0, len(numbers), at_once):
            geometry = Geometry(grid, block, numbers[first : first + at_once])
            chunk = _chunk(geometry, layout, global_, parameters, shared_bytes, log, conflicts)
            rng = None if schedule_seed is None else np.random.default_rng([schedule_seed, first])
            Engine(entry, program, chunk, counts, rng).run()
    return Simulation(entry.name, len(numbers), counts.instructions, conflicts.conflicts(), log.hazards())


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
    arrays = _program_buffers(program, buffers)
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


def _program_buffers(program: KernelProgram, buffers: dict[str, Array]) -> dict[str, Array]:
    arrays = {}
    for buffer in program.buffers:
        array = buffers.get(buffer.name)
        if array is None:
            if buffer.role != "scratch":
                raise UsageError(
                    f"buffer {buffer.name}: found nothing, allowed an array of {buffer.bytes} bytes"
                )
            array = np.full(buffer.bytes, 0xFF, np.uint8)
        if array.nbytes != buffer.bytes:
            raise UsageError(f"buffer {buffer.name}: found {array.nbytes} bytes, allowed {buffer.bytes}")
        if buffer.is_zeroed:
            array.reshape(-1).view(np.uint8)[:] = 0
        arrays[buffer.name] = array
    return arrays


def _check_launch(kernel: Kernel, grid: Index3, block: Index3, arguments: tuple[Argument, ...]) -> None:
    if min(*grid, *block) < 1:
        raise UsageError(f"kernel {kernel.name}: found grid {grid} and block {block}, allowed sizes from 1")
    threads = math.prod(block)
    limit = min(THREADS_LIMIT, math.prod(kernel.max_threads or (THREADS_LIMIT,)))
    if threads > limit:
        raise UsageError(f"kernel {kernel.name}: found a block of {threads} threads, allowed up to {limit}")
    required = (*(kernel.required_threads or block), 1, 1)[:3]
    if tuple(block) != required:
        raise UsageError(f"kernel {kernel.name}: found a block of {block}, allowed {required}")
    if len(arguments) != len(kernel.parameters):
        count = len(kernel.parameters)
        raise UsageError(f"kernel {kernel.name}: found {len(arguments)} arguments, allowed {count}")


def _block_numbers(grid: Index3, blocks: tuple[Index3, ...] | None) -> tuple[int, ...]:
    if blocks is None:
        return tuple(range(math.prod(grid)))
    for block in blocks:
        if any(not 0 <= index < extent for index, extent in zip(block, grid, strict=True)):
            raise UsageError(f"blocks: found {block}, allowed blocks of the grid {grid}")
    return tuple(linear(block, grid) for block in dict.fromkeys(blocks))


def _place_variables(module: Module, global_: GlobalMemory) -> dict[str, int]:
    """Places the module's global and constant variables; returns their addresses."""
    found = {}
    for variable in module.variables:
        if variable.space not in ("global", "const"):
            continue
        content = np.zeros(max(variable.bytes, 1), np.uint8)
        content[: len(variable.content)] = variable.content
        found[variable.name] = global_.add(Buffer(variable.name, content, 1, variable.space == "const"))
    return found


def _parameters(layout: Layout, arguments: tuple[Argument, ...], global_: GlobalMemory) -> Array:
    """Returns the bytes of the parameters; arrays become buffers and their addresses."""
    content = np.zeros(layout.parameter_bytes, np.uint8)
    placed: dict[int, int] = {}
    for parameter, argument in zip(layout.kernel.parameters, arguments, strict=True):
        start = layout.places[parameter.name].address
        if isinstance(argument, np.ndarray):
            if not argument.flags.c_contiguous:
                raise UsageError(
                    f"argument {parameter.name}: found a strided array, allowed a C-contiguous one"
                )
            key = argument.__array_interface__["data"][0]
            if key not in placed:
                placed[key] = global_.add(Buffer(parameter.name, argument, layout.cell_bytes))
            value = np.array([placed[key]], np.uint64).view(np.uint8)
        else:
            value = np.array([argument]).astype(TYPES[parameter.type].dtype).view(np.uint8)
        if value.size != parameter.bytes:
            raise UsageError(
                f"argument {parameter.name}: found {value.size} bytes, allowed {parameter.bytes}"
            )
        content[start : start + value.size] = value
    return content


def _chunk(
    geometry: Geometry,
    layout: Layout,
    global_: GlobalMemory,
    parameters: Array,
    shared_bytes: int,
    log: HazardLog,
    conflicts: ConflictCounter,
) -> Chunk:
    watch = Watch(Clocks(geometry, agents=0), log, conflicts, IDLE)
    shared = SharedMemory(watch, shared_bytes, layout.cell_bytes, async_readers=0)
    spaces = Spaces(watch, global_, shared, layout.local_bytes, parameters)
    return Chunk(
        geometry=geometry,
        watch=watch,
        spaces=spaces,
        copies=Copies(watch, global_, shared),
        special=geometry.special_registers(),
        width_of=layout.width,
        exited=geometry.thread >= geometry.threads,
    )
