"""``tuner.matmul.packed``: products by one constant matrix, which is packed once for each number of rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, final

import numpy as np

from tuner.core.errors import CandidateError, UsageError
from tuner.core.fusions import CONTRACTION
from tuner.core.problem import Problem
from tuner.core.problem_classes import PackedProblem
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.models.library.dispatch.first_use import (
    EFFORT,
    LEAST_GAIN,
    LOCK_LIMIT_S,
    SEED,
    TUNED_DTYPES,
    numpy_product,
)
from tuner.models.library.dispatch.resolver import tuned_here
from tuner.payload.reference import Array
from tuner.runtime import timing
from tuner.runtime.process_state import between_forks, reentrant_lock
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text, ignore_holder
from tuner.space.scripts.choice import default_script
from tuner.targets.backends import Backends
from tuner.targets.cpu.callables import load_callable
from tuner.targets.cpu.packed_callables import PackedMatmul, PackingKernel


class ProductByConstant(Protocol):
    """A function that multiplies by one constant matrix B."""

    def __call__(self, a: Array, /, *, out: Array | None) -> Array:
        """Returns A @ B in ``out``, or in a new array if that is None."""


@final
class ConstantMatmul:
    """``product(a, out=None)``: A B for a constant B. Several threads may call it.

    The first product of a number of rows looks up the kernel that was tuned for it, with B packed ahead
    (``tuner tune matmul MxNxK --constant b``), or else compiles the strategy's initial configuration; packs
    B; verifies the kernel; and times it next to ``np.matmul``, which is used unless the kernel is right and
    faster by LEAST_GAIN (2 %).
    """

    def __init__(self, b: Array, backends: Backends, db: str | Path | None, threads: int) -> None:
        """Copies B, a matrix of float32 or float64; raises UsageError for another array."""
        if type(b) is not np.ndarray or b.ndim != 2 or b.dtype not in TUNED_DTYPES or 0 in b.shape:
            raise UsageError(
                "b: found no matrix of float32 or float64 numbers, allowed a numpy array of those"
            )
        self._b = np.array(b, order="C")
        self._backends = backends
        self._db = db
        self._threads = threads
        self._by_rows: dict[int, ProductByConstant] = {}
        self._lock = reentrant_lock()

    def __call__(self, a: Array, out: Array | None = None) -> Array:
        """Returns A B.

        Args:
            a: a matrix (m, k) of B's type; it is copied unless it is C-contiguous.
            out: array (m, n) for the result; None: a new array.

        Returns:
            ``out``, or a new array.

        Raises:
            UsageError: an ``a`` of another type or number of columns; an ``out`` that a kernel cannot fill.
            ValueError: of numpy, for an ``out`` of another shape where ``np.matmul`` computes.
        """
        k = self._b.shape[0]
        if type(a) is not np.ndarray or a.ndim != 2 or a.shape[1] != k or a.dtype != self._b.dtype:
            raise UsageError(f"a: found no {self._b.dtype} matrix of {k} columns, as B has {k} rows")
        if not a.shape[0]:
            return self._with_numpy(a, out)
        product = self._by_rows.get(a.shape[0])
        if product is None:
            with self._lock:
                product = self._by_rows.get(a.shape[0]) or self._looked_up(a.shape[0])
                self._by_rows[a.shape[0]] = product
        return product(np.ascontiguousarray(a), out=out)

    def _with_numpy(self, a: Array, out: Array | None) -> Array:
        return numpy_product(a, self._b, out)

    def _looked_up(self, rows: int) -> ProductByConstant:
        k, n = self._b.shape
        problem = PackedProblem(CONTRACTION, (rows, n, k), TUNED_DTYPES[self._b.dtype])
        try:
            with between_forks():  # os.fork() waits: a child would inherit locked LLVM state
                packed = self._packed(problem)
        except CandidateError:
            packed = None
        if packed is not None and self._is_worth_it(problem, packed):
            return packed
        return self._with_numpy

    def _packed(self, problem: Problem) -> PackedMatmul | None:
        script = self._script(problem)
        if script is None:
            return None
        kernel = load_callable(problem, script, self._threads)
        assert isinstance(kernel, PackingKernel)
        return kernel.pack(self._b)

    def _script(self, problem: Problem) -> str | None:
        tuned = tuned_here(problem, self._backends, self._db, self._threads)
        if tuned is not None:
            return tuned[1].script_text
        script = default_script(problem, self._backends.machine())
        if script is None:
            return None
        return script.text

    def _is_worth_it(self, problem: PackedProblem, packed: PackedMatmul) -> bool:
        """Returns whether a kernel is right, and faster than ``np.matmul``, on random rows."""
        rng = np.random.default_rng(SEED)
        a = rng.standard_normal(problem.a_shape).astype(self._b.dtype)
        if worst_error(evaluate(problem.text, (a, self._b))[0], packed(a)) > 1:
            return False

        def repeated(product: ProductByConstant) -> Callable[[int], None]:
            def repeat(times: int) -> None:
                for _ in range(times):
                    product(a, out=None)

            return repeat

        with TimingLock("cpu", holder_text(problem), LockWait(ignore_holder, limit_s=LOCK_LIMIT_S)).held():
            calls = (repeated(packed), repeated(self._with_numpy))
            ours, numpys = timing.measure_together(calls, EFFORT, rng)
        return ours.median_s < numpys.median_s * (1 - LEAST_GAIN)
