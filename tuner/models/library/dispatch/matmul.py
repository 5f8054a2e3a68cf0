"""``tuner.matmul``: the product of two arrays by what is fastest for their shape.

``DispatchedMatmul`` looks a shape up once, by a ``Resolver``; ``Misses`` counts the calls without a kernel
that was tuned for exactly their problem, by reason.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from tuner.core.errors import Refusal, UsageError, unknown_value
from tuner.core.problem import NUMPY_ALIGNMENT
from tuner.core.typed_arguments import typed
from tuner.models.library.dispatch.constant import ConstantMatmul
from tuner.models.library.dispatch.first_use import (
    NO_ARRAYS,
    OUT,
    FirstUseCache,
    MatmulCall,
    default_folder,
    numpy_product,
    problem_of,
)
from tuner.models.library.dispatch.resolver import BASELINE, Chosen, Resolver
from tuner.payload.reference import Array
from tuner.runtime.process_state import between_forks, reentrant_lock, thread_lock
from tuner.targets import registry
from tuner.targets.backends import Backends

FIRST_USE, NEVER = MEASURES = ("first-use", "never")
UNALIGNED: Final = "any"  # Problem.align of arrays at addresses that are not multiples of numpy's alignment
Key = tuple[Any, ...]  # types, shapes and strides of two arrays, then the options


@dataclass(frozen=True)
class Misses:
    """How many calls had no kernel that was tuned for exactly their problem, for one reason."""

    reason: str
    calls: int


@final
class DispatchedMatmul:
    """Multiplies by the best kernel for a shape, which is looked up once. Several threads may call it."""

    def __init__(self, backends: Callable[[], Backends], cache_folder: Callable[[], Path]) -> None:
        self._backends = backends
        self._cache_folder = cache_folder
        self._entries: dict[Key, _Entry] = {}
        self._resolvers: dict[Key, Resolver] = {}
        self._missed: Counter[str] = Counter()
        self._resolving = reentrant_lock()
        self._counting = thread_lock()

    def __repr__(self) -> str:
        return f"<tuner.matmul: {len(self._entries)} shapes looked up>"

    def __call__(
        self,
        a: Array,
        b: Array,
        *,
        rule: str | Path | None = None,
        db: str | Path | None = None,
        threads: int = 1,
        measure: str = FIRST_USE,
        out: Array | None = None,
    ) -> Array:
        """Returns the product of two matrices, computed by the fastest known kernel or by ``np.matmul``.

        In this order: a kernel that was tuned for exactly this problem; without ``rule`` the results that
        tuner ships, with ``rule`` the configuration that is best for the nearest tuned numbers of rows of the
        same n and k; what the cost model ranks first, with ``rule`` corrected by the times of similar
        problems. With ``measure="first-use"`` a new shape is compiled, verified and timed against
        ``np.matmul`` once, in a second or so, and the result is kept on disk; ``np.matmul`` is used unless a
        kernel is 2 % faster. It also computes all but products of two matrices of float32 or float64.

        Args:
            a: matrix of m x k, C-contiguous or the transposed view of a C-contiguous matrix.
            b: matrix of k x n, likewise.
            rule: path of a file of ``tuner portfolio -o``; None: the best trials of the database alone.
            db: path or URL of the results database; None: as for ``tune``. Not read where ``rule`` is given.
            threads: threads of a kernel. ``np.matmul`` runs with as many as its library is set to.
            measure: "first-use", or "never": nothing is timed, and what was stored decides.
            out: array for the result; None: a new array.

        Returns:
            ``out``, or a new array.

        Raises:
            UsageError: a rule file that is damaged, of another machine, number of threads or search space; an
                unknown value of ``measure``; ``threads`` below 1; a database that cannot be opened; what is
                not an array of numbers.
            ValueError: of numpy, for shapes that do not fit.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> a, b = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
            >>> float(tuner.matmul(a, b)[0, 0])
            64.0
        """
        try:
            key = type(a), a.shape, a.strides, a.dtype, type(b), b.shape, b.strides, b.dtype
            entry = self._entries[(*key, rule, db, threads, measure)]
        except (KeyError, AttributeError, TypeError):
            entry = self._entry(a, b, (rule, db, threads, measure))
        entry.count()
        return entry.call(a, b, out)

    def chosen(
        self,
        a: Array,
        b: Array,
        *,
        rule: str | Path | None = None,
        db: str | Path | None = None,
        threads: int = 1,
        measure: str = FIRST_USE,
    ) -> Chosen:
        """Returns what computes the product of such arrays, and where the choice comes from.

        A shape that was not called before is looked up, and measured, as by a call.

        Args:
            a: matrix of m x k, as ``tuner.matmul`` takes it.
            b: matrix of k x n, likewise.
            rule: as for ``tuner.matmul``.
            db: as for ``tuner.matmul``.
            threads: as for ``tuner.matmul``.
            measure: as for ``tuner.matmul``.

        Returns:
            The source, the configuration or the reason for ``np.matmul``, and what was timed at first use.

        Raises:
            UsageError: as ``tuner.matmul`` does.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> a, b = np.ones((64, 64), np.int64), np.ones((64, 64), np.int64)
            >>> tuner.matmul.chosen(a, b).reason
            'types int64 and int64'
        """
        return self._entry(a, b, (rule, db, threads, measure)).chosen

    def packed(self, b: Array, *, db: str | Path | None = None, threads: int = 1) -> ConstantMatmul:
        """Returns the function of products by a constant B, packed once per number of rows, not at each call.

        Args:
            b: matrix of k x n numbers of float32 or float64, such as a layer's weights; it is copied.
            db: path or URL of the results database; None: as for ``tune``.
            threads: threads of a kernel.

        Returns:
            ``product(a, out=None)``, which returns A B for matrices A of k columns and B's type. The first
            product of a number of rows looks up the best kernel of ``tuner tune matmul MxNxK --constant b``,
            or else the strategy's initial configuration, and times it next to ``np.matmul``.

        Raises:
            UsageError: an array of another type or number of dimensions; ``threads`` below 1.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> product = tuner.matmul.packed(np.ones((64, 64), np.float32))
            >>> float(product(np.ones((8, 64), np.float32))[0, 0])
            64.0
        """
        _require_options(None, db, threads, NEVER)
        return ConstantMatmul(b, self._backends(), db, threads)

    def misses(self) -> tuple[Misses, ...]:
        """Returns how many calls had no kernel that was tuned for exactly their problem, by reason.

        Returns:
            The reasons with their calls since the process began, the most frequent first.

        Raises:
            Nothing: calls are counted, whatever they were.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> product = tuner.matmul(np.ones((2, 2), np.int64), np.ones((2, 2), np.int64))
            >>> [miss.reason for miss in tuner.matmul.misses() if "int64" in miss.reason]
            ['baseline: types int64 and int64']
        """
        with self._counting:
            counted = Counter(self._missed)
            for entry in tuple(self._entries.values()):
                counted[entry.chosen.miss] += entry.calls()
        del counted[""]  # hits
        return tuple(Misses(reason, calls) for reason, calls in counted.most_common() if calls)

    def _count(self, reason: str) -> None:
        with self._counting:
            self._missed[reason] += 1

    def _entry(self, a: Array, b: Array, options: Key) -> "_Entry":
        _require_options(*options)
        if type(a) is not np.ndarray or type(b) is not np.ndarray:
            chosen = Chosen(BASELINE, None, reason=NO_ARRAYS)
            return _Entry(chosen, numpy_product, lambda: self._count(chosen.miss))
        key = (type(a), a.shape, a.strides, a.dtype, type(b), b.shape, b.strides, b.dtype, *options)
        return self._entry_of(key, a, b, options, NUMPY_ALIGNMENT)

    def _entry_of(self, key: Key, a: Array, b: Array, options: Key, align: str) -> "_Entry":
        with self._resolving:
            if key not in self._entries:
                self._entries[key] = self._new_entry(key, a, b, options, align)
            return self._entries[key]

    def _new_entry(self, key: Key, a: Array, b: Array, options: Key, align: str) -> "_Entry":
        problem = problem_of(a, b, align)
        if isinstance(problem, Refusal):
            return _Entry(Chosen(BASELINE, None, reason=problem.text), numpy_product)

        def otherwise(a: Array, b: Array, out: Array | None, reason: str) -> Array:
            if reason == OUT:
                self._count(f"{BASELINE}: {reason}")
                return numpy_product(a, b, out)
            other = (*key, UNALIGNED)  # misaligned arrays: a kernel for any address
            entry = self._entries.get(other) or self._entry_of(other, a, b, options, UNALIGNED)
            return entry.call(a, b, out)

        *sources, measure = options
        chosen, call = self._resolver(*sources).resolved(problem, otherwise, measures=measure == FIRST_USE)
        return _Entry(chosen, call)

    def _resolver(self, rule: str | Path | None, db: str | Path | None, threads: int) -> Resolver:
        key = (rule, db, threads)
        if key not in self._resolvers:
            file = None if rule is None else Path(rule)
            with between_forks():
                cache = FirstUseCache(self._cache_folder())
                self._resolvers[key] = Resolver(self._backends(), file, db, threads, cache)
        return self._resolvers[key]


@final
class _Entry:
    """What computes products of arrays of the same types, shapes and strides, and how often it was called."""

    __slots__ = ("_looked", "call", "chosen", "count")

    def __init__(self, chosen: Chosen, call: MatmulCall, count: Callable[[], object] | None = None) -> None:
        self.chosen = chosen
        self.call = call
        # a counter's step is atomic, and ten times as fast as a lock
        self.count: Callable[[], object] = itertools.count().__next__ if count is None else count
        self._looked = 0

    def calls(self) -> int:
        """Returns how many calls of ``tuner.matmul`` have selected this entry.

        A call is counted before it computes: also one that fails, and one with misaligned arrays, which
        another entry computes. Reading does not change the count; the caller holds the lock ``_counting``.
        """
        steps = self.count()  # to read the counter is a step, too, which ``_looked`` counts
        assert isinstance(steps, int)
        self._looked += 1
        return steps - self._looked + 1


def _require_options(rule: Any, db: Any, threads: Any, measure: Any) -> None:
    typed("rule", rule, str | Path | None)
    typed("db", db, str | Path | None)
    if typed("threads", threads, int) < 1:
        raise UsageError(f"threads: found {threads}, allowed 1 or more")
    if typed("measure", measure, str) not in MEASURES:
        raise unknown_value("measure", measure, MEASURES)


# ``tuner.matmul``, which keeps the kernels that this process has loaded; tests replace real_backends
matmul: Final = DispatchedMatmul(lambda: registry.real_backends(), default_folder)
