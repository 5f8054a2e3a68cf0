"""Fusions of rows as one kernel: softmax, layer norm, RMS norm. A block computes a row.

A reduction over the row is a partial result per thread, over every ``threads``-th column, then
``gpu.all_reduce``, which leaves the result in a register of each thread. Nothing is stored but the fusion's
results: an elementwise operation that two reductions read is computed for each.

    %max = linalg.generic {["parallel", "reduction"]} ins(%x) ...     // arith.maximumf
    %e = linalg.generic ... ins(%x, %max) ...                          // math.exp(x - max)
    %sum = linalg.generic {["parallel", "reduction"]} ins(%e) ...      // arith.addf
    %y = linalg.generic ... ins(%e, %sum) ...                          // e / sum
  becomes
    gpu.launch blocks(%row, ...) threads(%thread, ...) {
      %m = gpu.all_reduce maximumf (scf.for over the thread's columns: load x)
      %s = gpu.all_reduce add (scf.for over the thread's columns: exp(load x - m))
      scf.for over the thread's columns: store exp(load x - m) / s

Not handled: reductions whose last operation is none of ``NEUTRAL``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import WARP_THREADS
from tuner.gpu.fusions.element_kernels import FusionFunction, PointValues, launch
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.building import branch, create, delinearized, index, is_equal, loop, value
from tuner.mlir.ir.reading import maps_in

Build = Callable[[Value, list[Value]], list[Value]]  # of a column and carried values; returns the next ones
THREADS_LIMIT = 256  # of a block
# Operation that combines partial results -> its neutral element; -1: an integer with all bits set.
NEUTRAL = {
    "arith.addf": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minnumf": math.inf,
    "arith.addi": 0,
    "arith.ori": 0,
    "arith.xori": 0,
    "arith.muli": 1,
    "arith.andi": -1,
}


def has_rows(function: FusionFunction) -> bool:
    """Returns whether a fusion has a reduction, and each loop nest is over rows, or over rows and columns."""
    reductions = [op for op in function.generics if not all(operations.is_parallel(op))]
    if not reductions:
        return False
    domain = operations.loop_sizes(reductions[0])
    return all(_is_of_rows(op, domain) for op in function.generics) and all(
        tuple(memory.type.shape) in (domain, domain[:-1]) for _, memory in function.outputs
    )


def launch_rows(function: FusionFunction) -> None:
    """Creates the launch of a fusion of rows at the insertion point: one block of threads per row.

    Raises CandidateError(COMPILE) for a reduction by an operation that ``NEUTRAL`` does not list.
    """
    reductions = [op for op in function.generics if not all(operations.is_parallel(op))]
    domain = operations.loop_sizes(reductions[0])
    rows = domain[:-1]
    columns = domain[-1]
    for op in reductions:
        _combining(op)  # raises before anything is created
    warps = -(-max(1, columns) // WARP_THREADS)
    threads = min(THREADS_LIMIT, warps * WARP_THREADS)

    def block(number: Value, thread: Value) -> None:
        at = delinearized(number, list(map(index, rows)))
        kernel = _Row(function, PointValues(function.memory), at, columns, threads, thread)
        kernel.reduce()
        kernel.write()

    launch(max(1, math.prod(rows)), threads, block)


@dataclass(frozen=True)
class _Row:
    """The body of a kernel: one row, shared by the threads of a block."""

    function: FusionFunction
    points: PointValues
    at: list[Value]  # indices of the row
    columns: int
    threads: int
    thread: Value  # number of this thread

    def reduce(self) -> None:
        """Creates the reductions, and what is computed once a row, in the order of the fusion."""
        for op in self.function.generics:
            if not all(operations.is_parallel(op)):
                self.points.know(op.results[0], self.at, self._reduced(op))
            elif len(operations.loop_sizes(op)) == len(self.at):
                # ``points`` remembers the value: created here, before the loops, it is visible in all of them
                self.points.at(op.results[0], self.at)

    def write(self) -> None:
        rank = len(self.at)
        whole = [output for output in self.function.outputs if output[1].type.rank > rank]

        def store_column(column: Value, _: list[Value]) -> list[Value]:
            self.points.store(whole, [*self.at, column])
            return []

        if whole:
            self._for_columns([], store_column)
        once = [output for output in self.function.outputs if output[1].type.rank == rank]
        if once:
            is_first = is_equal(self.thread, index(0))
            with self.points.region():
                branch(is_first, lambda: self.points.store(once, self.at))

    def _reduced(self, op: Op) -> Value:
        combining = _combining(op)
        init = self.points.at(operations.inits_of(op)[0], self.at)
        number = NEUTRAL[combining.name]
        if isinstance(init.type, ir.IntegerType | ir.IndexType):
            attribute = ir.IntegerAttr.get(init.type, int(number))
        else:
            attribute = ir.FloatAttr.get(init.type, float(number))
        neutral = value("arith.constant", init.type, value=attribute)
        (partial,) = self._for_columns(
            [neutral], lambda column, old: self.points.step(op, [*self.at, column], old)
        )
        reduction = ir.Operation.create("gpu.all_reduce", results=[init.type], operands=[partial], regions=1)
        body = reduction.regions[0].blocks.append(init.type, init.type, arg_locs=[ir.Location.unknown()] * 2)
        with ir.InsertionPoint(body):
            create("gpu.yield", [], [_combined(combining, *body.arguments)])
        return _combined(combining, init, reduction.results[0])

    def _for_columns(self, carried: list[Value], build: Build) -> list[Value]:
        def of_column(column: Value, *old: Value) -> list[Value]:
            with self.points.region():
                return build(column, [*old])

        return loop(self.thread, self.columns, of_column, carried, self.threads)


def _is_of_rows(op: Op, domain: tuple[int, ...]) -> bool:
    """Returns whether ``op`` goes over ``domain``'s rows and columns, or elementwise over the rows alone.

    A reduction must reduce the last dimension, the columns, and no other.
    """
    sizes = operations.loop_sizes(op)
    parallel = operations.is_parallel(op)
    outputs = maps_in(op)[len(operations.inputs_of(op)) :]
    if not all(parallel):
        return (
            sizes == domain
            and len(op.results) == 1
            and parallel.count(False) == 1
            and not parallel[-1]
            and operations.dimensions(outputs[0]) == tuple(range(len(domain) - 1))
        )
    return sizes in (domain, domain[:-1]) and all(map(operations.is_identity, outputs))


def _combining(op: Op) -> Op:
    body = operations.body_of(op)
    end = body[-1]
    last = None
    if len(body) > 1:
        last = body[-2]
    old = list(op.regions[0].blocks[0].arguments)[-1]
    # the body ends in `accumulator op x`, and reads the accumulator nowhere else: partial results can be
    # combined
    is_known = (
        last is not None
        and last.name in NEUTRAL
        and end.operands[0] == last.results[0]
        and list(last.operands).count(old) == 1
        and len(list(old.uses)) == 1
    )
    if not is_known:
        actual = "nothing" if last is None else last.name
        raise CandidateError(Stage.COMPILE, f"no reduction of several threads is known for {actual}")
    return last


def _combined(combining: Op, left: Value, right: Value) -> Value:
    copy = combining.clone()
    copy.operands[0] = left
    copy.operands[1] = right
    return copy.results[0]
