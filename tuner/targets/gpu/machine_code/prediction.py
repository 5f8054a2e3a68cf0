"""Predicts cycles of a compiled kernel program from its machine code, to order candidates: never a time."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tuner.core.chips import USUAL_MULTIPROCESSORS, WARP_THREADS, chip_of
from tuner.core.kernel_program import KernelProgram, Launch
from tuner.core.problem import Problem
from tuner.cost_model.gpu import LAUNCH, fma_per_cycle
from tuner.simulator.ptx.launch import program_accesses
from tuner.simulator.ptx.races.access_sample import Access
from tuner.targets.gpu.machine_code.busiest_part import BlockWork, KernelCounts, Parts
from tuner.targets.gpu.machine_code.executions import GROUP_PRODUCTS, WARPGROUP_LANES, executions
from tuner.targets.gpu.machine_code.listing import Kernel, read_kernels
from tuner.targets.gpu.machine_code.nvdisasm import listing_of
from tuner.targets.gpu.machine_code.path_cycles import memory_cycles

WGMMA_RATE = 2.0  # times the rate of mma.sync on sm_90; H100 white paper
HANDED_OVER = "USETMAXREG"  # setmaxnreg, by which a warpgroup that only copies gives up registers


@dataclass(frozen=True)
class PredictedCycles:
    """Cycles that a model of the GPU predicts for a program; never seconds, never stored as a measurement."""

    cycles: float  # of one call
    parts: Parts | None  # of a multiprocessor, in the launch with most multiply-adds; None: no such launch


def predict_cycles(
    problem: Problem, program: KernelProgram, nvdisasm: Path, multiprocessors: int | None = None
) -> PredictedCycles:
    """Returns the cycles that a model predicts for one call of a program that has a cubin.

    ``nvdisasm``: path of the executable. ``multiprocessors``: their number in the GPU; None: as many as the
    chip's largest product has. Raises CalledProcessError where nvdisasm cannot read the cubin, TimeoutExpired
    where it takes longer than 60 s, SimulationError and UnsupportedInstruction where the simulator cannot run
    the kernels.
    """
    count = multiprocessors or USUAL_MULTIPROCESSORS.get(program.chip, 1)
    kernels = {each.name: each for each in read_kernels(listing_of(program.cubin, nvdisasm))}
    cycles, most, parts = LAUNCH * (len(program.launches) - 1), 0.0, None
    for launch, accesses in zip(program.launches, program_accesses(program), strict=True):
        kernel = kernels[launch.kernel]
        work = _work(problem, program, launch, kernel)
        turns = float(launch.tiles_of((0, 0, 0)))
        counts = _counts(problem, program, work, kernel, accesses, turns)
        cycles += counts.cycles(work, count)
        if counts.multiply_adds > most:
            most, parts = counts.multiply_adds, counts.parts(work, work.together(count))
    return PredictedCycles(cycles, parts)


def _work(problem: Problem, program: KernelProgram, launch: Launch, kernel: Kernel) -> BlockWork:
    """Returns a launch's blocks; bytes of a block as if its tiles of C were square, which reads least."""
    _, n, k = problem.sizes
    elements = problem.rows * n
    blocks, tiles = math.prod(launch.grid), launch.tiles_of((0, 0, 0))
    copies_only = WARPGROUP_LANES if any(each.mnemonic == HANDED_OVER for each in kernel.code) else 0
    resident = [each.blocks_per_multiprocessor for each in program.resources if each.kernel == launch.kernel]
    return BlockWork(
        blocks=blocks,
        warps=-(-(math.prod(launch.block) - copies_only) // WARP_THREADS),
        resident=max([1, *resident]),
        fetched_bytes=2 * math.sqrt(tiles * elements / blocks) * k * problem.input_bytes,
        stored_bytes=elements / blocks * problem.output_bytes,
    )


def _counts(
    problem: Problem,
    program: KernelProgram,
    work: BlockWork,
    kernel: Kernel,
    accesses: Iterable[Access],
    turns: float,
) -> KernelCounts:
    """Returns the instruction counts of a kernel; ``turns``: iterations of the loop around its main loop."""
    chip, mnemonics = chip_of(program.chip), {each.mnemonic for each in kernel.code}
    owed = problem.flop / 2 / (work.blocks * work.warps * WARP_THREADS)
    rate = fma_per_cycle(problem, chip) * (WGMMA_RATE if mnemonics & set(GROUP_PRODUCTS) else 1.0)
    costs = memory_cycles(kernel, accesses, chip.capability)
    return KernelCounts(kernel, executions(kernel, owed, turns), costs, rate, chip.capability)
