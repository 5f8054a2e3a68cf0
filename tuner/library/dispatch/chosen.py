"""Which kernel, or the baseline, computes a product, and why."""

from dataclasses import dataclass

from tuner.analysis.many_shapes.choice import MODEL, SAME_WEIGHTS, TUNED
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.library.dispatch.first_use import FirstUse

FIRST_USE = "first use"
BASELINE = "baseline"
SOURCES = (TUNED, SAME_WEIGHTS, FIRST_USE, MODEL, BASELINE)


@dataclass(frozen=True)
class Chosen:
    """What computes the product of arrays of certain shapes, types and strides.

    ``source`` is "tuned" (a kernel that was tuned for exactly this problem), "same n and k" (the best for the
    nearest tuned numbers of rows), "first use" (the fastest of a few, timed when the shape came first), "cost
    model" (never tuned, nothing measured), or "baseline" (numpy's product).
    """

    source: str  # one of SOURCES
    problem: Problem | None  # None: nothing that kernels are tuned for
    candidate: Candidate | None = None  # as it is on the problem; None: the baseline
    reason: str = ""  # why the baseline, in one line; "": a kernel
    first_use: FirstUse | None = None  # what was timed when the shape came first; None: nothing

    @property
    def is_tuned(self) -> bool:
        """Returns True for a kernel that was tuned for exactly this problem."""
        return self.source == TUNED

    @property
    def miss(self) -> str:
        """Returns in one line why a call is no hit: not a kernel that was tuned for exactly its problem."""
        if self.is_tuned:
            return ""
        return f"baseline: {self.reason}" if self.source == BASELINE else f"never tuned: {self.source}"


@dataclass(frozen=True)
class Misses:
    """How many calls had no kernel that was tuned for exactly their problem, for one reason."""

    reason: str
    calls: int
