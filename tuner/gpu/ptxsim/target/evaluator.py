"""The simulated GPU as a target's evaluator: runs kernels by the PTX simulator, compares their results.

``simulate_program`` runs all launches of a program. ``SimulatorEvaluator.verify`` draws inputs, simulates all
blocks of a small problem or a sample of a large one, and compares what these blocks wrote.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import final

import numpy as np

from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch
from tuner.core.device import StreamOrder
from tuner.core.dtypes import SUM_DTYPES, number_type
from tuner.core.errors import CandidateError, DeviceError, Stage, TunerError, UsageError
from tuner.core.interfaces import AbstractEvaluator, Artifact, Effort
from tuner.core.numpy_types import is_nan
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.gpu.ptxsim.device.kernels import Near, PreparedLaunch
from tuner.gpu.ptxsim.device.memory import MemoryRegion
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.ptxsim.launch import PausingRun, Simulation
from tuner.gpu.ptxsim.ptx.defects import SimulationError, UnsupportedInstruction
from tuner.gpu.ptxsim.ptx.geometry import Index3, whole_clusters
from tuner.gpu.ptxsim.target.group_sample import blocks_with_rows, draw_few_rows, verdict_of_columns
from tuner.gpu.target.arrays import LoadedKernels
from tuner.gpu.target.block_sample import LEAST, Block, Mask, Tile, corners, sample, written_tiles
from tuner.payload.comparison import compare, compare_parts
from tuner.payload.cpu import ENTRY
from tuner.payload.drawing import (
    draw,
    draw_base,
    special_draws,
    with_special_bias,
    with_special_numbers,
)
from tuner.payload.reference import Array, Inputs

Arrays = Mapping[str, Array]  # by the names of buffers
# flop of the problem that one core simulates per second: an mma.sync is one instruction for 4096 flop.
TENSOR_FLOP_PER_S = 5e7
SCALAR_FLOP_PER_S = 5e6
WHOLE_S = 4.0  # a problem up to so much work is simulated whole
SAMPLE_S = 2.0  # work of all sampled blocks, unless even the smallest sample needs more
BLOCKS_LIMIT = 17
LEAST_SIDE = 16  # rows and columns of C, of which most stay usual in the first draw with special numbers
WORKSPACE = "workspace"  # buffer of partial sums, see tuner.gpu.payload.gpu
UNWRITTEN_SUM = 2**30  # of integers: larger than any sum of random inputs
CONFLICT_NOTED = 1.05  # times the shared-memory wavefronts without conflicts; less is not noted
ONLY_PTX = "verified is the PTX; the machine code that ptxas made of it did not run"
NO_RESOURCES = "no ptxas found: compiled to PTX only; registers, spills and occupancy are not known"


def simulate_program(
    program: KernelCode,
    arrays: Arrays,
    blocks: Mapping[int, tuple[Index3, ...]] | None = None,
    schedule_seed: int | None = None,
) -> tuple[Simulation, ...]:
    """Simulates the launches of a program in order, from its PTX; returns one simulation per launch.

    ``arrays``, by buffer name, are read and written in place; scratch buffers without one begin as NaN.
    ``blocks``: which blocks of a launch run, by its index; a launch without an entry runs whole.
    ``schedule_seed``: of a random order of warps, several times slower; None: a fixed order. The races that
    are found do not depend on the order.

    Raises UsageError for an array that does not fit its buffer, SimulationError for a fault of a kernel,
    UnsupportedInstruction for one that is not simulated, and DeviceError for other errors of the simulated
    device.
    """
    simulations: list[Simulation] = []

    def run(launch: PreparedLaunch, near: Near, seed: int | None) -> PausingRun:
        chosen = (blocks or {}).get(len(simulations))
        simulations.append((yield from launch.pausing_run(_by_parameters(launch, near), seed, chosen)))
        return simulations[-1]

    for buffer in program.buffers:
        _require_fitting(buffer, arrays)
    # scratch buffers that ``arrays`` contains become inputs
    buffers = [
        replace(buffer, role="input") if buffer.name in arrays else buffer for buffer in program.buffers
    ]
    order: StreamOrder = "fifo" if schedule_seed is None else "random"
    try:
        device = SimulatedDevice(program.chip, order, schedule_seed or 0, lambda _printed: None, run)
        for array in arrays.values():
            device.register_host(array.ctypes.data, array.nbytes)
        loaded = LoadedKernels(device, replace(program, binary=b"", buffers=tuple(buffers)))
        loaded.work({name: array.ctypes.data for name, array in arrays.items()})(0)
        device.synchronize_stream(0)
    except DeviceError as error:  # which wraps the simulator's
        if isinstance(error.__cause__, TunerError):
            raise error.__cause__ from None
        raise
    return tuple(simulations)


def _require_fitting(buffer: KernelBuffer, arrays: Arrays) -> None:
    array = arrays.get(buffer.name)
    if array is None and buffer.role != "scratch":
        raise UsageError(f"buffer {buffer.name}: found nothing, allowed an array of {buffer.bytes} bytes")
    if array is not None and array.nbytes != buffer.bytes:
        raise UsageError(f"buffer {buffer.name}: found {array.nbytes} bytes, allowed {buffer.bytes}")
    if array is not None and not array.flags.c_contiguous:
        raise UsageError(f"buffer {buffer.name}: the array is not C-contiguous")


def _by_parameters(launch: PreparedLaunch, near: Near) -> Near:
    # memory regions are named by the kernel's parameters that point to them, for messages
    names: dict[int, str] = {}
    for parameter, content in zip(launch.kernel.entry.parameters, launch.parameters, strict=True):
        names.setdefault(int.from_bytes(content, "little"), parameter.name)

    def named(address: int) -> MemoryRegion | None:
        region = near(address)
        return region and replace(region, name=names.get(address, region.name))

    return named


@final
class SimulatorEvaluator(AbstractEvaluator):
    """Verifies GPU programs on a simulated GPU of any chip; cannot time them."""

    is_timed = False

    def load(self, problem: Problem, artifact: Artifact) -> KernelCode:
        return artifact.code

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Simulates all blocks of a small problem, or a sample of a large one, and compares C.

        Raises CandidateError: VERIFY for a wrong result, a fault or a race, RUN for what is not simulated.
        """
        assert isinstance(loaded, KernelCode)
        blocks = _chosen_blocks(problem, loaded)
        if blocks and problem.groups:
            return _verdict_of_groups(problem, loaded, rng)
        if not blocks:
            return _verdict_of_all_blocks(problem, loaded, rng)
        inputs = draw(problem, draw_base(problem, rng), rng)
        if number_type(problem.dtype).is_float:
            # NaN and sums above UNWRITTEN_SUM mark what was not written: A and B stay usual
            inputs = with_special_bias(inputs, rng, 0)
        c = inputs.output_before
        arrays = inputs.named | {"c": c}
        simulations = simulated_launches(loaded, arrays | _unwritten_parts(problem, loaded), blocks)
        ((number, chosen),) = blocks.items()
        main = simulations[number]
        written = _written(problem, loaded, c, main.written(c))
        ran = whole_clusters(chosen, main.cluster)
        tiles = _tiles_of_batch(problem, written, loaded.launches[number], ran, main.cluster)
        verdict = _compare_tiles(inputs, c, tiles)
        return _with_notes(verdict, loaded, simulations)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        raise CandidateError(Stage.MEASURE, "the simulator has no clock")

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        raise CandidateError(Stage.MEASURE, "the simulator has no clock")


