"""The order in which compiled programs are timed: by static facts, which estimate no time."""

import math
import re
from collections.abc import Iterable

from tuner.core.fusions import FLOAT8S
from tuner.core.gpu import USUAL_MULTIPROCESSORS
from tuner.core.gpu_code import KernelProgram, Launch
from tuner.core.problem import Problem
from tuner.core.remote_results import PendingTrial

TENSOR_CORES = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync)")  # in PTX
TENSOR_DTYPES = ("f16", "bf16", "tf32", "i8", *FLOAT8S)

Promise = tuple[bool, bool, int, float]  # see ``promise``; smaller is better


def best_first(
    trials: Iterable[PendingTrial], multiprocessors: int | None = None
) -> tuple[PendingTrial, ...]:
    """Returns trials grouped by problem, the most promising first (see ``promise``), ties by trial number.

    Predicted cycles replace relative reads in the key; trials that have none come after those that do.
    ``multiprocessors`` None: as usual for the chip.
    """
    by_problem: dict[Problem, list[PendingTrial]] = {}
    for trial in trials:
        by_problem.setdefault(trial.problem, []).append(trial)
    ordered: list[PendingTrial] = []
    for group in by_problem.values():
        ordered += sorted(group, key=lambda trial: (_promise(trial, multiprocessors), trial.origin.number))
    return tuple(ordered)


def promise(problem: Problem, program: KernelProgram, multiprocessors: int) -> Promise:
    """Returns a program's sort key within a problem: smaller is more promising.

    Tensor cores unused or serialized, spilled bytes, relative reads per element of C over the share of the
    GPU's places for blocks that are filled.
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
    """Returns one line with the facts that rank an untimed GPU trial, and its main kernel's occupancy.

    The facts are idle tensor cores, spills, blocks, predicted cycles. ``multiprocessors``: of the GPU; None:
    the number that GPUs of the chip usually have.
    """
    known = _known(trial, multiprocessors)
    idle, serialized, spilled, reads = promise(trial.problem, trial.program, known)
    cycles = trial.predicted_cycles
    launch, resident = _main(trial.program)
    kernel = next((each for each in trial.program.resources if each.kernel == launch.kernel), None)
    facts = [
        *["tensor cores idle"] * idle,
        *["wgmma serialized"] * serialized,
        f"{spilled} bytes spilled",
        f"{math.prod(launch.grid)} blocks for {known * resident} places",
        f"relative reads {reads:.3g}" if cycles is None else f"{cycles:.0f} predicted cycles",
        *([] if kernel is None else [f"occupancy {kernel.occupancy:.0%}"]),
    ]
    return ", ".join(facts)


def _promise(trial: PendingTrial, multiprocessors: int | None) -> tuple[bool, bool, int, bool, float]:
    idle, serialized, spilled, reads = promise(trial.problem, trial.program, _known(trial, multiprocessors))
    cycles = trial.predicted_cycles
    return (idle, serialized, spilled, cycles is None, reads if cycles is None else cycles)


def _known(trial: PendingTrial, multiprocessors: int | None) -> int:
    return multiprocessors or USUAL_MULTIPROCESSORS.get(trial.program.chip, 1)


def _main(program: KernelProgram) -> tuple[Launch, int]:
    by_name = {each.kernel: each for each in program.resources}

    def needs(launch: Launch) -> tuple[int, int]:
        known = by_name.get(launch.kernel)
        return (known.registers if known else 0, len(launch.arguments))

    launch = max(program.launches, key=needs)  # kernels that pack or add up parts need few registers
    known = by_name.get(launch.kernel)
    return launch, max(known.blocks_per_multiprocessor if known else 1, 1)
