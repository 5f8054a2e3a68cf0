"""Gives a function two more arguments, a thread and the number of threads, and divides its loops among them.

    func.func @fusion(%a: memref<128x64xf32>, %c: memref<128x64xf32>) {
      scf.for %i = %c0 to %c128 step %c1 {...}
      <stores>
  becomes
    func.func @fusion(%a: memref<128x64xf32>, %c: memref<128x64xf32>, %thread: index, %threads: index) {
      %first = 128 * %thread / %threads
      %end = 128 * (%thread + 1) / %threads
      scf.for %i = %first to %end step %c1 {...}
      scf.if %thread == 0 { <stores> }

Taken are loops of scf on memrefs and vectors, before they become LLVM dialect. The loops that are divided are
the outermost ones, or those inside of them where that shares the work more evenly. A function of which that
cannot be shown to be right, or that would gain little, stays as it is.

Why it is right: a part is a loop whose iterations are shared out, or code between loops, which one thread
runs alone, or all threads. All threads run the same function, each with buffers of its own for what the
function allocates, and nothing makes one wait for another. So what a part writes, no other thread may touch
(``accesses_in`` gives the reads and writes of a part, each a box of elements of a buffer):

- iterations of a shared loop access separate slabs: rows or columns that follow the loop's variable;
- a buffer of the function that each iteration writes before it reads may be used again by the next one;
- two parts touch separate elements, or separate slabs of equal loops, or are run by the same thread.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from math import prod

from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.cpu.index_ranges import LOOP, IndexRange, LoopBounds, bounds_of, range_of
from tuner.mlir.cpu.memory_accesses import (
    ALLOCATIONS,
    NO_ACCESS,
    READS,
    WHOLE_READS,
    WHOLE_WRITES,
    WRITES,
    PlacedAccess,
    accesses_in,
    is_computing,
    is_local,
)
from tuner.mlir.ir.building import index, is_equal, times, total, value
from tuner.mlir.ir.reading import ops_in, types_of, walk

DEPTHS = (0, 1, 2, 3)  # of the loops that are divided
MOST_OF_OUTER = 0.97  # inner loops are divided where that takes at most so much of the time of outer ones
MOST_OF_ONE = 0.8  # of the time of one thread, by the numbers of operations; else nothing is divided
LANES = 16  # elements of a vector operation that counts as one
SLOW_WEIGHT = 16  # of an elementary function: operations
UNKNOWN_TRIPS = 8
MEMORY = (*READS, *WRITES, *WHOLE_READS, *WHOLE_WRITES)


class ThreadShare(Enum):
    """Which threads run a part of a function, a loop or the code between loops."""

    SHARED = "each thread some iterations"
    ALONE = "the first thread"
    ALL = "each thread everything"


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a function: a loop, or the ops between two loops, with what they read and write."""

    share: ThreadShare
    ops: tuple[Op, ...]
    accesses: tuple[PlacedAccess, ...]
    bounds: LoopBounds | None = None  # of a shared loop

    @property
    def variable(self) -> Value:
        return self.ops[0].regions[0].blocks[0].arguments[0]

    @property
    def buffers(self) -> list[Value]:
        """Returns the buffers that the part reads or writes, in the order of the first accesses."""
        return list(dict.fromkeys(access.buffer for access in self.accesses))

    def of(self, buffer: Value) -> tuple[PlacedAccess, ...]:
        return tuple(access for access in self.accesses if access.buffer == buffer)

    def writes(self, buffer: Value) -> bool:
        return any(access.is_write for access in self.of(buffer))


@dataclass(frozen=True)
class Slab:
    """The indices along a dimension that an iteration of a loop accesses.

    They are ``factor`` times the loop's variable plus ``low`` to ``high``.
    """

    dimension: int
    factor: int
    low: int
    high: int


def may_run_together(parts: Sequence[Part]) -> bool:
    """Returns whether threads may run all ``parts``, each thread its share, without a barrier in between."""
    shared = [part for part in parts if part.share is ThreadShare.SHARED]
    if not all(map(_has_separate_iterations, shared)):
        return False
    return all(_are_separate(part, other) for part, other in combinations(parts, 2))


