"""Runs a few blocks of large launches on the simulator, and a reference that computes the launch."""

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
from tuner.simulator.ptx.launch import Turns

REFERENCES_LIMIT_S = 20.0  # for all references of a run, without the sampled blocks


@dataclass(frozen=True, eq=False)
class LaunchSample:
    """How many blocks of one launch the simulator ran, and the elements to compare with a reference."""

    kernel: str
    blocks: int  # blocks of the launch
    simulated: int  # blocks that the simulator ran
    reference: str = ""  # that computed the other blocks as well; "" where the simulator ran all
    finished: int = 0  # blocks that the reference computed: fewer than all where its time ran out
    compared: tuple[ComparedElements, ...] = ()


class SampledLaunches:
    """Simulates only some blocks of large kernel launches; a reference implementation computes the launch.

    A launch is sampled if its kernel has a reference and the launch has more blocks than a limit; all other
    launches run completely. The memory after a sampled launch is that of the reference: later launches and
    the host read it. A slow reference computes the sampled blocks, and as many others as a time limit allows.
    """

    def __init__(
        self,
        program: DeviceProgram,
        limit: int,
        note: Callable[[LaunchSample], None],
        references_limit_s: float = REFERENCES_LIMIT_S,
    ) -> None:
        """Takes a program with references, and the limits.

        Args:
            program: the program.
            limit: approximate number of blocks per launch that the simulator runs; of a launch with more
                blocks than this, at most about 20 even where the limit is higher.
            note: receives one sample per launch.
            references_limit_s: time limit of all references of a run, in seconds.
        """
        self._limit = limit
        self._note = note
        self._left_s = references_limit_s
        self._references = references_of(program)

    def run(self, launch: PreparedLaunch, near: Near, seed: int | None) -> Turns:
        """Runs a launch, sampled if it is large; returns the simulation of the blocks that the simulator ran.

        ``near`` returns the memory region at an address; ``seed`` selects a random schedule, None a fixed
        one. Raises DeviceError of the simulator, CandidateError of the reference.
        """
        count, reference = math.prod(launch.grid), self._references.get(launch.name)
        blocks = self._blocks(launch)
        if reference is None or len(blocks) >= count or not reference.fits(launch):
            self._note(LaunchSample(launch.name, count, count))
            return (yield from launch.turns(near, seed))
        copies = LaunchCopies(launch, near)
        simulation = yield from copies.launch.turns(copies.near, seed, blocks)
        blocks = whole_clusters(blocks, simulation.cluster)
        start_s = time.monotonic()
        sampled = PartialLaunch(launch, near, blocks, copies, simulation.touched)
        outcome = reference.finish(sampled, lambda: time.monotonic() - start_s > self._left_s)
        self._left_s -= time.monotonic() - start_s
        share = (count, len(blocks), reference.name, outcome.blocks)
        self._note(LaunchSample(launch.name, *share, outcome.compared))
        return replace(simulation, touched=copies.in_place(simulation.touched))

    def _blocks(self, launch: PreparedLaunch) -> tuple[Index3, ...]:
        """Returns about as many blocks as the limit, sampled along z as well where the grid has many."""
        x, y, z = launch.grid
        blocks = sample((x, y, z), self._limit)
        return blocks[:: max(1, len(blocks) // max(self._limit, 1) // 2)] if z > 1 else blocks


def references_of(program: DeviceProgram) -> Mapping[str, AbstractReference]:
    """Returns the reference implementation of each kernel of a program that has one, by kernel name."""
    interpreted = read_kernels(program.reference) if program.reference else {}
    found: dict[str, AbstractReference] = {}
    found.update({name: InterpretedReference(kernel) for name, kernel in interpreted.items()})
    found.update({matmul.name: MatmulReference(matmul) for matmul in program.matmuls})
    return found
