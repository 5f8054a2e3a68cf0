"""Orders compiled programs for timing by static facts; no estimate of a time."""

import math
import re
from collections.abc import Iterable

from tuner.core.chips import USUAL_MULTIPROCESSORS
from tuner.core.element_types import FLOAT8S
from tuner.core.kernel_program import KernelProgram, Launch
from tuner.core.pending_trial import PendingTrial
from tuner.core.problem import Problem

TENSOR_CORES = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync)")  # in PTX
TENSOR_DTYPES = ("f16", "bf16", "tf32", "i8", *FLOAT8S)

Promise = tuple[bool, bool, int, float]  # see ``promise``; smaller is better


def best_first(
    trials: Iterable[PendingTrial], multiprocessors: int | None = None
) -> tuple[PendingTrial, ...]:
    """Returns trials grouped by problem, in each group the most promising first; ties by trial number.

    The order is that of ``promise``, with a trial's predicted cycles, if known, in place of relative reads.
    ``multiprocessors`` is their number on the GPU; None: that of the chip's largest product.
    """
    by_problem: dict[Problem, list[PendingTrial]] = {}
    for trial in trials:
        by_problem.setdefault(trial.problem, []).append(trial)
    ordered: list[PendingTrial] = []
    for group in by_problem.values():
        ordered += sorted(group, key=lambda trial: (_promise(trial, multiprocessors), trial.origin.number))
    return tuple(ordered)


def promise(problem: Problem, program: KernelProgram, multiprocessors: int) -> Promise:
    """Returns a sort key of a compiled program: smaller is more promising, within one problem only.

    In order: whether tensor cores stay unused though the dtype has them, whether any kernel's tensor-core
    instructions are serialized, bytes of spilled registers, relative reads. Relative reads: proportional to
    the operands read per element of C if each block computed a square tile of C, divided by the mean
    occupancy of the multiprocessors' block slots over all waves.
    """
    launch, resident = _main(program)
    elements = problem.rows * problem.sizes[1]
    blocks = math.prod(launch.grid)
    places = max(multiprocessors * resident, 1)
    filled = blocks / (-(-blocks // places) * places)
    is_idle = problem.dtype in TENSOR_DTYPES and TENSOR_CORES.search(program.ptx) is None
    spilled_bytes = sum(each.spilled_bytes for each in program.resources)
    is_serialized = any(each.is_serialized for each in program.resources)
    return is_idle, is_serialized, spilled_bytes, math.sqrt(blocks / elements) / filled


def deciding_facts(trial: PendingTrial, multiprocessors: int | None = None) -> str:
    """Returns in words what ``best_first`` compares of a trial, and the occupancy of its main kernel."""
    known = multiprocessors or USUAL_MULTIPROCESSORS.get(trial.program.chip, 1)
    idle, serialized, spilled, reads = promise(trial.problem, trial.program, known)
    launch, resident = _main(trial.program)
    kernel = next((each for each in trial.program.resources if each.kernel == launch.kernel), None)
    facts = [
        *["tensor cores idle"] * idle,
        *["wgmma serialized"] * serialized,
        f"{spilled} bytes spilled",
        f"{math.prod(launch.grid)} blocks for {known * resident} places",
        f"relative reads {reads:.3g}",
        *([] if kernel is None else [f"occupancy {kernel.occupancy:.0%}"]),
    ]
    return ", ".join(facts)


def _promise(trial: PendingTrial, multiprocessors: int | None) -> tuple[bool, bool, int, bool, float]:
    """Returns the sort key of a trial; predicted cycles replace reads and sort before unpredicted trials."""
    known = multiprocessors or USUAL_MULTIPROCESSORS.get(trial.program.chip, 1)
    idle, serialized, spilled, reads = promise(trial.problem, trial.program, known)
    cycles = trial.predicted_cycles
    return (idle, serialized, spilled, cycles is None, reads if cycles is None else cycles)


def _main(program: KernelProgram) -> tuple[Launch, int]:
    """Returns the launch that multiplies, and how many of its blocks a multiprocessor holds (1: unknown).

    The launch is the one whose kernel needs most registers: kernels that pack or add up parts need few.
    """
    by_name = {each.kernel: each for each in program.resources}

    def needs(launch: Launch) -> tuple[int, int]:
        known = by_name.get(launch.kernel)
        return (known.registers if known else 0, len(launch.arguments))

    launch = max(program.launches, key=needs)
    known = by_name.get(launch.kernel)
    return launch, max(known.blocks_per_multiprocessor if known else 1, 1)
