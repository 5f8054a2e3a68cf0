"""Runs the kernels of a compiled program on numpy arrays, without a device; a race is a failure."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage, failing_at
from tuner.core.kernel_program import KernelProgram
from tuner.simulator.ptx.defects import SimulationError, UnsupportedInstruction
from tuner.simulator.ptx.launch import run_program
from tuner.simulator.ptx.simulation import Simulation

Array = npt.NDArray[Any]
Block = tuple[int, int, int]  # x, y, z
CONFLICT_NOTED = 1.05  # times the shared-memory wavefronts without conflicts; less is not worth a line


def run(
    program: KernelProgram,
    arrays: dict[str, Array],  # by the names of buffers; changed in place
    blocks: Mapping[int, tuple[Block, ...]],  # of launches, by their number; others run whole
) -> tuple[Simulation, ...]:
    """Runs the launches in order. Raises CandidateError(VERIFY) for a fault or a race.

    What the simulator does not know is no fault of the kernel: that is Stage RUN. Threads run in a fixed
    order: races are found whatever it is, and many lanes at once are simulated several times faster.
    """
    try:
        with failing_at(Stage.RUN):
            simulations = run_program(program, arrays, blocks)
    except UnsupportedInstruction as error:
        raise CandidateError(Stage.RUN, error.reason) from error
    except SimulationError as error:
        raise CandidateError(Stage.VERIFY, error.reason) from error
    for simulation in simulations:
        _require_no_race(simulation)
    return simulations


def whole_clusters(blocks: tuple[Block, ...], cluster: Block) -> tuple[Block, ...]:
    """Returns the blocks of all clusters that some blocks are in: those that a launch of these simulates."""
    corners = dict.fromkeys((x - x % i, y - y % j, z - z % k) for x, y, z in blocks for i, j, k in (cluster,))
    within = list(itertools.product(*map(range, cluster)))
    return tuple((x + i, y + j, z + k) for x, y, z in corners for i, j, k in within)


def written(simulation: Simulation, array: Array) -> npt.NDArray[np.bool_]:
    """Returns which elements of an array a launch wrote."""
    flags = np.zeros(array.size, bool)
    for each in simulation.touched:
        if each.address == array.ctypes.data:
            flags |= each.written(array.size, array.itemsize)
    return flags.reshape(array.shape)


def notes_of(program: KernelProgram, simulations: tuple[Simulation, ...]) -> tuple[str, ...]:
    """Returns notes on a correct program, a line each: blocks simulated, bank conflicts, harmless hazards."""
    notes = []
    for launch, simulation in zip(program.launches, simulations, strict=True):
        x, y, z = launch.grid
        notes.append(f"{simulation.kernel}: {simulation.blocks} of {x * y * z} blocks simulated")
        if simulation.conflict_ratio >= CONFLICT_NOTED:
            worst = max(simulation.conflicts, key=lambda each: each.wavefronts - each.ideal_wavefronts)
            notes.append(
                f"{simulation.kernel}: shared memory takes {simulation.conflict_ratio:.2f} times as long as "
                f"without bank conflicts, most at line {worst.line}: {worst.instruction}: {worst.ratio:.1f}"
            )
        notes += [f"{simulation.kernel}: harmless: {hazard}" for hazard in simulation.benign]
    return tuple(notes)


def _require_no_race(simulation: Simulation) -> None:
    races = simulation.races
    if races:
        more = f" and {len(races) - 1} more" if len(races) > 1 else ""
        raise CandidateError(Stage.VERIFY, f"{simulation.kernel}: {races[0]}{more}")
