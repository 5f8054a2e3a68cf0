"""The code that packs matrices of any size to AMX tiles (``tuner.mlir.cpu_ops.amx_tiles``)."""

from collections.abc import Callable
from typing import TypeAlias

from tuner.mlir.bindings import Value
from tuner.mlir.cpu_ops.vnni_packing import (
    BlockExtent,
    KGroupSource,
    OfTile,
    StoreOfA,
    StoreOfB,
    allocated,
    interleave_b,
    mask_of,
    over_tiles,
    pack_a,
    pack_b,
    prefix_bits,
    store_columns,
    transposed,
)
from tuner.mlir.ir.building import (
    as_index,
    branch,
    create,
    for_each,
    index,
    is_less,
    plus,
    rolled_loop,
    times,
    total,
    value,
)

Steps: TypeAlias = tuple[BlockExtent, Value, int]  # a dimension, the number of a step, elements of a step


def pack_b_to_tiles(source: KGroupSource, n: BlockExtent, k: int, vectors: int, store: StoreOfB) -> None:
    """Creates the code that packs B, ``k`` x ``n``, to panels of ``vectors`` vectors of K groups each.

    What is packed after the last column is unspecified. ``store`` creates the store of a vector of K groups.

    There is one code for whole tiles and one for partial tiles of every size: separate code for each
    remainder of K combined with each of rows or columns would be most of a kernel. So partial tiles are read
    by bounds and masks that are computed, in loops that LLVM does not unroll. Where K groups are transposed,
    a loop for whole tiles and one for partial tiles copy 16 vectors to a square of memory, which one
    transpose reads. A matrix of whole tiles is packed by ``tuner.mlir.cpu_ops.vnni_packing``. The copy of a
    partial tile of an A of bf16 that is stored by columns (``pack_a_to_tiles``):

        scf.for %word = %c0 to %c16 step %c1 {
          %row = arith.addi %k, %word2 : index
          %is_there = arith.cmpi slt, %row, %c901 : index
          %bits = arith.select %is_there, %bits_of_rows, %c0_i16 : i16
          %place = arith.minui %row, %c900 : index
          %even = vector.maskedload %a[%place, %first], %mask_of_bits, %zeros : ...
          ...
          vector.store %words, %square[%word, %c0] : memref<16x32xbf16>, vector<32xbf16>
        } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}

    Masks of 8-bit and 16-bit elements need AVX512, which every processor with AMX has.
    """
    steps = BlockExtent(k)
    width = source.k_groups if source.is_along_k else vectors * source.k_groups
    if not steps.rests(source.depth) and not n.rests(width):
        pack_b(source, n, k, vectors, store)
    elif source.is_along_k:
        _pack_transposed_b(source, n, steps, vectors, store)
    else:
        over_tiles(
            steps,
            source.depth,
            n,
            width,
            lambda step, panel: interleave_b(source, vectors, panel, width, step, source.depth, store),
            lambda step, panel: _interleave_part_of_b(source, vectors, n, panel, k, step, store),
        )


def pack_a_to_tiles(source: KGroupSource, first: Value, rows: BlockExtent, k: int, store: StoreOfA) -> None:
    """Creates the code that packs ``rows`` rows of A, from row ``first`` on, as vectors of K groups.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K. ``k``: the elements of a row;
    ``store`` creates the store of a vector. If A is stored by columns, its rows are filled up with rows of
    zeros to a multiple of 16.
    """
    steps = BlockExtent(k)
    if source.is_along_k or not (steps.rests(source.depth) or rows.rests(source.k_groups)):
        pack_a(source, first, rows, k, store)
    else:
        square = _square(source)

        def of_tile(part: Value, step: Value) -> None:
            down = times(part, source.k_groups)
            begin = times(step, source.depth)
            across = total(first, down)

            def copy(k_group: Value) -> None:
                first_k = total(begin, times(k_group, source.per_k_group))
                size = source.k_groups
                (k_groups,) = source.side_by_side(first_k, across, source.per_k_group, size, size)
                _to_square(k_groups, square, k_group)

            def copy_part() -> None:
                bits = prefix_bits(rows.left(source.k_groups, part), source.k_groups)

                def copy_there(k_group: Value) -> None:
                    first_k = total(begin, times(k_group, source.per_k_group))
                    (k_groups,) = source.side_by_side_within(steps.whole, first_k, across, bits)
                    _to_square(k_groups, square, k_group)

                rolled_loop(0, source.k_groups, copy_there)

            _if_whole(
                (rows, part, source.k_groups),
                (steps, step, source.depth),
                lambda: rolled_loop(0, source.k_groups, copy),
                copy_part,
            )
            for line_index, line in enumerate(transposed(_lines(source, square))):
                store(plus(down, line_index), step, line)

        _over(rows.covering(source.k_groups), steps.covering(source.depth), of_tile)


