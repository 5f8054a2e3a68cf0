"""Which of several compiled programs to time first: an order by static facts, no estimate of a time."""

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

Promise = tuple[bool, bool, int, float]  # smaller is better


def best_first(
    trials: Iterable[PendingTrial], multiprocessors: int | None = None
) -> tuple[PendingTrial, ...]:
    """Returns trials problem by problem, in each the most promising first; ties by number.

    ``multiprocessors`` is that of the GPU; None: that of the largest product of the chip.
    """
    by_problem: dict[Problem, list[PendingTrial]] = {}
    for trial in trials:
        by_problem.setdefault(trial.problem, []).append(trial)
    ordered: list[PendingTrial] = []
    for group in by_problem.values():
        ordered += sorted(group, key=lambda trial: (_promise(trial, multiprocessors), trial.origin.number))
    return tuple(ordered)


def promise(problem: Problem, program: KernelProgram, multiprocessors: int) -> Promise:
    """Returns whether tensor cores lie idle, wait for each other, what spills, what blocks read in vain.

    The last: operands read per element of C if each block had a square tile and C were shared out evenly,
    over the share of the multiprocessors' places for blocks that are taken, on average over the waves.
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


def _promise(trial: PendingTrial, multiprocessors: int | None) -> tuple[bool, bool, int, bool, float]:
    """Returns the promise of a trial, by predicted cycles where these are known; others come after."""
    known = multiprocessors or USUAL_MULTIPROCESSORS.get(trial.program.chip, 1)
    idle, serialized, spilled, reads = promise(trial.problem, trial.program, known)
    cycles = trial.predicted_cycles
    return (idle, serialized, spilled, cycles is None, reads if cycles is None else cycles)


def _main(program: KernelProgram) -> tuple[Launch, int]:
    """Returns the launch that multiplies, and how many of its blocks a multiprocessor holds; 1 if not known.

    Kernels that pack or add up parts need few registers.
    """
    by_name = {each.kernel: each for each in program.resources}

    def needs(launch: Launch) -> tuple[int, int]:
        known = by_name.get(launch.kernel)
        return (known.registers if known else 0, len(launch.arguments))

    launch = max(program.launches, key=needs)
    known = by_name.get(launch.kernel)
    return launch, max(known.blocks_per_multiprocessor if known else 1, 1)
