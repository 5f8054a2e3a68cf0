"""The transform op ``tuner.lanes_along_k``."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.cpu_ops.vector_lanes import load_lanes, multiply_add, store_lanes
from tuner.mlir.cpu_ops.vnni_packing import BlockExtent, allocated, in_steps
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import index, loop, piece, plus, times, value, zero

SUMS = {"f32": "f32", "f64": "f64"}
# Rows of a tile, each with a sum of its own. A multiply-add takes 4 cycles and 2 start in each, so 8 hide the
# latency. 12, as a multiple of the steps of K in a register, is 12 for 2 or 4 steps, 8 for 8, 16 for 16.
IN_FLIGHT = 12


class LanesAlongKOp(InPlaceOp, name="lanes_along_k"):
    """``tuner.lanes_along_k``: matmuls of buffers with few columns become sums with steps of K in the lanes.

    Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes and have at most half as many
    columns as a register has lanes. An outer product would leave the other lanes without use. So the lanes
    are g columns x s steps of K, where g is the power of two that holds all columns: B is packed to such
    vectors, and each is multiplied by s adjacent elements of a row of A, repeated for each column. The s sums
    of an element of C are added up after the last step. A ``linalg.fill`` of C with zero before the matmul is
    replaced too; without one C is added to. Any number of rows and of steps.

        linalg.fill ins(%zero : f32) outs(%c : memref<1x4xf32>)
        linalg.matmul ins(%a, %b : memref<1x64xf32>, memref<64x4xf32>) outs(%c : memref<1x4xf32>)
      becomes, after the loop that packs %b, for registers of 16 lanes
        %sums = scf.for %step = %c0 to %c16 step %c1 iter_args(%before = %zeros) -> (vector<16xf32>) {
          %of_b = vector.load %packed[%step, %c0] : memref<16x16xf32>, vector<16xf32>
          %of_row = vector.load %a[%c0, %k] : memref<1x64xf32>, vector<4xf32>
          %of_a = vector.shuffle %of_row, %of_row [0, 1, 2, 3, 0, 1, 2, 3, ...] : vector<4xf32>, vector<4xf32>
          %after = vector.fma %of_a, %of_b, %before : vector<16xf32>
          scf.yield %after : vector<16xf32>
        }

    Attribute, i64: ``lanes``, elements of a register (default 16), a power of two. The handle (a func.func)
    stays valid. Silenceable failure: ``lanes`` that are not a power of two, a matmul that is not of memrefs
    of static sizes, of f32 or f64, of layout nn or nt, and one of more columns.
    """

    def change(self, function: Op) -> Refusal | None:
        lanes = attribute(self, "lanes", 16)
        if lanes < 2 or lanes & (lanes - 1):
            return Refusal(f"found {lanes} lanes, allowed a power of two from 2 on")
        matmuls = buffer_matmuls(self, function, SUMS)
        if isinstance(matmuls, Refusal):
            return matmuls
        for matmul in matmuls:
            if matmul.layout == "tn":
                return Refusal("found a matmul of layout tn, allowed nn or nt")
            if matmul.n > lanes // 2:
                return Refusal(f"found a matmul of {matmul.n} columns, allowed {lanes // 2}")
        for matmul in matmuls:
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                _Matmul.of(matmul, lanes).build()
            matmul.erase()
        return None


@dataclass(frozen=True, eq=False)
class _Matmul:
    """A matmul of few columns; its methods create its code at the current insertion point."""

    matmul: BufferMatmul
    columns: int  # of a register: all of C, rounded up to a power of two
    steps: int  # of K, of a register
    lanes: int  # columns x steps
    packed_b: Value  # vectors of (column, step of K), one for every ``steps`` of K

    @classmethod
    def of(cls, matmul: BufferMatmul, lanes: int) -> "_Matmul":
        columns = 1 << (matmul.n - 1).bit_length()
        steps = lanes // columns
        element = ir.MemRefType(matmul.b.type).element_type
        return cls(matmul, columns, steps, lanes, allocated((-(-matmul.k // steps), lanes), element))

    def build(self) -> None:
        in_steps(BlockExtent(self.matmul.k), self.steps, self._pack)
        # of a tile: a multiple of ``steps``, since ``_added`` adds up as many vectors together
        rows = max(IN_FLIGHT // self.steps, 1) * self.steps
        tiles = BlockExtent(self.matmul.m)
        in_steps(tiles, rows, lambda number, count: self._tile(times(number, rows), count))

    def _pack(self, number: Value, depth: int) -> None:
        """Creates the packing of vector ``number`` of B: ``depth`` steps of K of each column, then zeros."""
        b = self.matmul.b
        k = times(number, self.steps)
        if self.matmul.layout == "nt":
            line = self._vector(self.steps)
            lines = [load_lanes(b, (index(column), k), line, depth) for column in range(self.matmul.n)]
            vector = _joined([*lines, *[zero(line)] * (self.columns - self.matmul.n)])
        else:
            line = self._vector(self.columns)
            lines = [load_lanes(b, (plus(k, row), index(0)), line, self.matmul.n) for row in range(depth)]
            vector = _transposed(_joined([*lines, *[zero(line)] * (self.steps - depth)]), self.steps)
        store_lanes(vector, self.packed_b, (number, index(0)), self.lanes)

    def _tile(self, first: Value, rows: int) -> None:
        """Creates the sums of ``rows`` rows from ``first`` on, and their stores."""
        type_ = self._vector(self.lanes)
        k = self.matmul.k

        def step(number: Value, *before: Value, depth: int = self.steps) -> list[Value]:
            of_b = load_lanes(self.packed_b, (number, index(0)), type_, self.lanes)
            of_rows = [
                self._repeated(plus(first, row), times(number, self.steps), depth) for row in range(rows)
            ]
            return [multiply_add(of_a, of_b, sums) for of_a, sums in zip(of_rows, before, strict=True)]

        sums = loop(0, k // self.steps, step, [zero(type_)] * rows)
        if k % self.steps:
            sums = step(index(k // self.steps), *sums, depth=k % self.steps)
        for start in range(0, rows, self.steps):
            several = sums[start : start + self.steps]
            missing = [several[-1]] * (self.steps - len(several))
            lines = _transposed(self._added([*several, *missing]), self.columns)
            for number in range(len(several)):
                line = piece(lines, number * self.columns, self.columns)
                indices = (plus(first, start + number), index(0))
                store_lanes(line, self.matmul.c, indices, self.matmul.n, adds=self.matmul.fill is None)

    def _repeated(self, row: Value, k: Value, depth: int) -> Value:
        """Creates the load of ``depth`` elements of a row of A from ``k`` on, repeated for each column."""
        line = load_lanes(self.matmul.a, (row, k), self._vector(self.steps), depth)
        return _shuffled(line, line, list(range(self.steps)) * self.columns)

    def _added(self, vectors: Sequence[Value]) -> Value:
        """Creates the sums over steps of K of each of as many vectors as there are steps.

        Returns them in one vector, in the order (column, vector). Of 8 lanes, 4 columns x 2 steps, lanes 0
        and 1 are the two steps of column 0. A shuffle numbers the lanes of two such vectors, x and y, from 0
        to 7 and from 8 to 15:
            left   lanes [0, 8, 2, 10, 4, 12, 6, 14]   x0 y0 x2 y2 ...: step 0 of each column, x before y
            right  lanes [1, 9, 3, 11, 5, 13, 7, 15]   x1 y1 x3 y3 ...: step 1
            sum    column 0 of x, column 0 of y, column 1 of x, ...
        """
        width = self.steps  # lanes of a sum that are still to be added up
        while width > 1:
            half = width // 2
            firsts = [lane for lane in range(2 * self.lanes) if lane % width < half]
            # by column; lanes of one column stay in their order, those of the first vector first
            sources = sorted(firsts, key=lambda lane: lane % self.lanes // self.steps)
            pairs = [
                [_shuffled(*pair, [source + shift for source in sources]) for shift in (0, half)]
                for pair in zip(vectors[::2], vectors[1::2], strict=True)
            ]
            vectors = [value("arith.addf", left.type, left, right) for left, right in pairs]
            width = half
        return vectors[0]

    def _vector(self, lanes: int) -> Type:
        return ir.VectorType.get([lanes], ir.MemRefType(self.matmul.c.type).element_type)


def _shuffled(left: Value, right: Value, sources: Sequence[int]) -> Value:
    type_ = ir.VectorType.get([len(sources)], ir.VectorType(left.type).element_type)
    return value("vector.shuffle", type_, left, right, mask=ir.DenseI64ArrayAttr.get(list(sources)))


def _joined(lines: Sequence[Value]) -> Value:
    """Creates one vector of the elements of 2**n vectors, one vector after the other."""
    while len(lines) > 1:
        sources = range(2 * ir.VectorType(lines[0].type).shape[0])
        lines = [_shuffled(*pair, sources) for pair in zip(lines[::2], lines[1::2], strict=True)]
    return lines[0]


def _transposed(vector: Value, rows: int) -> Value:
    """Creates the transpose of a matrix that a vector holds row by row; ``rows``: the number of its rows."""
    lanes = ir.VectorType(vector.type).shape[0]
    columns = lanes // rows
    sources = [row * columns + column for column in range(columns) for row in range(rows)]
    return _shuffled(vector, vector, sources)
