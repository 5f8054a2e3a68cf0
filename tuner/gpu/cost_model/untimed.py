"""Ranks compiled GPU programs that cannot be timed, by facts about their code; estimates no time."""

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import replace

from tuner.core.compiled_code import KernelCode, Launch, Predict, Resources
from tuner.core.dtypes import TENSOR_DTYPES
from tuner.core.gpu import USUAL_MULTIPROCESSORS
from tuner.core.problem import Problem
from tuner.core.remote_results import PendingTrial

TENSOR_CORES = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync)")  # in PTX
ANNOUNCED = re.compile(
    r"mbarrier\.arrive\.expect_tx\S*\s+[^\[]*\[[^\]]+\], (%r\d+);"
)  # in PTX: a stage's bytes
MBARRIERS_OF_STAGE = 2
# Notes of ptxas 13 that mean a pipeline of wgmma with a wait in every step: "Potential Performance Loss: ..."
SERIALIZED = ("C7510", "C7511", "C7513", "C7514", "C7517", "C7519")

Promise = tuple[bool, bool, int, float]  # see ``promise``; smaller is better
LOOKED_AT = 64  # trials per problem whose cycles are predicted, in half a second each


def best_first(
    trials: Iterable[PendingTrial], multiprocessors: int | None = None
) -> tuple[PendingTrial, ...]:
    """Returns trials grouped by problem, the most promising first; among equals by trial number.

    The order is that of ``promise``, with predicted cycles in place of its last value. Of trials that are
    equal in all other values, those without a prediction come last. ``multiprocessors``: of the GPU; None:
    the usual number of the chip.
    """
    by_problem: dict[Problem, list[PendingTrial]] = {}
    for trial in trials:
        by_problem.setdefault(trial.problem, []).append(trial)
    ordered: list[PendingTrial] = []
    for group in by_problem.values():
        ordered += sorted(group, key=lambda trial: (_sort_key(trial, multiprocessors), trial.origin.number))
    return tuple(ordered)


def promise(problem: Problem, program: KernelCode, multiprocessors: int) -> Promise:
    """Returns the key by which programs for one problem are sorted: a smaller one is more promising.

    (tensor cores unused, wgmma serialized, spilled bytes, reads per flop divided by the share of filled block
    slots of the GPU).
    """
    launch, resident = _main(program)
    elements = problem.rows * problem.sizes[1]
    blocks = math.prod(launch.grid)
    slots = max(multiprocessors * resident, 1)
    filled = blocks / (-(-blocks // slots) * slots)
    is_idle = problem.dtype in TENSOR_DTYPES and TENSOR_CORES.search(program.text) is None
    spilled_bytes = sum(resource.spilled_bytes for resource in program.resources)
    waits = any(is_serialized(resources) for resources in program.resources)
    return is_idle, waits, spilled_bytes, math.sqrt(blocks / elements) / filled


def is_serialized(resources: Resources) -> bool:
    """Returns whether ptxas noted that it serialized wgmma: each wgmma then waits for the one before."""
    return any(f"({code})" in note for note in resources.notes for code in SERIALIZED)


def ring_bytes(ptx: str, kernel: str) -> int:
    """Returns the bytes of tiles that the TMA of one thread block may have in flight; 0 if none are found.

    ``ptx``: text of the module; ``kernel``: name of the entry. The kernel announces the bytes of a stage at
    the stage's mbarrier, and each stage has two mbarriers (``tuner.wgmma_pipeline``). None are found for an
    unknown kernel, one that announces no bytes, or bytes that are not a constant in the text.
    """
    entry = re.search(rf"\.entry {re.escape(kernel)}\(.*?(?=\.entry |\Z)", ptx, re.DOTALL)
    if entry is None:
        return 0
    announced = ANNOUNCED.search(entry[0])
    if announced is None:
        return 0
    size = re.search(rf"mov\.[bu]32\s+{announced[1]}, (\d+);", entry[0])
    if size is None:
        return 0
    return entry[0].count("mbarrier.init") // MBARRIERS_OF_STAGE * int(size[1])


def bytes_per_flop(problem: Problem, blocks: int) -> float:
    """Returns the bytes of A and B that ``blocks`` square blocks of C read, per flop."""
    return problem.input_bytes * math.sqrt(blocks / (problem.rows * problem.sizes[1]))


def deciding_facts(trial: PendingTrial, multiprocessors: int | None = None) -> str:
    """Returns a line with the facts that rank an untimed GPU trial, and its main kernel's occupancy.

    The facts are idle tensor cores, serialized wgmma, spills, blocks, predicted cycles or else bytes read per
    flop. ``multiprocessors``: of the GPU; None: the usual number of the chip.
    """
    counted = _multiprocessors(trial, multiprocessors)
    idle, serialized, spilled, _ = promise(trial.problem, trial.program, counted)
    cycles = trial.predicted_cycles
    launch, resident = _main(trial.program)
    read_bytes = bytes_per_flop(trial.problem, math.prod(launch.grid))
    kernel = next(
        (resource for resource in trial.program.resources if resource.kernel == launch.kernel), None
    )
    facts = []
    if idle:
        facts.append("tensor cores idle")
    if serialized:
        facts.append("wgmma serialized")
    facts.append(f"{spilled} bytes spilled")
    facts.append(f"{math.prod(launch.grid)} blocks, of which {counted} x {resident} run at once")
    if cycles is None:
        facts.append(f"{read_bytes:.3g} bytes read per flop")
    else:
        facts.append(f"{cycles:.0f} predicted cycles")
    if kernel is not None:
        facts.append(f"occupancy {kernel.occupancy:.0%}")
    return ", ".join(facts)


def _sort_key(trial: PendingTrial, multiprocessors: int | None) -> tuple[bool, bool, int, bool, float]:
    idle, serialized, spilled, reads = promise(
        trial.problem, trial.program, _multiprocessors(trial, multiprocessors)
    )
    cycles = trial.predicted_cycles
    return (idle, serialized, spilled, cycles is None, reads if cycles is None else cycles)


def _multiprocessors(trial: PendingTrial, multiprocessors: int | None) -> int:
    return multiprocessors or USUAL_MULTIPROCESSORS.get(trial.program.chip, 1)


def _main(program: KernelCode) -> tuple[Launch, int]:
    """Returns the launch of the kernel with most registers, which multiplies, and its blocks per SM.

    Where registers are unknown, that with most arguments, and 1.
    """
    by_name = {resource.kernel: resource for resource in program.resources}

    def needs(launch: Launch) -> tuple[int, int]:
        known = by_name.get(launch.kernel)
        return (known.registers if known else 0, len(launch.arguments))

    launch = max(program.launches, key=needs)  # kernels that pack or add up parts need few registers
    known = by_name.get(launch.kernel)
    return launch, max(known.blocks_per_multiprocessor if known else 1, 1)


def predicted_first(
    trials: Iterable[PendingTrial], predict: Predict, looked_at: int = LOOKED_AT
) -> tuple[PendingTrial, ...]:
    """Returns trials grouped by problem, the most promising first, with cycles predicted for some of them.

    ``predict`` is called for the first ``looked_at`` of each problem; ``best_first`` then orders them anew.
    """
    ordered: list[PendingTrial] = []
    for _, group in itertools.groupby(best_first(trials), key=lambda trial: trial.problem):
        for index, trial in enumerate(group):
            work = predict(trial.problem, trial.program) if index < looked_at else None
            ordered.append(trial if work is None else replace(trial, predicted_cycles=work.cycles))
    return best_first(ordered)
