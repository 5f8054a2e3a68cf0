"""Operands of a matmul as K groups: weights that come packed, another B packed first, rows of A.

A K group is 32 bits: two bf16 or four i8 that are adjacent along K.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul
from tuner.mlir.cpu_ops.vnni_packing import (
    K_GROUPS,
    BlockExtent,
    KGroupSource,
    allocated,
    k_group_type,
    k_groups_type,
    pack_a,
    pack_b,
    splat,
)
from tuner.mlir.ir.building import DYNAMIC, create, index, loop, plus, times, total, value, zero
from tuner.mlir.ir.reading import op_of
from tuner.mlir.ir.vnni import begins_panel, byte_dot, set_packed_as, weights_of

B_OPERAND = 1  # of a matmul


@dataclass(frozen=True, eq=False)
class KGroupWeights:
    """B of one matmul, packed for VNNI: panels of ``columns`` columns, one below the other in ``memory``.

    A K group is 32 bits of one column: 2 bf16 or 4 i8 that are adjacent along K. A row of ``memory`` has one
    K group of each column of a panel. A weight that is read only as B, from first columns of panels on, is
    packed once by the caller::

        %w: memref<100x96xbf16> {tuner.weight}, read by columns 0 to 31, 32 to 63, 64 to 95
      becomes, with 64 K groups per panel: 100 rows are 50 pairs, padded to a multiple of 16
        %w: memref<192x64xbf16> {tuner.depth = 32 : i64, tuner.interleave = 2 : i64, ...

    For vpdpbusd, i8 elements are stored with the sign bit flipped (128 added).
    """

    memory: Value  # memref<K groups of all panels x elements of a row of K groups>
    k_groups: int  # of K, of one panel
    columns: int  # of a panel
    column: Value | int  # of the weight, the first that the matmul reads

    def row(self, panel: Value, k_group: Value) -> Value:
        """Creates the row index in ``memory`` of a K group of panel ``panel`` of the matmul's columns."""
        first = index(self.column) if isinstance(self.column, int) else self.column
        kind = ir.IndexType.get()
        panels = total(value("arith.divui", kind, first, index(self.columns)), panel)
        return total(value("arith.muli", kind, panels, index(self.k_groups)), k_group)


def take_k_group_weights(
    function: Op,
    matmuls: Sequence[BufferMatmul],
    columns: int,
    lanes: int = K_GROUPS,
    *,
    unsigned: bool = False,
) -> list[KGroupWeights | None]:
    """Makes weights of a function packed arguments, in place, if matmuls alone read them, by whole panels.

    ``columns``: of a panel; K is padded to a multiple of ``lanes`` K groups. ``unsigned``: the sign bits of
    bytes are flipped. Returns for each matmul its B as packed; None for a B that is not such a weight.
    """
    found: dict[Op, KGroupWeights] = {}
    for number, weight in weights_of(function):
        # panels are of a B of (k, n): one of (n, k) is packed at each call
        plain = {matmul.op for matmul in matmuls if matmul.layout != "nt"}
        reads = _reads(weight, plain, columns)
        if reads:
            k, n = ir.MemRefType(weight.type).shape
            source = KGroupSource(weight, is_along_k=False, k_groups=lanes)
            k_groups: int = -(-k // source.depth) * source.k_groups
            panels = -(-n // columns)
            rows = panels * k_groups
            kind = ir.MemRefType.get([rows, columns * source.per_k_group], source.element)
            per_k_group = source.per_k_group
            depth = source.depth
            set_packed_as(
                function, number, kind, columns, interleave=per_k_group, depth=depth, unsigned=unsigned
            )
            for matmul, column in reads:
                found[matmul] = KGroupWeights(weight, k_groups, columns, column)
    return [found.get(matmul.op) for matmul in matmuls]


def drop_views(k_groups: KGroupWeights | None, b: Value) -> None:
    """Erases ``b`` if it is a view of packed weights (``k_groups`` is not None) without any use left."""
    view = op_of(b, "memref.subview")
    if k_groups is not None and view is not None and not list(view.results[0].uses):
        view.erase()


def _reads(weight: Value, matmuls: set[Op], columns: int) -> list[tuple[Op, Value | int]]:
    """Returns the matmuls that read a weight, with their first columns; [] where something else reads it."""
    found: list[tuple[Op, Value | int]] = []
    for use in weight.uses:
        op = use.owner.operation
        if op.name == "memref.subview":
            column = _first_column(op)
            uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
        else:
            column = 0
            uses = [(op, use.operand_number)]
        if column is None or not begins_panel(column, columns):
            return []
        if not all(user in matmuls and place == B_OPERAND for user, place in uses):
            return []
        found += [(user, column) for user, _ in uses]
    return found


def _first_column(view: Op) -> Value | int | None:
    rows = view.operands[0].type.shape[0]
    sizes, strides = (list(view.attributes[f"static_{name}"]) for name in ("sizes", "strides"))
    if view.results[0].type.rank != 2 or strides != [1, 1] or sizes[0] != rows or DYNAMIC in sizes:
        return None
    operands = iter(list(view.operands)[1:])
    row, column = (
        next(operands) if attribute == DYNAMIC else attribute
        for attribute in view.attributes["static_offsets"]
    )
    # whole columns of the weight: column panels
    if isinstance(row, int) and row == 0:
        return column
    return None


def packed_k_groups(
    source: KGroupSource, columns: BlockExtent, k: int, vectors: int, changed: Callable[[Value], Value]
) -> KGroupWeights:
    """Creates the code that packs B into newly allocated column panels; returns the packed B.

    A panel has ``vectors`` vectors of K groups. ``columns``: of B; elements of K from ``k`` on are zeros.
    ``changed(vector)`` creates the vector to store in place of ``vector``, also for zeros.
    """
    k_groups = -(-k // source.depth) * source.k_groups
    panels = columns.steps(vectors * source.k_groups)
    memory = allocated((panels * k_groups, vectors * source.depth), source.element)
    weights_read = KGroupWeights(memory, k_groups, vectors * source.k_groups, 0)

    def store(panel: Value, step: Value, k_group: Value, vector: Value, elements: Value) -> None:
        row = weights_read.row(panel, total(times(step, source.k_groups), k_group))
        create("vector.store", [], [changed(elements), memory, row, times(vector, source.depth)])

    pack_b(source, columns, k, vectors, store, fetches=True)
    return weights_read


@dataclass(frozen=True, eq=False)
class KGroupRows:
    """The rows of A of a matmul, ``k`` elements each, read in place or packed as K groups."""

    source: KGroupSource
    k: int
    packed: Value | None  # memref<rows x K groups, and one vector of space, x i32>; None: in place
    has_all: bool  # all rows of A are packed, not those of one strip at a time

    @classmethod
    def of(cls, source: KGroupSource, k: int, rows: int, *, has_all: bool) -> "KGroupRows":
        """Creates the buffer for ``rows`` packed rows; returns the rows without one if A is stored along K.

        ``has_all``: the rows are all rows of A, else those of one strip.
        """
        if source.is_along_k:
            return cls(source, k, None, has_all)
        k_groups = -(-k // source.depth) * source.k_groups
        # rows a power of two apart would lie in the same sets of the cache
        return cls(source, k, allocated((rows, k_groups + source.k_groups), k_group_type()), has_all)


@dataclass(frozen=True, eq=False)
class KGroupStrip:
    """A strip: ``rows`` rows of A from row ``first`` on. It packs the rows and loads their K groups."""

    of: KGroupRows
    number: Value  # of the strip, from 0 on
    first: Value
    rows: int

    @property
    def whole_k_groups(self) -> int:
        """Returns how many K groups (32 bits along K) of a row of A are loaded as whole vectors.

        A partial last one counts only if A is packed, since packing pads it with zeros.
        """
        source = self.of.source
        if self.of.packed is None:
            return self.of.k // source.per_k_group
        return -(-self.of.k // source.per_k_group)

    @property
    def has_rest(self) -> bool:
        return self.of.packed is None and bool(self.of.k % self.of.source.per_k_group)

    def pack(self) -> None:
        source = self.of.source
        packed = self.of.packed
        if packed is None:
            return

        def store(row: Value, step: Value, elements: Value) -> None:
            k_groups = value("vector.bitcast", k_groups_type(source.k_groups), elements)
            place = (total(self._begin, row), times(step, source.k_groups))
            create("vector.store", [], [k_groups, packed, *place])

        pack_a(source, self.first, BlockExtent(self.rows), self.of.k, store)

    def broadcast(self, row: int, k_group: Value) -> Value:
        """Creates the broadcast of one K group of the strip's row ``row`` to all lanes.

        A K group is 32 bits: two bf16 or four i8 adjacent along K.
        """
        source = self.of.source
        lanes = self.of.source.k_groups
        if self.of.packed is not None:
            loaded = value("memref.load", k_group_type(), self.of.packed, plus(self._begin, row), k_group)
            return value("vector.broadcast", k_groups_type(lanes), loaded)
        kind = ir.VectorType.get([source.per_k_group], source.element)
        place = (plus(self.first, row), times(k_group, source.per_k_group))
        return _spread(value("vector.load", kind, source.buffer, *place), lanes)

    def broadcast_rest(self, row: int) -> Value:
        """Creates a vector with the partial last K group of a row in each lane, filled up with zeros."""
        source = self.of.source
        begin = self.whole_k_groups * source.per_k_group
        at = plus(self.first, row)
        elements = [
            value("memref.load", source.element, source.buffer, at, index(k))
            if k < self.of.k
            else zero(source.element)
            for k in range(begin, begin + source.per_k_group)
        ]
        kind = ir.VectorType.get([source.per_k_group], source.element)
        return _spread(value("vector.from_elements", kind, *elements), source.k_groups)

    def byte_sums(self) -> list[Value]:
        """Creates the sum of the bytes of each row of the strip; returns one i32 per row."""
        source = self.of.source
        kind = k_groups_type(self.of.source.k_groups)
        whole, rest = divmod(self.of.k, source.depth)
        if self.of.packed is not None:  # zeros follow the last of K
            whole = whole + bool(rest)
            rest = 0
        ones = splat(source.vector, 1)

        def add(step: Value, *sums: Value, depth: int = source.depth) -> list[Value]:
            return [byte_dot(before, ones, self._vector(row, step, depth)) for row, before in enumerate(sums)]

        sums = [zero(kind)] * self.rows
        if whole:
            sums = list(loop(0, whole, add, sums))
        if rest:
            sums = add(index(whole), *sums, depth=rest)
        add_all = ir.Attribute.parse("#vector.kind<add>")
        return [value("vector.reduction", k_group_type(), lanes, kind=add_all) for lanes in sums]

    @property
    def _begin(self) -> Value:
        if self.of.has_all:
            return self.first
        return index(0)

    def _vector(self, row: int, step: Value, depth: int) -> Value:
        source = self.of.source
        if self.of.packed is None:
            return source.along_k(plus(self.first, row), times(step, source.depth), depth)
        place = (plus(self._begin, row), times(step, source.k_groups))
        k_groups = value("vector.load", k_groups_type(source.k_groups), self.of.packed, *place)
        return value("vector.bitcast", source.vector, k_groups)


def _spread(elements: Value, lanes: int) -> Value:
    k_group = value("vector.bitcast", k_groups_type(1), elements)
    return value("vector.broadcast", k_groups_type(lanes), k_group)