def _has_separate_iterations(part: Part) -> bool:
    for buffer in part.buffers:
        is_rewritten = is_local(buffer) and part.of(buffer)[0].is_write
        if part.writes(buffer) and not is_rewritten and not _slabs([part], buffer):
            return False
    return True


def _are_separate(part: Part, other: Part) -> bool:
    """Returns whether no thread touches in one part what another thread writes in the other one."""
    shared_buffers = [buffer for buffer in part.buffers if other.of(buffer)]
    return all(_are_separate_in(buffer, part, other) for buffer in shared_buffers)


def _are_separate_in(buffer: Value, part: Part, other: Part) -> bool:
    shares = {part.share, other.share}
    writers = [writer for writer in (part, other) if writer.writes(buffer)]
    if not writers or part.share == other.share != ThreadShare.SHARED:
        return True  # read only, or both by the same thread
    if is_local(buffer) and all(writer.share is ThreadShare.ALL for writer in writers):
        return True  # each thread has written all of its own buffer
    if shares == {ThreadShare.SHARED} and part.bounds == other.bounds and _slabs([part, other], buffer):
        return True
    ranges = zip(_ranges(part, buffer), _ranges(other, buffer), strict=False)
    return any(left[1] < right[0] or right[1] < left[0] for left, right in ranges if left and right)


def _slabs(parts: Sequence[Part], buffer: Value) -> list[Slab]:
    """Returns the dimensions along which iterations of the loops access separate slabs of a buffer."""
    slabs = []
    accesses: list[tuple[Value, PlacedAccess]] = []
    for part in parts:
        accesses += [(part.variable, access) for access in part.of(buffer)]
    if not all(access.starts for _, access in accesses):
        return []
    bounds = parts[0].bounds
    for dimension in range(len(accesses[0][1].starts)):
        touched = [_touched(access, dimension, variable) for variable, access in accesses]
        known = [index_range for index_range in touched if index_range is not None]
        factors = {index_range.factor for index_range in known}
        if len(known) < len(touched) or len(factors) != 1:
            continue
        low = min(index_range.low for index_range in known)
        high = max(index_range.high for index_range in known)
        (factor,) = factors
        if bounds is not None and abs(factor) * bounds.step > high - low:
            slabs.append(Slab(dimension, factor, low, high))
    return slabs


def _ranges(part: Part, buffer: Value) -> list[tuple[int, int] | None]:
    """Returns the first and the last index of each dimension of a buffer that a part touches; None: any."""
    accesses = part.of(buffer)
    # an access to the whole buffer
    if not all(access.starts for access in accesses):
        return []
    ranges: list[tuple[int, int] | None] = []
    for dimension in range(len(accesses[0].starts)):
        touched = [_touched(access, dimension, None) for access in accesses]
        known = [index_range for index_range in touched if index_range is not None]
        if len(known) < len(touched):
            ranges.append(None)
            continue
        first = min(index_range.low for index_range in known)
        last = max(index_range.high for index_range in known)
        ranges.append((first, last))
    return ranges


def _touched(access: PlacedAccess, dimension: int, variable: Value | None) -> IndexRange | None:
    """Returns the indices of an access along a dimension, relative to ``variable``; None if not known."""
    start = range_of(access.starts[dimension], variable)
    if start is None:
        return None
    return IndexRange(start.factor, start.low, start.high + access.extents[dimension] - 1)


@dataclass(frozen=True, eq=False)
class _Placed:
    """A part of the function, and how often a call of the function runs the part."""

    part: Part
    runs: int  # how often a call of the function runs it


@dataclass(frozen=True, eq=False)
class _Division:
    """A function's parts, each with the threads that run it, and the estimated time of a call."""

    placed: tuple[_Placed, ...]
    time: float  # of the slowest thread, in operations


