"""What it costs that a library moves each contraction to a function of its own, measured per entry."""

from dataclasses import dataclass, replace

from tuner.analysis.slowdown import Slowdown
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem
from tuner.library.paired_scripts import slower_in_library
from tuner.scripts.matchers import contractions_of

BATCH = 4  # matrices of the batch that a matmul's schedule is timed on


@dataclass(frozen=True)
class OutliningCost:
    """How much longer a library's code takes than the code that its entry's script was timed as."""

    tensors: Slowdown | None  # of one contraction on tensors; None for the entry of a batch
    batch: Slowdown | None  # of a batch on tensors; None for a layout of which no batch is recognized


def outlining_cost(problem: Problem, script: str, library: str) -> OutliningCost:
    """Returns the slowdown of a library against the script of its entry, on tensors and on a batch of them.

    Both codes are compiled and timed now, on this machine. Raises TunerError where one fails or is wrong.
    """
    problems = tuple(
        replace(
            problem,
            operation=one.operation,
            batch=one.batch or (BATCH if one.operation == BATCH_MATMUL else 1),
        )
        for one in contractions_of(problem)
    )
    found = slower_in_library(problems, library, script)
    costs = {each.operation: cost for each, cost in zip(problems, found, strict=True)}
    return OutliningCost(costs.get(MATMUL), costs.get(BATCH_MATMUL))
