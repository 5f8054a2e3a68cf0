"""B of a matmul as K groups: weights that come packed, another B packed first.

A K group is 32 bits: two bf16 or four i8 that are adjacent along K.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul
from tuner.mlir.cpu_ops.vnni_packing import (
    K_GROUP_BITS,
    K_GROUPS,
    BlockExtent,
    KGroupSource,
    allocated,
    pack_b,
    word_type,
)
from tuner.mlir.ir.building import DYNAMIC, create, index, times, total, value
from tuner.mlir.ir.packed_weights import begins_panel, set_packed_as, weights_of
from tuner.mlir.ir.reading import op_of, uses_of

B_OPERAND = 1  # of a matmul


@dataclass(frozen=True, eq=False)
class KGroupWeights:
    """B of one matmul, packed for VNNI: panels of ``columns`` columns, one below the other in ``memory``.

    A K group is 32 bits of one column: 2 bf16 or 4 i8 that are adjacent along K; 16 bits: 2 i8. A row of
    ``memory`` has one K group of each column of a panel. A weight that is read only as B, from first columns
    of panels on, is packed once by the caller::

        %w: memref<100x96xbf16> {tuner.weight}, read by columns 0 to 31, 32 to 63, 64 to 95
      becomes, with 64 K groups per panel: 100 rows are 50 pairs, padded to a multiple of 16
        %w: memref<192x64xbf16> {tuner.depth = 32 : i64, tuner.interleave = 2 : i64, ...

    For vpdpbusd, i8 elements are stored with the sign bit flipped (128 added).
    """

    memory: Value  # memref<K groups of all panels x elements of a row of K groups>
    k_groups: int  # of K, of one panel
    columns: int  # of a panel
    lanes: int  # K groups of a vector
    column: Value | int  # of the weight, the first that the matmul reads

    def row(self, panel: Value, k_group: Value) -> Value:
        """Creates the row index in ``memory`` of a K group of panel ``panel`` of the matmul's columns.

        ``k_group``: the number along K of the K group, 32 bits: two bf16 or four i8 that are adjacent along
        K.
        """
        first = index(self.column) if isinstance(self.column, int) else self.column
        type_ = ir.IndexType.get()
        panels = total(value("arith.divui", type_, first, index(self.columns)), panel)
        return total(value("arith.muli", type_, panels, index(self.k_groups)), k_group)

    def load(self, panel: Value, k_group: Value, vectors: int) -> list[Value]:
        """Creates the loads of the first ``vectors`` vectors of a row: K groups of adjacent columns."""
        row = self.row(panel, k_group)
        of_memory = ir.MemRefType(self.memory.type)
        depth = of_memory.shape[1] // self.columns * self.lanes
        type_ = ir.VectorType.get([depth], of_memory.element_type)
        columns = list(map(index, range(0, depth * vectors, depth)))
        return list(map(partial(value, "vector.load", type_, self.memory, row), columns))


def take_k_group_weights(
    function: Op,
    matmuls: Sequence[BufferMatmul],
    columns: int,
    lanes: int = K_GROUPS,
    *,
    bits: int = K_GROUP_BITS,
    unsigned: bool = False,
) -> list[KGroupWeights | None]:
    """Makes weights of a function packed arguments, in place, if matmuls alone read them, by whole panels.

    ``columns``: of a panel; K is padded to a multiple of ``lanes`` K groups of ``bits``. ``unsigned``: the
    sign bits of bytes are flipped. Returns for each matmul its B as packed; None for a B that is not such a
    weight.
    """
    packed: dict[Op, KGroupWeights] = {}
    for number, weight in weights_of(function):
        # panels are of a B of (k, n): one of (n, k) is packed at each call
        plain = {matmul.op for matmul in matmuls if matmul.layout != "nt"}
        reads = _reads(weight, plain, columns)
        if reads:
            k, n = ir.MemRefType(weight.type).shape
            source = KGroupSource(weight, is_along_k=False, k_groups=lanes, bits=bits)
            k_groups: int = -(-k // source.depth) * source.k_groups
            panels = -(-n // columns)
            rows = panels * k_groups
            type_ = ir.MemRefType.get([rows, columns * source.per_k_group], source.element)
            per_k_group = source.per_k_group
            depth = source.depth
            set_packed_as(
                function, number, type_, columns, interleave=per_k_group, depth=depth, unsigned=unsigned
            )
            for matmul, column in reads:
                packed[matmul] = KGroupWeights(weight, k_groups, columns, lanes, column)
    return [packed.get(matmul.op) for matmul in matmuls]


def drop_views(packed: KGroupWeights | None, b: Value) -> None:
    """Erases the ``memref.subview`` that made ``b``, if nothing uses it; not where ``packed`` is None."""
    view = op_of(b, "memref.subview")
    if packed is not None and view is not None and not list(view.results[0].uses):
        view.erase()


def _reads(weight: Value, matmuls: set[Op], columns: int) -> list[tuple[Op, Value | int]]:
    """Returns the matmuls that read a weight, with their first columns; [] where something else reads it."""
    reads: list[tuple[Op, Value | int]] = []
    for use in weight.uses:
        op = use.owner.operation
        if op.name == "memref.subview":
            column = _first_column(op)
            uses = uses_of(op.results[0])
        else:
            column = 0
            uses = [(op, use.operand_number)]
        if column is None or not begins_panel(column, columns):
            return []
        if not all(user in matmuls and operand == B_OPERAND for user, operand in uses):
            return []
        reads += [(user, column) for user, _ in uses]
    return reads


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
    ``changed(vector)`` creates the vector to store in place of ``vector``, also for zeros; of K groups of two
    bytes it is one of integers of 16 bits.
    """
    k_groups = -(-k // source.depth) * source.k_groups
    panels = columns.steps(vectors * source.k_groups)
    element = word_type() if source.is_half else source.element
    memory = allocated((panels * k_groups, vectors * source.depth), element)
    packed = KGroupWeights(memory, k_groups, vectors * source.k_groups, source.k_groups, 0)

    def store(panel: Value, step: Value, k_group: Value, vector: Value, elements: Value) -> None:
        row = packed.row(panel, total(times(step, source.k_groups), k_group))
        create("vector.store", [], [changed(elements), memory, row, times(vector, source.depth)])

    pack_b(source, columns, k, vectors, store, fetches=True)
    return packed
