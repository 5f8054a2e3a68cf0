"""The transform op ``tuner.skip_hidden_keys``."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from tuner.core.errors import Refusal
from tuner.core.fusion_facts import GUARDED, MOST_GUARDED, VISIBLE
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import compared, index, loop, plus, splat, times, total, value, zero
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import constant_of, parents_of, walk

# marks of loops
KEYS = "keys"
SCORES = "columns_scores"
CHUNKS = "chunks"
BLOCK = "block"
BATCH = "batch"
ROWS = (BLOCK, "rows_mixed")
WIDTH = 64  # elements that are read at a time
BITS: dict[str, tuple[Any, Any, int]] = {"f32": (np.float32, np.int32, 32), "f64": (np.float64, np.int64, 64)}


class SkipHiddenKeysOp(InPlaceOp, name="skip_hidden_keys"):
    """``tuner.skip_hidden_keys``: loops over the keys of an attention leave out what its mask hides.

    Takes a function on tensors, tiled and vectorized, with an argument ``tuner.visible`` (the mask: row i
    hides every key but i + first to i + last) and arguments ``tuner.guarded`` (queries, keys, values). Loops
    marked ``keys`` get bounds that follow the rows of their block: from the loops marked ``block`` and
    ``rows_mixed`` around them. A hidden key adds 0 times a value; that is NaN where the value is NaN or
    infinite, so the guarded arguments are read first, for each matrix of a batch, and all keys are computed
    where a number is NaN or above 1e10 in magnitude: a product of such numbers may be infinite.

        %blocks = scf.for %block = %c0 to %c512 step %c48 iter_args(...) -> (tensor<512xf32>) {
          %weights = scf.for %key = %c0 to %c512 step %c32 iter_args(...) -> (tensor<512xf32>) {
          } {chunks, keys}
        } {block}
      becomes, with tuner.visible = array<i64: -511, 0>, %unsafe being 512 or 0
        %seen = arith.addi %block, %c48 : index
        %least = arith.addi %seen, %unsafe : index
        %end = arith.minsi %least, %c512 : index
        %weights = scf.for %key = %c0 to %end step %c32 iter_args(...) -> (tensor<512xf32>) {

    Scores that no whole chunk of a softmax reads (its loops are marked ``chunks``) are always computed. The
    handle (a func.func) stays valid. Silenceable failure: not one argument ``tuner.visible``, no guarded
    argument, or one of another type than f32 and f64, or with rows whose elements are not adjacent.
    """

    def change(self, function: Op) -> Refusal | None:
        arguments = list(function.regions[0].blocks[0].arguments)
        marks = [argument_attributes(function, argument.arg_number) for argument in arguments]
        masks = [argument for argument, named in zip(arguments, marks, strict=True) if VISIBLE in named]
        guarded = [argument for argument, named in zip(arguments, marks, strict=True) if GUARDED in named]
        if len(masks) != 1:
            return Refusal(f"target: found {len(masks)} arguments {VISIBLE}, allowed 1")
        if not guarded:
            return Refusal(f"target: found no argument {GUARDED}, allowed 1 or more")
        for marked in guarded:
            type_ = ir.MemRefType(marked.type)
            if str(type_.element_type) not in BITS or type_.get_strides_and_offset()[0][-1] != 1:
                return Refusal(
                    f"target: found argument {marked.arg_number} of {type_}, allowed rows of f32 or f64"
                )
        queries, keys = masks[0].type.shape[-2:]
        first, last = ir.DenseI64ArrayAttr(marks[masks[0].arg_number][VISIBLE])
        loops = [op for op in walk(function, "scf.for") if KEYS in op.attributes]
        ends = [(constant_of(op.operands[1]) or 0) for op in loops if CHUNKS in op.attributes]
        chunks = [(constant_of(op.operands[2]) or 1) for op in loops if CHUNKS in op.attributes]
        band = _Band(first, last, queries, keys, rest=max(ends, default=0), chunk=max(chunks, default=1))
        # %unsafe of the example: one per loop over the batch, where guarded arguments are read
        unsafe: dict[Op, Value] = {}
        for key_loop in loops:
            around = next((op for op in parents_of(key_loop) if BATCH in op.attributes), function)
            if around not in unsafe:
                unsafe[around] = _unsafe(guarded, around, keys)
            _bound(key_loop, band, unsafe[around])
        return None


@dataclass(frozen=True)
class _Band:
    """The keys that an attention's mask shows: row i sees the keys i + first to i + last."""

    first: int
    last: int
    queries: int
    keys: int
    rest: int  # scores from here on are read by no whole chunk of the softmax
    chunk: int


def _bound(op: Op, band: _Band, unsafe: Value) -> None:
    """Narrows the bounds of a loop over keys to the keys visible to the rows of the loops around it.

    Without such loops, the rows are all rows of the matrix.
    """
    around = [parent for parent in parents_of(op) if any(name.startswith(ROWS) for name in parent.attributes)]
    around = (
        around if any(BLOCK in outer.attributes for outer in around) else []
    )  # of a single block: unknown
    size = constant_of(around[0].operands[2]) if around else band.queries
    end = constant_of(op.operands[1])
    width = constant_of(op.operands[2])
    is_scored = any(name.startswith(SCORES) for name in op.attributes)
    if end is None or width is None or size is None:
        return
    with ir.InsertionPoint(op), op.location:
        rows = [outer.regions[0].blocks[0].arguments[0] for outer in around]
        row = reduce(total, rows) if rows else index(0)
        seen = plus(row, size + band.last)
        if is_scored:  # all that a chunk reads
            seen = _multiple(plus(seen, band.chunk - 1), band.chunk)
        limit = _extreme("arith.minsi", total(seen, unsafe), index(end))
        if band.first > 1 - band.queries:
            begin = _extreme("arith.maxsi", plus(row, band.first), index(0))
            if is_scored:
                begin = _extreme("arith.minsi", _multiple(begin, band.chunk), index(band.rest))
            # 0 where a number is too large
            begin = value("arith.subi", begin.type, _multiple(begin, width), unsafe)
            op.operands[0] = _extreme("arith.maxsi", begin, index(0))
    op.operands[1] = limit
    if is_scored and band.rest < end:
        _repeat(op, limit, range(band.rest, end, width))


def _multiple(number: Value, factor: int) -> Value:
    """Creates the largest multiple of ``factor`` that is not above ``number``, which is not negative."""
    if factor == 1:
        return number
    return times(value("arith.divui", number.type, number, index(factor)), factor)


def _repeat(op: Op, limit: Value, rest: range) -> None:
    """Creates a loop after ``op``, over scores of ``rest`` that ``op``, a loop over scores, leaves out.

    ``limit``: where ``op`` ends.
    """
    with ir.InsertionPoint(op):
        copy = op.clone().operation
    copy.move_after(op)
    op.results[0].replace_all_uses_with(copy.results[0])
    with ir.InsertionPoint(copy), op.location:
        after = _multiple(plus(limit, rest.step - 1), rest.step)
        copy.operands[0] = _extreme("arith.maxsi", after, index(rest.start // rest.step * rest.step))
        copy.operands[1] = index(rest.stop)
    copy.operands[3] = op.results[0]


def _extreme(name: str, left: Value, right: Value) -> Value:
    return value(name, ir.IndexType.get(), left, right)


def _unsafe(guarded: list[Value], around: Op, keys: int) -> Value:
    """Creates, at the start of a loop or function, ``keys`` if an argument has too large numbers, else 0."""
    with ir.InsertionPoint.at_block_begin(around.regions[0].blocks[0]), around.location:
        truth = ir.IntegerType.get_signless(1)
        batch = [op.regions[0].blocks[0].arguments[0] for op in _batches(around)]
        is_safe = None
        for argument in guarded:
            real, integer, width = BITS[str(argument.type.element_type)]
            type_ = ir.IntegerType.get_signless(width)
            most = ir.IntegerAttr.get(type_, int(real(MOST_GUARDED).view(integer)))
            for largest in _largest(argument, batch, type_):
                bound = value("arith.constant", type_, value=most)
                fits = compared("ule", largest, bound)
                is_safe = fits if is_safe is None else value("arith.andi", truth, is_safe, fits)
        return value("arith.select", ir.IndexType.get(), is_safe, index(0), index(keys))


def _batches(around: Op) -> list[Op]:
    """Returns the loops over the matrices of a batch around an op, the outermost first."""
    return [op for op in (around, *parents_of(around)) if BATCH in op.attributes][::-1]


def _largest(argument: Value, batch: list[Value], type_: ir.IntegerType) -> Iterator[Value]:
    """Creates the largest bits of a matrix's absolute values: those of whole vectors, then of the rest.

    Yields both. Bits of floats without a sign are ordered as the numbers are, then come infinity and NaN.
    """
    *heads, rows, columns = argument.type.shape
    left = iter(batch)
    lead = [next(left) if head > 1 else index(0) for head in heads]  # a loop of one iteration is none
    width = min(WIDTH, columns)
    for size, vectors, begin in (
        (width, columns // width, 0),
        (columns % width, 1, columns // width * width),
    ):
        if not size:
            continue
        yield _largest_of(argument, [*lead], rows, vectors, begin, ir.VectorType.get([size], type_))


def _largest_of(
    argument: Value, lead: list[Value], rows: int, vectors: int, begin: int, whole: ir.VectorType
) -> Value:
    type_ = whole.element_type
    size = whole.shape[0]
    real = ir.VectorType.get([size], argument.type.element_type)
    bits = splat(whole, 2 ** (ir.IntegerType(type_).width - 1) - 1)

    def of_row(row: Value, most: Value) -> list[Value]:
        def of_vector(number: Value, most: Value) -> list[Value]:
            read = value("vector.load", real, argument, *lead, row, plus(times(number, size), begin))
            absolute = value("arith.andi", whole, value("vector.bitcast", whole, read), bits)
            return [value("arith.maxui", whole, most, absolute)]

        return loop(0, vectors, of_vector, [most])

    lanes = loop(0, rows, of_row, [zero(whole)])[0]
    return value("vector.reduction", type_, lanes, kind=ir.Attribute.parse("#vector.kind<maxui>"))