def divide_among_threads(function: Op, threads: int) -> bool:
    """Divides a function's loops among threads, in place; returns whether it did.

    Adds two arguments, the thread's number, from 0 on, and the number of threads, which need not be
    ``threads``: that number only decides which loops are divided. False, with nothing changed, if dividing
    cannot be shown to be right or would gain little.
    """
    block = function.regions[0].blocks[0]
    if walk(function, "cf.assert", "func.call") or len(function.regions[0].blocks) > 1:
        return False
    alone = sum(map(_work, _body(block)))
    best: _Division | None = None
    for depth in DEPTHS:
        division = _division(block, depth, threads)
        if division is None or not any(placed.part.share is ThreadShare.SHARED for placed in division.placed):
            continue
        if best is None or division.time < best.time * MOST_OF_OUTER:
            best = division
        if best.time * MOST_OF_OUTER < alone / threads:
            break
    if best is None or best.time > alone * MOST_OF_ONE:
        return False
    _rewrite(function, [placed.part for placed in best.placed])
    return True


def _division(block: Block, depth: int, threads: int) -> _Division | None:
    """Returns the function divided among threads at loops of nesting ``depth``, with its estimated time.

    None if parts that run at the same time may conflict.
    """
    placed: list[_Placed] = []
    for ops, runs in _pieces(block, depth, 1):
        part = _part(ops)
        if part is None:
            return None
        placed.append(_Placed(part, runs))
    if not may_run_together([placed_part.part for placed_part in placed]):
        placed = [_Placed(_by_all_where_own(placed_part.part), placed_part.runs) for placed_part in placed]
        if not may_run_together([placed_part.part for placed_part in placed]):
            return None
    loads = [sum(_load(placed_part, thread, threads) for placed_part in placed) for thread in range(threads)]
    return _Division(tuple(placed), max(loads))


def _pieces(block: Block, depth: int, runs: int) -> Iterator[tuple[tuple[Op, ...], int]]:
    """Yields the loops of nesting ``depth`` and the operations between loops, and how often each runs."""
    between: list[Op] = []
    for op in _body(block):
        if op.name != LOOP or op.results:
            between.append(op)
            continue
        if between:
            yield tuple(between), runs
            between = []
        body = op.regions[0].blocks[0]
        if depth and any(inner.name == LOOP and not inner.results for inner in _body(body)):
            yield from _pieces(body, depth - 1, runs * _trips(op))
        else:
            yield (op,), runs
    if between:
        yield tuple(between), runs


def _part(ops: tuple[Op, ...]) -> Part | None:
    """Returns ``ops`` as a part, with the threads that may run it; None if it cannot be divided."""
    own: set[Value] = set()
    for op in ops:
        for allocation in walk(op, *ALLOCATIONS):
            own.update(allocation.results)
    accesses = []
    for op in ops:
        accesses_of_op = accesses_in(op)
        if accesses_of_op is None:
            return None
        accesses += [access for access in accesses_of_op if op.name != LOOP or access.buffer not in own]
    if ops[0].name == LOOP and not ops[0].results:
        bounds = bounds_of(ops[0])
        shared = Part(ThreadShare.SHARED, ops, tuple(accesses), bounds)
        if bounds is not None and bounds.trips > 1 and may_run_together([shared]):
            return shared
    moved = _moved(ops)
    # each thread may run what writes only memory of its own; what writes an argument is for the first thread
    if not any(access.is_write and not is_local(access.buffer) for access in accesses):
        return Part(ThreadShare.ALL, ops, tuple(accesses))
    if any(_is_used_outside(op, moved) for op in moved):
        return None
    return Part(ThreadShare.ALONE, tuple(moved), tuple(accesses))


def _by_all_where_own(part: Part) -> Part:  # run whole by each thread, if it writes only its own memory
    is_own = all(is_local(access.buffer) for access in part.accesses if access.is_write)
    if is_own:
        return replace(part, share=ThreadShare.ALL, bounds=None)
    return part