def simulated_launches(
    program: KernelCode,
    arrays: Mapping[str, Array],  # by the names of buffers; changed in place
    blocks: Mapping[int, tuple[Block, ...]],  # by index of the launch; without an entry: all blocks
) -> tuple[Simulation, ...]:
    """Simulates the launches of a program in order; returns one simulation per launch.

    Raises CandidateError: VERIFY for a fault or a race, RUN for what is not simulated and other errors.
    """
    try:
        simulations = simulate_program(program, arrays, blocks)
    except UnsupportedInstruction as error:
        raise CandidateError(Stage.RUN, error.reason) from error
    except SimulationError as error:
        raise CandidateError(Stage.VERIFY, error.reason) from error
    except (UsageError, DeviceError) as error:
        raise CandidateError(Stage.RUN, str(error)) from error
    for simulation in simulations:
        races = simulation.races
        if races:
            more = f" and {len(races) - 1} more" if len(races) > 1 else ""
            raise CandidateError(Stage.VERIFY, f"{simulation.kernel}: {races[0]}{more}")
    return simulations


def notes_of(program: KernelCode, simulations: tuple[Simulation, ...]) -> tuple[str, ...]:
    """Returns notes on a program's simulated launches: blocks that ran, bank conflicts, harmless hazards."""
    notes = []
    for launch, simulation in zip(program.launches, simulations, strict=True):
        x, y, z = launch.grid
        notes.append(f"{simulation.kernel}: {simulation.blocks} of {x * y * z} blocks simulated")
        if simulation.conflict_ratio >= CONFLICT_NOTED:
            conflicts = simulation.conflicts
            worst = max(conflicts, key=lambda conflict: conflict.wavefronts - conflict.ideal_wavefronts)
            notes.append(
                f"{simulation.kernel}: shared memory takes {simulation.conflict_ratio:.2f} times as long as "
                f"without bank conflicts, most at line {worst.line}: {worst.instruction}: {worst.ratio:.1f}"
            )
        notes += [f"{simulation.kernel}: harmless: {hazard}" for hazard in simulation.benign]
    return tuple(notes)


