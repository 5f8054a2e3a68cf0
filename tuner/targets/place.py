"""The arrays of one problem, which stay in place: all candidates are judged and timed on the same memory."""

from collections.abc import Callable

import numpy as np

from tuner.errors import CandidateError, Stage
from tuner.problem import Problem
from tuner.record import Verdict
from tuner.reference import Array, Inputs, changed_inputs, compare, draw, draw_base, output_dtype
from tuner.runtime.allocation import GuardedArray, aligned_empty

Compare = Callable[[Inputs, Array], tuple[Verdict, str]]  # the text names the worst element


class Place:
    """A, B[, bias] and a guarded C, with the answer that C should hold."""

    def __init__(self, problem: Problem, rng: np.random.Generator, compare: Compare = compare) -> None:
        """Allocates, draws and fills; the float64 product is computed once, when C is first judged."""
        self.problem = problem
        self._compare = compare
        self._base = draw_base(problem, rng)
        m, n, _ = problem.sizes
        self._a, self._b = (aligned_empty(x.shape, x.dtype) for x in (self._base.a, self._base.b))
        self._bias = aligned_empty((n,), output_dtype(problem))
        self._output = GuardedArray((m, n), output_dtype(problem))
        self.fill(rng)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Returns A, B[, bias], C."""
        bias = (self._bias,) if self.problem.epilogue == "bias_relu" else ()
        return (self._a, self._b, *bias, self._output.array)

    @property
    def blocks(self) -> tuple[Array, ...]:
        """Returns the same memory whole, C with its guards, for a copy elsewhere."""
        return (*self.arrays[:-1], self._output.memory)

    def fill(self, rng: np.random.Generator) -> None:
        """Draws fresh inputs and poisons C."""
        self._inputs = draw(self.problem, self._base, rng, (self._a, self._b))
        if self._inputs.bias is not None:
            self._bias[...] = self._inputs.bias
        self.poison()

    def poison(self) -> None:
        """Forgets what C holds, and fences it anew."""
        self._output.poison()

    def judge(self) -> Verdict:
        """Compares every element of C, and looks at all around it that must be as it was.

        Raises CandidateError(VERIFY) for the first harm found.
        """
        stray = self._output.stray_bytes()
        if stray:
            raise CandidateError(Stage.VERIFY, f"wrote {stray} bytes outside of C")
        verdict, worst = self._compare(self._inputs, self._output.array)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        changed = changed_inputs(self._inputs, self.arrays[:-1])
        if changed:
            raise CandidateError(Stage.VERIFY, f"changed its input {changed}")
        return verdict
