"""The simulator target: GPU programs verified on the PTX simulator, without a GPU and without a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tuner.chips import chip_of
from tuner.cuda_tools.ptxas import Ptxas, find_ptxas
from tuner.errors import CandidateError, Stage
from tuner.kernel import KernelProgram
from tuner.machine import Compiler, Machine, gpu_machine
from tuner.payload import ENTRY
from tuner.problem import SUM_DTYPES, Problem
from tuner.record import Measurement, Verdict
from tuner.reference import Array, Inputs, compare, compare_tile, draw, draw_base, output_dtype
from tuner.runtime import simulator
from tuner.target import AbstractTarget, Artifact, Effort, Script
from tuner.targets.block_sample import Block, sample
from tuner.targets.gpu_compiler import GpuCompiler
from tuner.targets.tiles import corners, written_tiles

# Of the problem simulated in a second by one core: an mma.sync is one instruction for 4096 flop.
TENSOR_FLOP_PER_S = 5e7
SCALAR_FLOP_PER_S = 5e6
WHOLE_S = 4.0  # a problem of so much work runs whole
SAMPLE_S = 2.0  # work of the sampled blocks together, unless even the fewest need more
BLOCKS_LIMIT = 17
NO_RESOURCES = "no ptxas found: compiled to PTX only; registers, spills and occupancy are not known"


@dataclass(frozen=True, eq=False)
class LoadedProgram:
    """A program that is ready to be simulated."""

    program: KernelProgram


class SimulatorTarget(AbstractTarget):
    """A GPU that is simulated: tells right from wrong, nothing about speed."""

    name = "simulator"
    is_timed = False

    def __init__(self, chip: str, find: Callable[[], Ptxas | None] = find_ptxas) -> None:
        """Takes the chip that code is made for, and what finds the assembler. Raises UsageError."""
        self._chip = chip_of(chip)
        self._compiler = GpuCompiler(self._chip, find)

    def machine(self) -> Machine:
        """Returns a GPU of which only the chip is known."""
        return gpu_machine(self.name, self._chip, "PTX simulator")

    def compiler(self) -> Compiler:
        """Returns the pinned wheel, the assembler and the lowering pipeline."""
        return self._compiler.compiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms, lowers and assembles; what cannot be launched is refused."""
        return self._compiler.compile(problem, script)

    def load(self, problem: Problem, artifact: Artifact) -> LoadedProgram:
        """Takes the program as it is."""
        assert artifact.program is not None
        return LoadedProgram(artifact.program)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Simulates all blocks of a small problem, sampled ones of a large; compares all that they write.

        A race, a fault, or an element that is wrong, missing or outside of the sampled blocks is a failure.
        """
        assert isinstance(loaded, LoadedProgram)
        program = loaded.program
        inputs = draw(problem, draw_base(problem, rng), rng)
        c = _poisoned(problem)
        arrays = dict(zip(("a", "b", "bias"), inputs.arrays, strict=False)) | {"c": c}
        blocks = _chosen_blocks(problem, program)
        simulations = simulator.run(program, arrays, blocks)
        verdict = _compare_all(inputs, c) if not blocks else _compare_tiles(inputs, c, program, blocks)
        assembled = () if program.cubin else (NO_RESOURCES,)
        notes = (*simulator.notes_of(program, simulations), *verdict.notes, *assembled)
        return replace(verdict, notes=notes)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Raises CandidateError: there is no time."""
        raise CandidateError(Stage.MEASURE, "the simulator has no clock")

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Raises CandidateError: there is no time."""
        raise CandidateError(Stage.MEASURE, "the simulator has no clock")


def _poisoned(problem: Problem) -> Array:
    """Returns a C of NaN: an element that nobody writes stays one."""
    return np.full(problem.sizes[:2], np.nan, output_dtype(problem))


def _chosen_blocks(problem: Problem, program: KernelProgram) -> dict[int, tuple[Block, ...]]:
    """Returns the blocks to run of the launch that multiplies; empty when everything runs.

    Kernels before it pack its inputs, kernels after it add up its parts: they run whole.
    """
    main = [number for number, launch in enumerate(program.launches) if launch.kernel.startswith(ENTRY)]
    flop_per_s = SCALAR_FLOP_PER_S if problem.dtype in SUM_DTYPES else TENSOR_FLOP_PER_S
    if problem.flop <= WHOLE_S * flop_per_s or len(main) != 1:
        return {}
    x, y, z = grid = program.launches[main[0]].grid
    places = int(SAMPLE_S * flop_per_s * x * y / problem.flop)  # a place is z blocks
    blocks = sample(grid, min(max(places, 1), BLOCKS_LIMIT))
    return {main[0]: blocks} if len(blocks) < x * y * z else {}


def _compare_all(inputs: Inputs, c: Array) -> Verdict:
    verdict, worst = compare(inputs, c)
    if not verdict.max_error <= 1.0:
        raise CandidateError(Stage.VERIFY, worst)
    return verdict


def _compare_tiles(
    inputs: Inputs, c: Array, program: KernelProgram, blocks: dict[int, tuple[Block, ...]]
) -> Verdict:
    """Compares the tiles of the sampled blocks; the rest of C must be as it was, NaN or zero."""
    ((number, chosen),) = blocks.items()
    is_zeroed = any(buffer.name == "c" and buffer.is_zeroed for buffer in program.buffers)
    written = (c != 0) if is_zeroed else ~np.isnan(c.astype(np.float64))
    x, y, _ = program.launches[number].grid
    tiles = written_tiles(written, len({place[:2] for place in chosen}), (x, y))
    verdicts = []
    for tile in tiles:
        verdict, worst = compare_tile(inputs, c, tile.rows, tile.columns)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        verdicts.append(verdict)
    largest = max(verdict.max_error for verdict in verdicts)
    note = f"C: {corners(tiles, c.shape)} of its 4 corners are in the tiles that were compared"
    return Verdict(largest, sum(verdict.elements for verdict in verdicts), (note,))
