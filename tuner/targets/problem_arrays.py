"""The arrays of a problem at fixed addresses: all candidates are verified and timed on the same memory."""

from collections.abc import Callable

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.core.record import Verdict
from tuner.payload.reference import Array, Inputs, changed_inputs, compare, draw, draw_base, output_dtype
from tuner.runtime.cpu.guarded_arrays import GuardedArray, aligned_empty

Compare = Callable[[Inputs, Array], tuple[Verdict, str]]  # the text names the worst element


class ProblemArrays:
    """A, B[, bias] and a guarded C, with the float64 reference that C is compared with."""

    def __init__(self, problem: Problem, rng: np.random.Generator, compare: Compare = compare) -> None:
        """Allocates and draws; the float64 product is computed once, when C is judged first."""
        self.problem = problem
        self._compare = compare
        self._base = draw_base(problem, rng)
        m, n, _ = problem.sizes
        self._a, self._b = (aligned_empty(x.shape, x.dtype) for x in (self._base.a, self._base.b))
        self._bias = aligned_empty((n,), output_dtype(problem))
        self._output = GuardedArray((m, n), output_dtype(problem))
        self.fill(rng)

    @property
    def operands(self) -> tuple[Array, ...]:
        """Returns A, B[, bias], C."""
        bias = (self._bias,) if self.problem.epilogue == "bias_relu" else ()
        return (self._a, self._b, *bias, self._output.array)

    @property
    def allocations(self) -> tuple[Array, ...]:
        """Returns the operands with the guard bands of C, which a copy in other memory needs as well."""
        return (*self.operands[:-1], self._output.memory)

    def fill(self, rng: np.random.Generator) -> None:
        """Draws new inputs and fills C with NaN."""
        self._inputs = draw(self.problem, self._base, rng, (self._a, self._b))
        if self._inputs.bias is not None:
            self._bias[...] = self._inputs.bias
        self.poison()

    def poison(self) -> None:
        """Fills C with NaN, and its guard bands with their pattern."""
        self._output.poison()

    def judge(self) -> Verdict:
        """Compares every element of C; checks that its guard bands and the inputs are unchanged.

        Raises CandidateError(VERIFY) for the first of these that fails.
        """
        stray = self._output.stray_bytes()
        if stray:
            raise CandidateError(Stage.VERIFY, f"wrote {stray} bytes outside of C")
        verdict, worst = self._compare(self._inputs, self._output.array)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        changed = changed_inputs(self._inputs, self.operands[:-1])
        if changed:
            raise CandidateError(Stage.VERIFY, f"changed its input {changed}")
        return verdict