def _with_notes(verdict: Verdict, program: KernelCode, simulations: tuple[Simulation, ...]) -> Verdict:
    assembled = (ONLY_PTX,) if program.binary else (NO_RESOURCES,)
    return replace(verdict, notes=(*notes_of(program, simulations), *verdict.notes, *assembled))


def _verdict_of_groups(problem: Problem, program: KernelCode, rng: np.random.Generator) -> Verdict:
    """Simulates some blocks of a large grouped_matmul, and compares what they wrote; returns the verdict."""
    inputs = draw_few_rows(problem, rng)
    c = inputs.output_before
    (launch,) = program.launches
    blocks = blocks_with_rows(launch, inputs)
    simulations = simulated_launches(program, inputs.named | {"c": c}, {0: blocks})
    return _with_notes(verdict_of_columns(inputs, c, launch), program, simulations)


def _verdict_of_all_blocks(problem: Problem, program: KernelCode, rng: np.random.Generator) -> Verdict:
    """Simulates all blocks on each draw of inputs, compares C each time, and returns the worst verdict."""
    verdicts = []
    for inputs in _draws(problem, rng):
        c = inputs.output_before
        if inputs.special is not None and inputs.before is None:
            c[np.isnan(inputs.expected)] = 1  # where NaN is right, a number shows what was not written
        arrays = inputs.named | {"c": c}
        simulations = simulated_launches(program, arrays | _unwritten_parts(problem, program), {})
        verdict, worst = compare(inputs, c)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        verdicts.append(_with_notes(verdict, program, simulations))
    return max(verdicts, key=lambda verdict: verdict.max_error)


def _draws(problem: Problem, rng: np.random.Generator) -> Iterator[Inputs]:
    """Yields the inputs on which a kernel is verified: one draw, for a small matrix several.

    A matrix with enough rows and columns has special numbers in some rows and columns of its one draw, since
    a second draw would take as long again. A small matrix has a draw of usual numbers, then, if they are
    floats, draws with special numbers.
    """
    m, n, _ = problem.sizes
    base = draw_base(problem, rng)
    is_small = min(m, n) < LEAST_SIDE
    if is_small:
        usual = draw(problem, base, rng)
        if number_type(problem.dtype).is_float:
            usual = with_special_bias(usual, rng, 0)
        yield usual
        if not number_type(problem.dtype).is_float:
            return
    for number in range(special_draws(problem)):
        yield with_special_numbers(draw(problem, base, rng), rng, number)


