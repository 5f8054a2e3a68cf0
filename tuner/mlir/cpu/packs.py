"""``linalg.pack`` and ``linalg.unpack`` on buffers as loops: upstream lowers those of tensors alone."""

from collections.abc import Callable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import branch, for_each, is_less, load, size_of, store, total, value
from tuner.mlir.ir.reading import walk

PACK = "linalg.pack"
UNPACK = "linalg.unpack"
PADDING = 2  # operand of a pack with a padding value


def packs_to_loops(module: ir.Module) -> None:
    """Replaces each pack and unpack of memrefs by loops over the packed elements, in place.

        linalg.pack %a inner_dims_pos = [0] inner_tiles = [8] into %b : memref<64xf32> -> memref<8x8xf32>
      becomes
        scf.for %tile = %c0 to %c8 step %c1 {
          scf.for %element = %c0_1 to %c8_2 step %c1_3 {
            %0 = arith.muli %tile, %c8_4 : index
            %at = arith.addi %0, %element : index
            %inside = arith.cmpi slt, %at, %c64 : index
            scf.if %inside {
              %1 = memref.load %a[%at] : memref<64xf32>
              memref.store %1, %b[%tile, %element] : memref<8x8xf32>
            }
    Packs of tensors stay.
    """
    for op in walk(module, PACK, UNPACK):
        buffers = list(op.operands)[:2]
        if all(isinstance(buffer.type, ir.MemRefType) for buffer in buffers):
            with ir.InsertionPoint(op), op.location:
                _copy_elements(op, *buffers)
            op.erase()


def _copy_elements(op: Op, source: Value, target: Value) -> None:
    is_pack = op.name == PACK
    whole = source if is_pack else target
    packed = target if is_pack else source

    def copy(indices: list[Value]) -> None:
        at = _place_in_whole(op, packed, indices, whole.type.rank)

        def copy_element() -> None:
            if is_pack:
                store(load(whole, at), packed, indices)
            else:
                store(load(packed, indices), whole, at)

        def pad() -> None:
            store(op.operands[PADDING], packed, indices)

        is_padded = is_pack and ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[PADDING] > 0
        branch(_is_inside(at, whole), copy_element, pad if is_padded else None)

    _loop_nest(packed, [], copy)


def _loop_nest(buffer: Value, indices: list[Value], body: Callable[[list[Value]], None]) -> None:
    """Creates loops over the dimensions of a buffer that ``indices`` has no index of, around ``body``."""
    if len(indices) == buffer.type.rank:
        body(indices)
        return
    for_each(0, size_of(buffer, len(indices)), lambda number: _loop_nest(buffer, [*indices, number], body))


def _place_in_whole(op: Op, packed: Value, indices: list[Value], rank: int) -> list[Value]:
    """Returns the indices, in the array that is not packed, of the packed array's element at ``indices``."""
    order = list(range(rank))
    if "outer_dims_perm" in op.attributes:
        order = list(ir.DenseI64ArrayAttr(op.attributes["outer_dims_perm"])) or order
    at = [indices[order.index(dimension)] for dimension in range(rank)]
    for index, dimension in enumerate(ir.DenseI64ArrayAttr(op.attributes["inner_dims_pos"])):
        tile = size_of(packed, rank + index)
        start = value("arith.muli", ir.IndexType.get(), at[dimension], tile)
        at[dimension] = total(start, indices[rank + index])
    return at


def _is_inside(at: list[Value], buffer: Value) -> Value:
    truths = [is_less(index, size_of(buffer, dimension)) for dimension, index in enumerate(at)]
    inside = truths[0]
    for truth in truths[1:]:
        inside = value("arith.andi", inside.type, inside, truth)
    return inside
