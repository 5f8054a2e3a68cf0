"""Reads matrices as K groups, 32 bits of two bf16 or four i8, and packs these for AMX and VNNI.

Packing creates loops that read a matrix, and hands each vector of K groups to a function that stores it. B is
packed to panels of columns, with a vector for each K group; A is packed by strips of rows, with a vector for
each row and 16 K groups. Elements after the last of K are 0, and so are columns after the last of B; rows
after the last of A are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.core.dtypes import number_type
from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ir.building import (
    as_index,
    fetch,
    for_each,
    index,
    is_equal,
    is_less,
    line_of,
    loop,
    piece,
    plus,
    splat,
    times,
    total,
    value,
    with_line,
    zero,
)

OfTile = Callable[[Value, Value], None]  # creates the ops of a tile from its numbers in two dimensions
K_GROUP_BITS = 32
HALF_BITS = 16
HIGH = -(1 << HALF_BITS)  # mask of the upper half of a K group
DOT = "x86.avx512.dot"  # of pairs of bf16, added to f32: vdpbf16ps
LINE_BYTES = 64  # of a cache
K_GROUPS = 16  # of a vector of 64 bytes, and of a tile row
# Creates the store of a vector of K groups of B: panel, step of K, K group in the step, vector of the panel,
# K groups
StoreOfB = Callable[[Value, Value, Value, Value, Value], None]
# Creates the store of K groups of a row of A: row in the strip, step of K, K groups
StoreOfA = Callable[[Value, Value, Value], None]


@dataclass(frozen=True, eq=False)
class BlockExtent:
    """The number of elements of a dimension: ``whole``, or ``whole`` or ``last``, known at run time only.

    Code for an extent is created once for both sizes: loops over whole steps have a dynamic bound, and the
    code for a remainder runs under a condition.
    """

    whole: int  # elements of every block, or of every block but the last
    last: int = 0  # elements of the last block; only with ``size``
    size: Value | None = None  # of type index: ``whole`` or ``last``; None: ``whole``

    def steps(self, step: int) -> int:
        """Returns how many steps of ``step`` elements cover ``whole``, the last one perhaps in part."""
        return -(-self.whole // step)

    def covering(self, step: int) -> Value:
        if self.size is None:
            return index(self.steps(step))
        return _divided(plus(self.size, step - 1), step)

    def elements(self) -> Value:
        if self.size is None:
            return index(self.whole)
        return self.size

    def whole_steps(self, step: int) -> int | Value:
        """Returns the number of whole steps of ``step`` elements; if the size is dynamic, creates it."""
        if self.size is None:
            return self.whole // step
        return _divided(self.size, step)

    def left(self, step: int, number: Value) -> Value:
        """Creates the number of elements of step ``number``: ``step``, or fewer in the last step."""
        rest = value("arith.subi", number.type, self.elements(), times(number, step))
        return value("arith.minui", number.type, rest, index(step))

    def rests(self, step: int) -> tuple[int, ...]:
        """Returns the remainders other than 0 that whole steps of ``step`` elements may leave."""
        sizes = (self.whole,) if self.size is None else (self.whole, self.last)
        return tuple(dict.fromkeys(size % step for size in sizes if size % step))


def in_steps(extent: BlockExtent, step: int, body: Callable[[Value, int], None]) -> None:
    """Creates the loop over an extent's whole steps, and one step for each remainder that may be left.

    ``body(number, size)`` creates the code of step ``number`` of ``size`` elements.
    """

    def over(first: Value | int, end: Value | int, size: int) -> None:
        def iteration(number: Value) -> tuple[()]:
            body(number, size)
            return ()

        loop(first, end, iteration)

    whole = extent.whole_steps(step)
    if extent.whole >= step:
        over(0, whole, step)
    for rest in extent.rests(step):
        over(whole, _end(extent, step, whole, rest), rest)


def over_tiles(
    rows: BlockExtent, height: int, columns: BlockExtent, width: int, whole: OfTile, partial: OfTile
) -> None:
    """Creates the loops over tiles of ``height`` x ``width``; in a row of tiles whole tiles come first.

    ``whole(row, column)`` and ``partial(row, column)`` create the code of a tile, given its indices among the
    tiles; a partial tile may have fewer rows or columns.
    """
    whole_rows = rows.whole_steps(height)
    across = columns.whole_steps(width)
    has_whole = rows.whole >= height and columns.whole >= width

    def one_row(row: Value) -> None:
        end = across if has_whole else 0
        if has_whole and rows.rests(height):
            is_whole = is_less(row, as_index(whole_rows))
            end = value("arith.select", row.type, is_whole, as_index(across), index(0))
        if has_whole:
            for_each(0, end, lambda column: whole(row, column))
        for_each(end, columns.covering(width), lambda column: partial(row, column))

    for_each(0, rows.covering(height), one_row)


def _end(extent: BlockExtent, step: int, whole: Value | int, rest: int) -> Value | int:
    """Creates the end of the loop for a remainder: one iteration if the extent leaves it, else none."""
    if extent.size is None or isinstance(whole, int):
        if isinstance(whole, int):
            return int(whole) + 1
        return plus(whole, 1)
    type_ = ir.IndexType.get()
    left = value("arith.remui", type_, extent.size, index(step))
    return total(whole, value("arith.index_castui", type_, is_equal(left, index(rest))))


def _divided(number: Value, by: int) -> Value:
    return value("arith.divui", ir.IndexType.get(), number, index(by))


# Reads K groups from a matrix: pairs of bf16, or quads of i8, as AMX and VNNI multiply them.
#
# A K group has 32 bits and holds elements of one row of A, or of one column of B, that follow each other
# along K. Where K is not the dimension that is adjacent in memory, K groups are made by interleaving rows.


@dataclass(frozen=True, eq=False)
class KGroupSource:
    """Reads A or B as K groups: ``bits`` (32) bits each, two bf16 or four i8 that are adjacent along K.

    In the methods, ``across`` is the row index of A or the column index of B, and ``k`` the index along K.
    """

    buffer: Value  # 2-D memref, rows of adjacent elements
    is_along_k: bool  # K is the dimension of adjacent elements: A of layout nn and nt, B of nt
    k_groups: int = K_GROUPS  # of one vector
    bits: int = K_GROUP_BITS  # of a K group: 64 where instructions multiply small matrices, 16 of two bytes

    @property
    def element(self) -> Type:
        return ir.MemRefType(self.buffer.type).element_type

    @property
    def per_k_group(self) -> int:
        return self.bits // number_type(str(self.element)).bits

    @property
    def depth(self) -> int:
        """Returns the elements of a vector of K groups, such as 64 i8 in 16 K groups of 32 bits."""
        return self.k_groups * self.per_k_group

    @property
    def vector(self) -> Type:
        """Returns the type of a vector of K groups, such as vector<32xbf16> or vector<64xi8> for 32 bits."""
        return ir.VectorType.get([self.depth], self.element)

    @property
    def is_half(self) -> bool:
        """Returns whether K groups have 16 bits: two bytes, which are multiplied as 32 bits."""
        return self.bits == HALF_BITS

    def full_k_groups(self, elements: Value) -> Value:
        """Creates the vector of i32 with the bits of K groups; of K groups of two bytes, each byte as an i16.

        ``elements``: a vector of type ``self.vector``.
        """
        if self.is_half:
            elements = as_words(elements)
        return value("vector.bitcast", k_groups_type(self.k_groups), elements)

    def along_k(self, across: Value, k: Value, depth: int) -> Value:
        """Creates the vector of K groups from index ``k`` on of one row of A or one column of B.

        A K group is ``bits`` (32) bits, elements that are adjacent along K. ``across``: the number of the row
        or column. Elements of the vector from number ``depth`` on are 0.
        """
        return self._read(across, k, depth, self.depth)

    def side_by_side(self, k: Value, across: Value, depth: int, width: int, total: int) -> list[Value]:
        """Creates the K groups at ``k`` of ``total`` adjacent rows of A or columns of B.

        A K group is ``bits`` (32) bits, elements that are adjacent along K. Returns vectors of K groups, in
        the order of the rows or columns, of which ``across`` is the first. Only ``depth`` elements along K,
        and ``width`` rows or columns, are read; the others are 0.
        """
        type_ = ir.VectorType.get([total], self.element)
        rows = [
            self._read(plus(k, row), across, width, total) if row < depth else zero(type_)
            for row in range(self.per_k_group)
        ]
        return self._k_groups_of(rows, total)

    def fetch_rows(self, k: Value, across: Value, count: int, total: int) -> None:
        """Creates prefetches of ``count`` rows of memory from ``k`` on: ``total`` elements from ``across``.

        A prefetch after the last row has no effect.
        """
        elements = LINE_BYTES * self.per_k_group * 8 // self.bits
        for row in range(count):
            for column in range(0, total, elements):
                fetch(self.buffer, plus(k, row), plus(across, column))

    def along_k_where(self, mask: Value, across: Value, k: Value) -> Value:
        """Creates the vector of K groups from index ``k`` on of one row of A or column of B.

        A K group is ``bits`` (32) bits, elements that are adjacent along K. ``across``: the number of the row
        or column. ``mask``: a vector of i1; elements are 0 where it is false.
        """
        return self._read_where(mask, across, k, self.depth)

    def side_by_side_within(self, end: int, k: Value, across: Value, bits: Value) -> list[Value]:
        """Creates the K groups at ``k`` of adjacent rows of A or columns of B, from ``across`` on.

        Returns vectors of K groups, in their order. ``bits``: an integer with one bit per row or column; a
        row or column whose bit is not set is 0, and so are elements from ``end`` of K on.
        """
        total = bits.type.width
        rows = []
        for number in range(self.per_k_group):
            row = plus(k, number)
            none = zero(bits.type)
            taken = value("arith.select", bits.type, is_less(row, index(end)), bits, none)
            nearest = value("arith.minui", row.type, row, index(end - 1))  # one that is there
            rows.append(self._read_where(mask_of(taken), nearest, across, total))
        return self._k_groups_of(rows, total)

    def _k_groups_of(self, rows: list[Value], total: int) -> list[Value]:
        while len(rows) > 1:  # of four rows, 0 with 2 and 1 with 3 first
            half = len(rows) // 2
            rows = [_interleaved(rows[row], rows[row + half]) for row in range(half)]
        return [piece(rows[0], self.depth * part, self.depth) for part in range(total // self.k_groups)]

    def _read(self, row: Value, column: Value, count: int, total: int) -> Value:
        type_ = ir.VectorType.get([total], self.element)
        if count >= total:
            return value("vector.load", type_, self.buffer, row, column)
        return self._read_where(constant_mask(count, total), row, column, total)

    def _read_where(self, mask: Value, row: Value, column: Value, total: int) -> Value:
        type_ = ir.VectorType.get([total], self.element)
        return value("vector.maskedload", type_, self.buffer, row, column, mask, zero(type_))


def prefix_bits(count: Value, total: int) -> Value:
    """Creates the integer of ``total`` bits whose lowest ``count`` are 1; ``count``: an index from 1 on."""
    type_ = ir.IntegerType.get_signless(total)
    every = value("arith.constant", type_, value=ir.IntegerAttr.get(type_, -1))
    others = value("arith.subi", count.type, index(total), count)
    return value("arith.shrui", type_, every, value("arith.index_castui", type_, others))


def mask_of(bits: Value) -> Value:
    """Creates the i1 vector whose elements are the bits of an integer, the lowest bit first."""
    single = value("vector.broadcast", ir.VectorType.get([1], bits.type), bits)
    type_ = ir.VectorType.get([bits.type.width], ir.IntegerType.get_signless(1))
    return value("vector.bitcast", type_, single)


def constant_mask(count: int, total: int) -> Value:
    """Creates the mask vector<``total`` x i1> whose first ``count`` elements are true."""
    type_ = ir.VectorType.get([total], ir.IntegerType.get_signless(1))
    return value("vector.constant_mask", type_, mask_dim_sizes=ir.DenseI64ArrayAttr.get([min(count, total)]))


def transposed(rows: list[Value]) -> list[Value]:
    """Creates the transpose of a square of K groups; vector p of the result has K group p of each row.

    ``rows``: as many vectors as each has K groups, which are all the elements of a vector in equal parts.
    """
    count = len(rows)
    type_ = rows[0].type
    k_group = ir.IntegerType.get_signless(_bits_of(type_) // count)
    line, square = (ir.VectorType.get(shape, k_group) for shape in ([count], [count, count]))
    k_groups = zero(square)
    for row_index, row in enumerate(rows):
        k_groups = with_line(k_groups, row_index, value("vector.bitcast", line, row))
    turned = value("vector.transpose", square, k_groups, permutation=ir.DenseI64ArrayAttr.get([1, 0]))
    lines = [line_of(turned, number) for number in range(count)]
    return [value("vector.bitcast", type_, k_groups_of_line) for k_groups_of_line in lines]


def _bits_of(type_: Type) -> int:
    vector = ir.VectorType(type_)
    bits: int = vector.shape[0] * number_type(str(vector.element_type)).bits
    return bits


def _interleaved(even: Value, odd: Value) -> Value:
    type_ = ir.VectorType(even.type)
    return value("vector.interleave", ir.VectorType.get([2 * type_.shape[0]], type_.element_type), even, odd)


def k_group_type() -> Type:
    """Returns i32, the type of a K group: two bf16 or four i8 that are adjacent along K."""
    return ir.IntegerType.get_signless(K_GROUP_BITS)


def k_groups_type(lanes: int = K_GROUPS) -> Type:
    """Returns the type of a vector of ``lanes`` K groups of 32 bits, by default vector<16xi32>."""
    return ir.VectorType.get([lanes], k_group_type())


def word_type() -> Type:
    """Returns the type i16."""
    return ir.IntegerType.get_signless(HALF_BITS)


def as_words(numbers: Value) -> Value:
    """Creates the extension of a vector of signed bytes to i16; a vector of i16 is returned as it is."""
    type_ = ir.VectorType.get([numbers.type.shape[0]], word_type())
    if numbers.type == type_:
        return numbers
    return value("arith.extsi", type_, numbers)


def first_half(k_groups: Value) -> Value:
    """Creates the f32 of the first bf16's value, of a K group or of each K group of a vector.

    Returns its bits: an i32, or a vector of i32.
    """
    return value("arith.shli", k_groups.type, k_groups, splat(k_groups.type, HALF_BITS))


def second_half(k_groups: Value) -> Value:
    """Creates the f32 of the second bf16's value, of a K group or of each K group of a vector.

    Returns its bits: an i32, or a vector of i32.
    """
    return value("arith.andi", k_groups.type, k_groups, splat(k_groups.type, HIGH))


def as_floats(bits: Value) -> Value:
    """Creates the f32, or the vector of f32, with the bits of an i32 or a vector of i32."""
    f32 = ir.F32Type.get()
    if isinstance(bits.type, ir.VectorType):
        return value("vector.bitcast", ir.VectorType.get(list(bits.type.shape), f32), bits)
    return value("arith.bitcast", f32, bits)


def allocated(shape: Sequence[int], element: Type) -> Value:
    """Creates the allocation of a memref that is aligned to 64 bytes; returns the memref.

    Bufferization's passes add the deallocation.
    """
    align = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    type_ = ir.MemRefType.get(list(shape), element)
    return value("memref.alloc", type_, alignment=align, operandSegmentSizes=segments)


def fetch_share(panel: tuple[Value, Value], step: Value, strips: int, width: int, line: int) -> None:
    """Creates prefetches, in a step of a strip of rows of A, of a part of the next panel of packed weights.

    All strips are multiplied by a panel before the next one is. Each fetches a share of the next panel, so
    that memory is read all the time.

    Args:
        panel: packed memory, and the next panel's first row in it.
        step: an index, s * rows + r for row r of the panel that strip s is multiplied by.
        strips: how many strips of rows A has.
        width: elements of a row of the panel.
        line: elements of a cache line.
    """
    at = value("arith.divui", ir.IndexType.get(), times(step, width), index(strips))
    for element in range(0, -(-width // strips), line):
        fetch(*panel, plus(at, element), locality=3)


def pack_b(
    source: KGroupSource, n: BlockExtent, k: int, vectors: int, store: StoreOfB, *, fetches: bool = False
) -> None:
    """Creates the code that packs B, ``k`` x ``n``, to panels of ``vectors`` vectors of K groups each.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K. ``store`` creates the store of a
    vector, see ``StoreOfB``. With ``fetches``, rows of a B that is stored by rows of K are prefetched
    ``source.depth`` rows ahead: hardware does not foresee reads a row apart.
    """
    width = vectors * source.k_groups

    def of_vector(vector: Value, columns: int) -> None:
        in_steps(
            BlockExtent(k),
            source.depth,
            lambda step, depth: _pack_transposed_b(source, vectors, vector, columns, step, depth, store),
        )

    def of_step(step: Value, depth: int) -> None:
        in_steps(
            n,
            width,
            lambda panel, columns: interleave_b(source, vectors, panel, columns, step, depth, store, fetches),
        )

    if source.is_along_k:
        in_steps(n, source.k_groups, of_vector)
    else:
        in_steps(BlockExtent(k), source.depth, of_step)


def pack_a(source: KGroupSource, first: Value, rows: BlockExtent, k: int, store: StoreOfA) -> None:
    """Creates the code that packs ``rows`` rows of A, from row ``first`` on, as vectors of K groups.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K. ``k``: the elements of a row.
    ``store`` creates the store of a vector, see ``StoreOfA``.
    """

    def of_row(row: Value, _size: int) -> None:
        def copy(step: Value, depth: int) -> None:
            store(row, step, source.along_k(total(first, row), times(step, source.depth), depth))

        in_steps(BlockExtent(k), source.depth, copy)

    def of_part(part: Value, count: int) -> None:
        in_steps(
            BlockExtent(k),
            source.depth,
            lambda step, depth: _pack_transposed_a(source, first, part, count, step, depth, store),
        )

    if source.is_along_k:
        in_steps(rows, 1, of_row)
    else:
        in_steps(rows, source.k_groups, of_part)


def interleave_b(
    source: KGroupSource,
    vectors: int,
    panel: Value,
    columns: int,
    step: Value,
    depth: int,
    store: StoreOfB,
    fetches: bool = False,
) -> None:
    """Creates the code that packs step ``step`` of K of one panel of a B that is stored by rows of K.

    ``columns``: of the panel; ``depth``: elements of K of the step. Adjacent rows are interleaved to K
    groups.
    """
    width = vectors * source.k_groups
    across = times(panel, width)
    k = times(step, source.depth)

    def pack(k_group: Value, count: int) -> tuple[()]:
        first = total(k, times(k_group, source.per_k_group))
        if fetches:
            source.fetch_rows(plus(first, source.depth), across, count, width)
        for vector, k_groups in enumerate(source.side_by_side(first, across, count, columns, width)):
            store(panel, step, k_group, index(vector), k_groups)
        return ()

    def clear(k_group: Value) -> tuple[()]:
        for vector in range(vectors):
            store(panel, step, k_group, index(vector), zero(source.vector))
        return ()

    whole, rest = divmod(depth, source.per_k_group)
    if whole:
        loop(0, whole, lambda k_group: pack(k_group, source.per_k_group))
    if rest:
        pack(index(whole), rest)
    if whole + bool(rest) < source.k_groups:
        loop(whole + bool(rest), source.k_groups, clear)


def _pack_transposed_b(
    source: KGroupSource, vectors: int, vector: Value, columns: int, step: Value, depth: int, store: StoreOfB
) -> None:
    """Packs a step of K of one vector of columns of a B that is stored by columns, by a transpose."""
    k = times(step, source.depth)
    across = times(vector, source.k_groups)
    lines = [
        source.along_k(plus(across, column), k, depth) if column < columns else zero(source.vector)
        for column in range(source.k_groups)
    ]
    store_columns(lines, vectors, vector, step, store)


def store_columns(lines: list[Value], vectors: int, vector: Value, step: Value, store: StoreOfB) -> None:
    """Creates the transpose of the K groups of adjacent columns of B, and its stores to packed panels.

    ``lines``: one vector of K groups along K per column; ``vectors``: vectors of columns in a panel;
    ``vector``: the number of these columns' vector among all; ``step``: of K, as many K groups as a line has.
    """
    type_ = ir.IndexType.get()
    panel, vector_of_panel = (
        value(f"arith.{name}", type_, vector, index(vectors)) for name in ("divui", "remui")
    )
    for line_index, line in enumerate(transposed(lines)):
        store(panel, step, index(line_index), vector_of_panel, line)


def _pack_transposed_a(
    source: KGroupSource, first: Value, part: Value, rows: int, step: Value, depth: int, store: StoreOfA
) -> None:
    """Packs a step of K of some rows of an A that is stored by columns: interleaving, then a transpose."""
    k = times(step, source.depth)
    begin = times(part, source.k_groups)
    across = total(first, begin)
    lines = []
    for k_group in range(source.k_groups):
        left = min(depth - k_group * source.per_k_group, source.per_k_group)
        if left > 0:
            first_k = plus(k, k_group * source.per_k_group)
            lines += source.side_by_side(first_k, across, left, rows, source.k_groups)
        else:
            lines.append(zero(source.vector))
    for line_index, line in enumerate(transposed(lines)[:rows]):
        store(plus(begin, line_index), step, line)
