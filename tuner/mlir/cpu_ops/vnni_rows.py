"""Rows of A as K groups: read where they lie or packed, and broadcast to the lanes of a register.

A K group is 32 bits: two bf16 or four i8 that are adjacent along K. Where f32 is multiplied, pairs of bf16
are packed as halves: an f32 for the first number of each pair, and in another plane one for the second. A K
group of two i8 is 16 bits, and is packed as two integers of 16 bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.instructions import Products
from tuner.mlir.cpu_ops.vnni_operands import KGroupWeights, packed_k_groups
from tuner.mlir.cpu_ops.vnni_packing import (
    BlockExtent,
    KGroupSource,
    allocated,
    as_floats,
    first_half,
    k_group_type,
    k_groups_type,
    pack_a,
    second_half,
)
from tuner.mlir.ir.building import create, fetch, index, loop, plus, splat, times, total, value, zero

OfRow = Callable[[int], Sequence[Value]]  # creates what a row of registers of sums is multiplied by


@dataclass(frozen=True, eq=False)
class KGroupRows:
    """The rows of A of a matmul, ``k`` elements each, read in place or packed as K groups.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K.
    """

    source: KGroupSource
    k: int
    packed: Value | None  # memref<rows x planes of K groups and one vector of space>; None: in place
    has_all: bool  # all rows of A are packed, not those of one strip at a time
    has_halves: bool  # packed are two planes of f32, else one of i32
    matrices: KGroupWeights | None = None  # all rows, packed as rows of small matrices in panels of a strip

    @classmethod
    def of(cls, source: KGroupSource, k: int, rows: int, *, has_all: bool, has_halves: bool) -> "KGroupRows":
        """Creates the buffer for ``rows`` packed rows; returns the rows without one if they need no packing.

        ``has_all``: the rows are all rows of A, else those of one strip. ``has_halves``: pairs of bf16 are
        packed as f32.
        """
        in_place = cls(source, k, None, has_all, has_halves)
        if has_halves:
            return replace(in_place, packed=allocated((rows, 2 * in_place.plane), ir.F32Type.get()))
        if source.is_along_k and not source.is_half:
            return in_place
        return replace(in_place, packed=allocated((rows, in_place.plane), k_group_type()))

    @classmethod
    def of_matrices(cls, source: KGroupSource, m: int, k: int, rows: int) -> "KGroupRows":
        """Creates the code that packs ``m`` rows as rows of small matrices, to panels of ``rows`` rows."""
        matrices = packed_k_groups(source, BlockExtent(m), k, rows // source.k_groups, _as_it_is)
        return cls(source, k, None, True, False, matrices)

    @property
    def is_in_place(self) -> bool:
        return self.packed is None and self.matrices is None

    @property
    def plane(self) -> int:
        """Returns the elements of a packed row of A in a plane: one per K group, and a vector of padding.

        With padding, rows are not a power of two apart, which would put them in the same sets of the cache.
        """
        return -(-self.k // self.source.depth) * self.source.k_groups + self.source.k_groups


@dataclass(frozen=True, eq=False)
class KGroupStrip:
    """``rows`` rows of A from row ``first`` on; methods create the code that packs and loads their K groups.

    A K group is the elements along K that one sum takes at a time (``tuner.mlir.cpu_ops.instructions``).
    """

    of: KGroupRows
    number: Value  # of the strip, from 0 on
    first: Value
    rows: int

    @property
    def whole_k_groups(self) -> int:
        """Returns how many K groups of a row of A are loaded whole, not by element.

        A partial last one counts only if A is packed, since packing pads it with zeros.
        """
        if self.of.matrices is not None:
            return self.of.matrices.k_groups
        per_k_group = self.of.source.per_k_group
        if self.of.is_in_place:
            return self.of.k // per_k_group
        return -(-self.of.k // per_k_group)

    @property
    def has_rest(self) -> bool:
        return self.of.is_in_place and bool(self.of.k % self.of.source.per_k_group)

    def pack(self) -> None:
        """Creates the copy of the strip's K groups to the buffer of packed rows; nothing without a buffer."""
        source = self.of.source
        packed = self.of.packed
        if packed is None:
            return

        def store(row: Value, step: Value, elements: Value) -> None:
            k_groups = source.full_k_groups(elements)
            indices = (total(self._begin, row), times(step, source.k_groups))
            if not self.of.has_halves:
                create("vector.store", [], [k_groups, packed, *indices])
                return
            at_second = (indices[0], plus(indices[1], self.of.plane))
            create("vector.store", [], [as_floats(first_half(k_groups)), packed, *indices])
            create("vector.store", [], [as_floats(second_half(k_groups)), packed, *at_second])

        pack_a(source, self.first, BlockExtent(self.rows), self.of.k, store)

    def registers(self, step: Value) -> list[Value]:
        """Creates the loads of vector ``step`` along K of each row, of as many K groups as it has lanes."""
        return [self._vector(row, step, self.of.source.depth) for row in range(self.rows)]

    def k_group(self, k_group: Value, registers: Sequence[Value], lane: int) -> OfRow:
        """Returns a function that creates vectors with the K groups at ``k_group`` along K.

        Its argument is a row of registers of sums. ``registers``: the rows' K groups by ``registers``, of
        which it is number ``lane``; (): it is loaded.
        """
        if self.of.matrices is not None:
            down = -(-self.rows // self.of.source.k_groups)
            matrices = self.of.matrices.load(self.number, k_group, down)
            return lambda row: [matrices[row]]
        if registers:
            return partial(self._lane_of, registers, lane)
        return partial(self._broadcast, k_group)

    def _lane_of(self, registers: Sequence[Value], lane: int, row: int) -> list[Value]:
        type_ = k_groups_type(self.of.source.k_groups)
        k_groups = value("vector.bitcast", type_, registers[row])
        mask = ir.DenseI64ArrayAttr.get([lane] * self.of.source.k_groups)
        return [value("vector.shuffle", type_, k_groups, k_groups, mask=mask)]

    def _broadcast(self, k_group: Value, row: int) -> list[Value]:
        """Creates the broadcast of one K group of a row to all lanes.

        Returns one vector of K groups; with ``has_halves`` two vectors of f32, of the first and of the second
        number.
        """
        source = self.of.source
        lanes = self.of.source.k_groups
        packed = self.of.packed
        if packed is None:
            type_ = ir.VectorType.get([source.per_k_group], source.element)
            indices = (plus(self.first, row), times(k_group, source.per_k_group))
            return [_spread(value("vector.load", type_, source.buffer, *indices), lanes)]
        columns = [k_group]
        if self.of.has_halves:
            columns.append(plus(k_group, self.of.plane))
        element = ir.MemRefType(packed.type).element_type
        every = ir.VectorType.get([lanes], element)
        loaded = [value("memref.load", element, packed, plus(self._begin, row), column) for column in columns]
        return [value("vector.broadcast", every, single) for single in loaded]

    def rest(self, row: int) -> list[Value]:
        """Creates a vector with a row's last K group, filled up with zeros, in each lane."""
        source = self.of.source
        begin = self.whole_k_groups * source.per_k_group
        at = plus(self.first, row)
        elements = [
            value("memref.load", source.element, source.buffer, at, index(k))
            if k < self.of.k
            else zero(source.element)
            for k in range(begin, begin + source.per_k_group)
        ]
        type_ = ir.VectorType.get([source.per_k_group], source.element)
        return [_spread(value("vector.from_elements", type_, *elements), source.k_groups)]

    def sums(self, products: Products) -> list[Value]:
        """Creates the sum of the elements of each row of the strip; returns one number per row."""
        source = self.of.source
        whole, rest = divmod(self.of.k, source.depth)
        if self.of.packed is not None:  # zeros follow the last of K
            whole = whole + bool(rest)
            rest = 0
        ones = splat(source.vector, 1)

        def add(step: Value, *sums: Value, depth: int = source.depth) -> list[Value]:
            return [
                products.after(before, [self._vector(row, step, depth)], ones)
                for row, before in enumerate(sums)
            ]

        sums = [zero(products.sums)] * self.rows
        if whole:
            sums = list(loop(0, whole, add, sums))
        if rest:
            sums = add(index(whole), *sums, depth=rest)
        add_all = ir.Attribute.parse("#vector.kind<add>")
        element = ir.Type.parse(products.sum_element)
        return [value("vector.reduction", element, lanes, kind=add_all) for lanes in sums]

    def fetch_next(self, panel: Value, panels: int, k_group: Value) -> None:
        """Creates prefetches of a K group of the next strip's rows: the share of one of ``panels`` panels.

        Nothing if A is stored by columns.
        """
        source = self.of.source
        if not source.is_along_k:
            return
        share = -(-self.rows // panels)
        first = self.first if panels == 1 else total(self.first, times(panel, share))
        for row in range(self.rows, self.rows + share):
            fetch(source.buffer, plus(first, row), times(k_group, source.per_k_group))

    @property
    def _begin(self) -> Value:
        if self.of.has_all:
            return self.first
        return index(0)

    def _vector(self, row: int, step: Value, depth: int) -> Value:
        """Creates vector ``step`` along K, from 0, of the K groups of row ``row`` of the strip.

        ``depth``: how many elements of the vector the row has; the elements after them are 0.
        """
        source = self.of.source
        if self.of.packed is None:
            return source.along_k(plus(self.first, row), times(step, source.depth), depth)
        indices = (plus(self._begin, row), times(step, source.k_groups))
        k_groups = value("vector.load", k_groups_type(source.k_groups), self.of.packed, *indices)
        return value("vector.bitcast", source.vector, k_groups)


def _as_it_is(elements: Value) -> Value:
    return elements


def _spread(elements: Value, lanes: int) -> Value:
    k_group = value("vector.bitcast", k_groups_type(1), elements)
    return value("vector.broadcast", k_groups_type(lanes), k_group)