def _interleave_part_of_b(
    source: KGroupSource, vectors: int, n: BlockExtent, panel: Value, k: int, step: Value, store: StoreOfB
) -> None:
    """Packs a step of K of one panel of a B that is stored by rows of K; step and panel may be partial."""
    width = vectors * source.k_groups
    across = times(panel, width)
    begin = times(step, source.depth)
    bits = prefix_bits(n.left(width, panel), width)

    def pack(k_group: Value) -> None:
        first_k = total(begin, times(k_group, source.per_k_group))
        for vector, k_groups in enumerate(source.side_by_side_within(k, first_k, across, bits)):
            store(panel, step, k_group, index(vector), k_groups)

    rolled_loop(0, source.k_groups, pack)


def _pack_transposed_b(
    source: KGroupSource, n: BlockExtent, steps: BlockExtent, vectors: int, store: StoreOfB
) -> None:
    """Packs a B that is stored by columns; in place of columns after the last one, the last one again."""
    square = _square(source)
    last = plus(n.elements(), -1)

    def of_tile(vector: Value, step: Value) -> None:
        begin = times(step, source.depth)
        across = times(vector, source.k_groups)

        def copy(column: Value) -> None:
            _to_square(source.along_k(total(across, column), begin, source.depth), square, column)

        def copy_part() -> None:
            mask = mask_of(prefix_bits(steps.left(source.depth, step), source.depth))

            def copy_there(column: Value) -> None:
                nearest = value("arith.minui", last.type, total(across, column), last)
                _to_square(source.along_k_where(mask, nearest, begin), square, column)

            rolled_loop(0, source.k_groups, copy_there)

        _if_whole(
            (n, vector, source.k_groups),
            (steps, step, source.depth),
            lambda: rolled_loop(0, source.k_groups, copy),
            copy_part,
        )
        store_columns(_lines(source, square), vectors, vector, step, store)

    _over(n.covering(source.k_groups), steps.covering(source.depth), of_tile)


def _over(rows: Value, columns: Value, of_tile: OfTile) -> None:
    for_each(0, rows, lambda row: for_each(0, columns, lambda column: of_tile(row, column)))


def _if_whole(rows: Steps, columns: Steps, whole: Callable[[], None], part: Callable[[], None]) -> None:
    """Creates the branch on whether both steps are whole; just ``part`` where no tile can be whole."""
    if any(extent.whole < size for extent, _, size in (rows, columns)):
        part()  # there is no whole tile
        return
    are_whole = [
        is_less(number, as_index(extent.whole_steps(size)))
        for extent, number, size in (rows, columns)
        if extent.rests(size)
    ]
    if len(are_whole) == 1:
        is_whole = are_whole[0]
    else:
        is_whole = value("arith.andi", are_whole[0].type, *are_whole)
    branch(is_whole, whole, part)


def _square(source: KGroupSource) -> Value:
    return allocated((source.k_groups, source.depth), source.element)


def _to_square(k_groups: Value, square: Value, line: Value) -> None:
    create("vector.store", [], [k_groups, square, line, index(0)])


def _lines(source: KGroupSource, square: Value) -> list[Value]:
    return [
        value("vector.load", source.vector, square, index(line), index(0)) for line in range(source.k_groups)
    ]
