"""What it costs that a library moves each contraction to a function of its own, measured per entry."""

from dataclasses import dataclass, replace

from tuner.analysis.slowdown import Slowdown
from tuner.core.problem import BATCH_MATMUL, Problem
from tuner.library.paired_scripts import slower_in_library

BATCH = 4  # matrices of the batch that a matmul's schedule is timed on


@dataclass(frozen=True)
class OutliningCost:
    """How much longer a library's code takes than the code that its entry's script was timed as."""

    batch: Slowdown  # of a batch on tensors
    tensors: Slowdown | None = None  # of one contraction on tensors; None for the entry of a batch


def outlining_cost(problem: Problem, script: str, library: str) -> OutliningCost:
    """Returns the slowdown of a library against the script of its entry, on tensors and on a batch of them.

    Both codes are compiled and timed now, on this machine. Raises TunerError where one fails or is wrong.
    """
    is_batch = problem.operation == BATCH_MATMUL
    batch = problem if is_batch else replace(problem, operation=BATCH_MATMUL, batch=BATCH)
    problems = (batch,) if is_batch else (batch, problem)
    return OutliningCost(*slower_in_library(problems, library, script))
