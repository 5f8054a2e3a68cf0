"""The transform op ``tuner.recompute_sums``."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter

from tuner.core.errors import Refusal
from tuner.gpu.ir.launches import index_along
from tuner.gpu.ir.padded_views import bounds_of
from tuner.gpu.ir.warps import ALL_LANES, assembly, word
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import (
    branch_values,
    create,
    element_of,
    index,
    load,
    loop,
    plus,
    times,
    value,
    zero,
)
from tuner.mlir.ir.index_terms import split_constant
from tuner.mlir.ir.memrefs import BUFFER, is_argument, named_arguments
from tuner.mlir.ir.reading import constant_of, op_of, walk
from tuner.mlir.math.expressions import Term

# layout -> dimension of K in A, in B
K_DIMENSIONS = {"nn": (1, 0), "nt": (1, 1), "tn": (0, 0)}
CHAINS = 4  # of the check's multiply-adds, so that none waits for the one before it


class RecomputeSumsOp(InPlaceOp, name="recompute_sums"):
    """``tuner.recompute_sums``: sums that are not finite are computed again, by multiply-adds of f32.

    A product of split numbers is NaN where one of them is infinite, and where high bits that were rounded
    are. Takes a function whose whole warps store f32 sums to one argument by ``vector.store``, in one block
    of code, after all products. Each warp checks its sums: if one of them is not finite, its threads
    compute theirs again from the arguments whose ``tuner.buffer`` is "a" and "b", as f32 multiply-adds do.
    0 times a number is NaN where the number is not finite, so the check is a multiply-add for each sum.

        vector.store %sums, %c[%i, %j] : memref<64x64xf32>, vector<2xf32>
      becomes
        %left = vector.extract %sums[0] : f32 from vector<2xf32>
        %right = vector.extract %sums[1] : f32 from vector<2xf32>
        %zero_left = math.fma %left, %zero, %start : f32
        %zero_right = math.fma %right, %zero2, %start : f32
        %mark = arith.addf %zero_left, %zero_right : f32
        %is_nan = arith.cmpf uno, %mark, %mark : f32
        %is_special = nvvm.vote.sync any ... -> i1
        %new:2 = scf.if %is_special -> (f32, f32) {
          %native:2 = scf.for %k = %c0 to %c32 step %c1 iter_args(%x = %none, %y = %none) -> (f32, f32) {
            %a_i = memref.load %a[%i, %k] : memref<64x32xf32>
            %b_j = memref.load %b[%k, %j] : memref<32x64xf32>
            %next_x = math.fma %a_i, %b_j, %x : f32
        %stored = vector.from_elements %new#0, %new#1 : vector<2xf32>
        vector.store %stored, %c[%i, %j] : memref<64x64xf32>, vector<2xf32>

    Attributes: ``layout`` (string, "nn"): of A and B; ``part`` (i64, default 0): above 0, a block sums that
    many steps of K, from its number along z times as many on. Runs before ``tuner.add_parts`` and
    ``tuner.finish_stores``. The handle (a func.func) stays valid. Silenceable failure, with nothing changed:
    another layout, no arguments "a" and "b", no stores, or stores to several arguments, in several blocks of
    code, or of another type.
    """

    def change(self, function: Op) -> Refusal | None:
        layout = text(self, "layout", "nn")
        if layout not in K_DIMENSIONS:
            return Refusal(f"layout: found {layout!r}, allowed {', '.join(K_DIMENSIONS)}")
        matrices = named_arguments(function, BUFFER)
        if not {"a", "b"} <= set(matrices):
            return Refusal(f"found no arguments with {BUFFER} = 'a' and 'b'")
        stores = [op for op in walk(function, "vector.store") if is_argument(op.operands[1])]
        if len({op.block for op in stores}) != 1 or len({op.operands[1] for op in stores}) != 1:
            return Refusal(f"found {len(stores)} stores to arguments, allowed some in one block, all to one")
        if any(not _is_f32(matrix) for matrix in (matrices["a"], matrices["b"], stores[0].operands[1])):
            return Refusal("found matrices of another type, allowed f32")
        last = stores[-1]
        with last.location, ir.InsertionPoint(last):
            product = _Product(matrices["a"], matrices["b"], layout, attribute(self, "part", 0))
            _store_checked(stores, product)
        for store in stores:
            store.erase()
        return None


def _is_f32(matrix: Value) -> bool:
    return isinstance(ir.MemRefType(matrix.type).element_type, ir.F32Type)


def _store_checked(stores: Sequence[Op], product: "_Product") -> None:
    """Creates the check of all sums and their stores, at the insertion point."""
    places = list(chain.from_iterable(map(_places, stores)))
    sums = list(chain.from_iterable(map(_elements, stores)))
    checked = iter(branch_values(_is_special(sums), lambda: product.sums(places), sums))
    for store in stores:
        vector, c, *indices = store.operands
        new = islice(checked, ir.VectorType(vector.type).shape[0])
        create("vector.store", [], [value("vector.from_elements", vector.type, *new), c, *indices])


def _elements(store: Op) -> list[Value]:
    vector = store.operands[0]
    return [element_of(vector, number) for number in range(ir.VectorType(vector.type).shape[0])]


def _is_special(sums: Sequence[Value]) -> Value:
    """Creates the check whether a sum of any lane of the warp is not finite; returns the i1 value."""
    start = zero(sums[0].type)
    marks = [Term(start)] * min(CHAINS, len(sums))
    for element_index, element in enumerate(sums):
        own = element_index % len(marks)
        marks[own] = Term(element).fma(0.0, marks[own])
    mark = marks[0]
    for other in marks[1:]:
        mark = mark + other
    kind = ir.Attribute.parse("#nvvm<vote_sync_kind any>")
    is_nan = mark.is_nan().value
    return value("nvvm.vote.sync", is_nan.type, word(ALL_LANES), is_nan, kind=kind)


@dataclass(frozen=True)
class _Line:
    """A row or a column of C, by its index: ``start`` + ``distance``."""

    start: Value  # index
    distance: int

    @property
    def key(self) -> tuple[Hashable, int]:
        """Returns (base, constant), whose sum is the index: equal for equal lines."""
        base, constant = _split(self.start)
        return base, constant + self.distance


def _split(start: Value) -> tuple[Hashable, int]:
    addition = op_of(start, "arith.addi")
    if addition is None:
        return split_constant(start)
    left, right = addition.operands
    constant = constant_of(right)
    if constant is None:
        return start, 0
    base, more = _split(left)
    return base, more + constant


@dataclass(frozen=True)
class _Place:
    """The row and the column of a sum in C."""

    row: _Line
    column: _Line


def _places(store: Op) -> list[_Place]:
    vector, _, row, column = store.operands
    width = ir.VectorType(vector.type).shape[0]
    return [_Place(_Line(row, 0), _Line(column, number)) for number in range(width)]


class _Lines:
    """The lines of a matrix, rows of A or columns of B, that a thread reads one element of for each k."""

    def __init__(self, matrix: Value, k_dimension: int, lines: Iterable[_Line]) -> None:
        self._matrix = matrix
        self._k_dimension = k_dimension
        self._lines = {line.key: line for line in lines}

    def load(self, k: Value) -> dict[Hashable, Value]:
        """Creates the loads of an element of each line; returns them by the keys of the lines."""
        first_of: dict[Hashable, tuple[int, Value]] = {}  # base -> the constant and the index of a line
        loaded: dict[Hashable, Value] = {}
        for key, line in self._lines.items():
            base, constant = key
            if base not in first_of:
                first_of[base] = constant, self._start(plus(line.start, line.distance))
            first, start = first_of[base]
            indices = [self._inside(plus(start, constant - first)), k]
            if self._k_dimension == 0:
                indices.reverse()
            loaded[key] = load(self._matrix, indices)
        return loaded

    @property
    def _limit(self) -> int | None:
        """Returns the true number of lines if C has some outside of the matrix, else None."""
        return bounds_of(self._matrix).get(1 - self._k_dimension)

    def _start(self, line: Value) -> Value:
        """Creates a copy that LLVM does not move out of the loop, with the addresses of all lines.

        A line outside of the matrix has an address of its own, so these would need a register each. Without
        such lines, returns ``line`` itself.
        """
        if self._limit is None:
            return line
        long = ir.IntegerType.get_signless(64)
        number = value("arith.index_cast", long, line)
        copied = value("llvm.inline_asm", long, number, **assembly("mov.b64 $0, $1;", "=l,l"))
        return value("arith.index_cast", line.type, copied)

    def _inside(self, line: Value) -> Value:
        """Creates the index of the last line in place of one outside of the matrix."""
        if self._limit is None:
            return line
        return value("arith.minui", line.type, line, index(self._limit - 1))


@dataclass(frozen=True)
class _Product:
    """The product of A and B, whose sums a thread computes by multiply-adds."""

    a: Value
    b: Value
    layout: str
    part: int  # steps of K of a block; 0: all

    def sums(self, places: Sequence[_Place]) -> list[Value]:
        """Creates the sums at the places of C; returns f32 values."""
        k_of_a, k_of_b = K_DIMENSIONS[self.layout]
        rows = _Lines(self.a, k_of_a, list(map(attrgetter("row"), places)))
        columns = _Lines(self.b, k_of_b, list(map(attrgetter("column"), places)))

        def step(k: Value, *so_far: Value) -> list[Value]:
            left = rows.load(k)
            right = columns.load(k)
            new = []
            for place, number in zip(places, so_far, strict=True):
                factor = Term(left[place.row.key])
                new.append(factor.fma(Term(right[place.column.key]), Term(number)).value)
            return new

        first, end = self._range(k_of_a)
        nothing = zero(ir.F32Type.get())
        return loop(first, end, step, [nothing] * len(places), is_rolled=True)

    def _range(self, dimension: int) -> tuple[Value, Value]:
        """Creates the first k of the block, and the one after its last; ``dimension``: that of K in A."""
        size = ir.MemRefType(self.a.type).shape[dimension]
        end = index(bounds_of(self.a).get(dimension, size))
        if self.part == 0:
            return index(0), end
        first = times(index_along("gpu.block_id", "z"), self.part)
        return first, value("arith.minui", end.type, plus(first, self.part), end)
