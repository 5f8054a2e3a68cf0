"""Runs launches of many blocks by a few of them on the simulator, compared with a reference that does all."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tuner.core.device_program import DeviceProgram
from tuner.programs.interpret.kernels import read_kernels
from tuner.programs.run.sampled.launch_copies import LaunchCopies
from tuner.programs.run.sampled.references import (
    AbstractReference,
    ComparedElements,
    InterpretedReference,
    MatmulReference,
    PartialLaunch,
)
from tuner.simulator.block_sample import sample
from tuner.simulator.device.kernels import Near, PreparedLaunch
from tuner.simulator.ptx.geometry import Index3, whole_clusters
from tuner.simulator.ptx.simulation import Simulation

REFERENCES_LIMIT_S = 20.0  # for all references of a run, but for the sampled blocks


@dataclass(frozen=True, eq=False)
class LaunchSample:
    """How much of one launch the simulator ran."""

    kernel: str
    blocks: int  # of the launch
    simulated: int  # of them
    reference: str = ""  # that did the others too; "" where the simulator did all
    finished: int = 0  # by the reference: less than all where it was out of time
    compared: tuple[ComparedElements, ...] = ()


class SampledLaunches:
    """Samples launches of more blocks than a limit, where something can tell what all blocks would leave.

    What the reference leaves goes on: later launches and the host read that. Others run whole.
    References that take long do the sampled blocks, and of the others what they can until a limit.
    """

    def __init__(
        self,
        program: DeviceProgram,
        limit: int,
        note: Callable[[LaunchSample], None],
        references_limit_s: float = REFERENCES_LIMIT_S,
    ) -> None:
        """Takes a program with references; ``note`` gets one sample for each launch."""
        self._limit = limit
        self._note = note
        self._left_s = references_limit_s
        self._references = references_of(program)

    def run(self, launch: PreparedLaunch, near: Near, seed: int | None) -> Simulation:
        """Runs a launch. Raises DeviceError of the simulator, CandidateError of the reference."""
        count, reference = math.prod(launch.grid), self._references.get(launch.name)
        blocks = self._blocks(launch)
        if reference is None or len(blocks) >= count or not reference.fits(launch):
            self._note(LaunchSample(launch.name, count, count))
            return launch.run(near, seed)
        copies = LaunchCopies(launch, near)
        simulation = copies.launch.run(copies.near, seed, blocks)
        blocks = whole_clusters(blocks, simulation.cluster)
        start_s = time.monotonic()
        sampled = PartialLaunch(launch, near, blocks, copies, simulation.touched)
        outcome = reference.finish(sampled, lambda: time.monotonic() - start_s > self._left_s)
        self._left_s -= time.monotonic() - start_s
        share = (count, len(blocks), reference.name, outcome.blocks)
        self._note(LaunchSample(launch.name, *share, outcome.compared))
        return replace(simulation, touched=copies.in_place(simulation.touched))

    def _blocks(self, launch: PreparedLaunch) -> tuple[Index3, ...]:
        """Returns about as many blocks as the limit; sampled along z as well where that has many."""
        x, y, z = launch.grid
        blocks = sample((x, y, z), self._limit)
        return blocks[:: max(1, len(blocks) // max(self._limit, 1) // 2)] if z > 1 else blocks


def references_of(program: DeviceProgram) -> Mapping[str, AbstractReference]:
    """Returns the reference of each kernel that has one."""
    interpreted = read_kernels(program.reference) if program.reference else {}
    found: dict[str, AbstractReference] = {}
    found.update({name: InterpretedReference(kernel) for name, kernel in interpreted.items()})
    found.update({matmul.name: MatmulReference(matmul) for matmul in program.matmuls})
    return found