def _chosen_blocks(problem: Problem, program: KernelCode) -> dict[int, tuple[Block, ...]]:
    """Returns {index of the launch that multiplies: its blocks to simulate}; {}: all blocks.

    All blocks of other launches are simulated.
    """
    main = [index for index, launch in enumerate(program.launches) if launch.kernel.startswith(ENTRY)]
    flop_per_s = SCALAR_FLOP_PER_S if problem.dtype in SUM_DTYPES else TENSOR_FLOP_PER_S
    if problem.flop <= WHOLE_S * flop_per_s or len(main) != 1:
        return {}
    launch = program.launches[main[0]]
    x, y, z = launch.grid
    slices = z // problem.batch  # of K: the grid's z is (matrix of the batch) * slices + slice
    matrices = sorted({0, problem.batch // 2, problem.batch - 1})
    flop = len(matrices) * problem.one_matmul.flop
    # how many pairs (x, y) of one matrix fit into SAMPLE_S; each pair is ``slices`` blocks
    columns = int(SAMPLE_S * flop_per_s * x * y / flop)
    least = -(-LEAST // launch.tiles_of((0, 0, 0)))
    of_one = sample((x, y, slices), min(max(columns, 1), BLOCKS_LIMIT), least)
    blocks = tuple((at_x, at_y, matrix * slices + part) for matrix in matrices for at_x, at_y, part in of_one)
    if len(blocks) < x * y * z:
        return {main[0]: blocks}
    return {}


def _unwritten_parts(problem: Problem, program: KernelCode) -> dict[str, Array]:
    """Returns workspaces of integers to begin with, by name; {} if sums are floats, which begin as NaN.

    The parts of an element add up to more than any sum of drawn inputs.
    """
    if problem.accumulator != "i32":
        return {}
    z = next(launch.grid[2] for launch in program.launches if launch.kernel.startswith(ENTRY))
    part = UNWRITTEN_SUM * problem.batch // z  # the z / batch slices of an element add up to UNWRITTEN_SUM
    return {
        buffer.name: np.full(buffer.bytes // 4, part, np.int32)
        for buffer in program.buffers
        if buffer.name == WORKSPACE
    }


def _written(problem: Problem, program: KernelCode, c: Array, stored: Mask) -> Mask:
    """Returns which elements of C were computed: ``stored`` if C began as numbers, else those not NaN."""
    has_parts = WORKSPACE in map(operator.attrgetter("name"), program.buffers)
    is_number = problem.after_product.reads_output and not has_parts
    if is_number or any(buffer.name == "c" and buffer.is_zeroed for buffer in program.buffers):
        return stored
    written = ~is_nan(c)
    if c.dtype.kind == "i":
        return written & (c < UNWRITTEN_SUM // 2)
    return written


def _compare_tiles(inputs: Inputs, c: Array, tiles: tuple[Tile, ...]) -> Verdict:
    note = f"C: {corners(tiles, c.shape)} of its 4 corners are in the tiles that were compared"
    return compare_parts(inputs, c, [(tile.rows, tile.columns) for tile in tiles], note)


def _tiles_of_batch(
    problem: Problem, written: Mask, launch: Launch, ran: tuple[Block, ...], cluster: Block
) -> tuple[Tile, ...]:
    x, y, z = launch.grid
    m = problem.sizes[0]
    slices = z // problem.batch
    tiles: list[Tile] = []
    for matrix, part in enumerate(written.reshape(problem.batch, m, -1)):
        # all slices of K compute the same tiles: those of the first slice are counted
        first_parts = [block for block in ran if block[2] == matrix * slices]
        if first_parts:
            count = sum(map(launch.tiles_of, first_parts))
            own = written_tiles(part, count, launch.tile_grid or (x, y), cluster[:2])
            first = matrix * m
            rows = (slice(first + tile.rows.start, first + tile.rows.stop) for tile in own)
            tiles += [Tile(of_c, tile.columns) for of_c, tile in zip(rows, own, strict=True)]
        elif part.any():
            raise CandidateError(Stage.VERIFY, f"matrix {matrix} was written, none of whose blocks ran")
    return tuple(tiles)