def _moved(ops: Sequence[Op]) -> list[Op]:
    """Returns the operations that only the first thread runs: what accesses memory or uses such results."""
    moved: list[Op] = []
    made: set[Value] = set()
    for op in ops:
        is_free = op.name in NO_ACCESS or (is_computing(op) and op.name not in MEMORY)
        if not is_free or any(operand in made for operand in op.operands):
            moved.append(op)
            made |= set(op.results)
    return moved


def _is_used_outside(op: Op, moved: Sequence[Op]) -> bool:
    block = op.block
    for result in op.results:
        for use in result.uses:
            user = use.owner.operation
            while user.block != block:
                user = user.parent.operation
            if user not in moved:
                return True
    return False


def _load(placed: _Placed, thread: int, threads: int) -> float:
    part = placed.part
    work = sum(map(_work, part.ops)) * placed.runs
    if part.share is ThreadShare.ALL:
        return work
    if part.share is ThreadShare.ALONE:
        if thread == 0:
            return work
        return 0.0
    assert part.bounds is not None
    trips = part.bounds.trips
    return work * ((thread + 1) * trips // threads - thread * trips // threads) / trips


def _work(op: Op) -> float:
    """Returns the estimated operations of an op and the ops in it; one on a whole vector counts as one.

    A loop counts once per iteration; a vector wider than LANES elements counts more than once.
    """
    if op.regions:
        inside = 0.0
        for region in op.regions:
            for block in region.blocks:
                inside += sum(map(_work, _body(block)))
        if op.name == LOOP:
            return inside * _trips(op)
        return inside
    if op.name in NO_ACCESS or op.name == "arith.constant":
        return 0.0
    types = types_of(op.results) or types_of(list(op.operands)[:1])
    vectors = [ir.VectorType(type_) for type_ in types if isinstance(type_, ir.VectorType)]
    elements = max((prod(vector.shape) for vector in vectors), default=1)
    operations = max(elements / LANES, 1)
    if op.name.startswith("math."):
        return operations * SLOW_WEIGHT
    return operations


def _trips(loop: Op) -> int:
    bounds = bounds_of(loop)
    if bounds is None:
        return UNKNOWN_TRIPS
    return bounds.trips


def _body(block: Block) -> list[Op]:
    return ops_in(block)[:-1]


def _rewrite(function: Op, parts: Sequence[Part]) -> None:
    type_ = ir.IndexType.get()
    block = function.regions[0].blocks[0]
    location = ir.Location.unknown()
    thread, threads = (block.add_argument(type_, location) for _ in range(2))
    inputs = types_of(block.arguments)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
    with ir.InsertionPoint.at_block_begin(block), location:
        is_first = is_equal(thread, index(0))
        after = total(thread, index(1))
        for part in parts:
            if part.share is ThreadShare.SHARED:
                assert part.bounds is not None
                loop = part.ops[0]
                for bound, number in ((0, thread), (1, after)):
                    share = value(
                        "arith.divui", ir.IndexType.get(), times(number, part.bounds.trips), threads
                    )
                    loop.operands[bound] = total(times(share, part.bounds.step), index(part.bounds.first))
    for part in parts:
        if part.share is ThreadShare.ALONE:
            _run_alone(part.ops, is_first)


def _run_alone(ops: Sequence[Op], is_first: Value) -> None:
    """Moves operations into a branch that only the first thread takes; their operands are computed before."""
    block = ops[0].block
    free = [inner for inner in _body(block) if inner not in ops]
    first = _body(block).index(ops[0])
    with ir.InsertionPoint(ops[0]), ir.Location.unknown():
        branch = ir.Operation.create("scf.if", operands=[is_first], regions=2)
        then = branch.regions[0].blocks.append()
        with ir.InsertionPoint(then):
            end = ir.Operation.create("scf.yield")
    # what stands between `ops` moves before the branch: `ops` may use its results
    last = _body(block).index(ops[-1])
    for op in _body(block)[first + 1 : last]:
        if op in free and op.name != "memref.dealloc":
            op.move_before(branch)
    for op in ops:
        op.move_before(end)
