"""Decomposes linalg.pack and linalg.unpack: upstream lowers only those of static tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, interpreter, ir
from tuner.mlir.cpu.packs import packs_to_loops
from tuner.mlir.ir.building import DYNAMIC, PARALLEL, as_index, compared, dimensions, generic, index, value
from tuner.mlir.ir.reading import unsupported, walk
from tuner.mlir.transform import entry_sequence, parse

PACK = "linalg.pack"
UNPACK = "linalg.unpack"
SCHEDULE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %packs = transform.structured.match ops{["linalg.pack"]} in %module
      : (!transform.any_op) -> !transform.op<"linalg.pack">
    transform.structured.lower_pack %packs : (!transform.op<"linalg.pack">)
      -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">,
          !transform.op<"linalg.transpose">)
    %unpacks = transform.structured.match ops{["linalg.unpack"]} in %module
      : (!transform.any_op) -> !transform.op<"linalg.unpack">
    transform.structured.lower_unpack %unpacks : (!transform.op<"linalg.unpack">)
      -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">,
          !transform.op<"tensor.collapse_shape">, !transform.op<"tensor.extract_slice">,
          !transform.op<"linalg.copy">)
    transform.yield
  }
}
"""


@dataclass(frozen=True)
class _Tiles:
    """How an operation packs: the tensors, the tiles, and the order of the outer dimensions."""

    op: Op
    unpacked: Value  # the source of a pack, the destination of an unpack
    packed: Value
    padding: Value | None
    sizes: tuple[int | Value, ...]  # of the tiles
    inner: tuple[int, ...]  # dimension of each tile
    order: tuple[int, ...]  # dimension of each outer dimension of the packed tensor

    @classmethod
    def of(cls, op: Op) -> "_Tiles":
        source, destination = list(op.operands)[:2]
        unpacked, packed = (source, destination) if op.name == PACK else (destination, source)
        rank = ir.RankedTensorType(unpacked.type).rank
        order = op.attributes.get("outer_dims_perm")
        permuted = tuple(ir.DenseI64ArrayAttr(order)) if order is not None else ()
        inner = tuple(ir.DenseI64ArrayAttr(op.attributes["inner_dims_pos"]))
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        padding = list(op.operands)[2 : 2 + segments[2]]
        dynamic = iter(list(op.operands)[2 + segments[2] :])
        static = ir.DenseI64ArrayAttr(op.attributes["static_inner_tiles"])
        sizes = tuple(next(dynamic) if size == DYNAMIC else size for size in static)
        order = permuted or tuple(range(rank))
        return cls(op, unpacked, packed, padding[0] if padding else None, sizes, inner, order)

    def tile(self, number: int) -> Value:
        """Returns the size of a tile as an index, created at the insertion point if it is static."""
        return as_index(self.sizes[number])

    @property
    def rank(self) -> int:
        return len(self.order)

    @property
    def is_static(self) -> bool:
        kinds = (ir.RankedTensorType(tensor.type) for tensor in (self.unpacked, self.packed))
        return all(type_.has_static_shape for type_ in kinds)

    @property
    def is_partial(self) -> bool:
        """Returns whether the last tile along some dimension is not whole, where all sizes are static."""
        shape = list(self.unpacked.type.shape)
        return any(shape[axis] % size for axis, size in zip(self.inner, self.sizes, strict=True))


def decompose_packing(module: ir.Module) -> None:
    """Replaces each linalg.pack and linalg.unpack by operations that can be lowered, in place.

    Operations on memrefs become loops. Operations on tensors of dynamic shape become a ``linalg.generic``
    over the result that extracts elements. Operations on static tensors are replaced by upstream's transform
    ops. Raises CandidateError(COMPILE) for partial tiles of static tensors without a padding value.

        %r = linalg.pack %x padding_value(%z : f32) inner_dims_pos = [1] inner_tiles = [8] into %e
          : tensor<4x13xf32> -> tensor<4x2x8xf32>
      becomes
        %p = tensor.pad %x low[0, 0] high[0, 3] { tensor.yield %z } : tensor<4x13xf32> to tensor<4x16xf32>
        %s = tensor.expand_shape %p [[0], [1, 2]] output_shape [4, 2, 8] : ... into tensor<4x2x8xf32>
        %r = linalg.transpose ins(%s) outs(%e) permutation = [0, 1, 2]

    An unpack becomes the inverse: a transposition, a tensor.collapse_shape, and a tensor.extract_slice that
    drops the padding.
    """
    packs_to_loops(module)
    has_static = False
    for op in walk(module, PACK, UNPACK):
        tiles = _Tiles.of(op)
        if not tiles.is_static:
            with op.location, ir.InsertionPoint(op):
                result = _gathered(tiles)
            op.results[0].replace_all_uses_with(result)
            op.erase()
            continue
        if op.name == PACK and tiles.padding is None and tiles.is_partial:
            type_ = tiles.unpacked.type
            raise unsupported(op, f"tiles that do not divide {type_}, without a padding value", "one")
        has_static = True
    if has_static:
        schedule = parse(SCHEDULE, "packing")
        interpreter.apply_named_sequence(module, entry_sequence(schedule), schedule)


def _gathered(tiles: _Tiles) -> Value:
    """Creates a generic over the result whose elements are extracted from the source at computed indices."""
    is_pack = tiles.op.name == PACK
    source, start = (tiles.unpacked, tiles.packed) if is_pack else (tiles.packed, tiles.unpacked)
    rank = ir.RankedTensorType(start.type).rank
    sizes = [_size(tiles.unpacked, axis) for axis in tiles.inner]

    def body(*_: Value) -> Value:
        loops = list(map(_loop, range(rank)))
        if not is_pack:
            return _extracted(source, _places_in_packed(tiles, loops))
        places = _places_in_unpacked(tiles, loops)
        if tiles.padding is None:
            return _extracted(source, places)
        inside = _true()
        for axis, size in zip(tiles.inner, sizes, strict=True):
            is_less = compared("ult", places[axis], size)
            inside = value("arith.andi", is_less.type, inside, is_less)
        zero = index(0)
        places = [value("arith.select", number.type, inside, number, zero) for number in places]
        element = _extracted(source, places)
        return value("arith.select", element.type, inside, element, tiles.padding)

    loops = dimensions(rank)
    return generic([], start, [loops], [PARALLEL] * rank, body).results[0]


def _true() -> Value:
    bit = ir.IntegerType.get_signless(1)
    return value("arith.constant", bit, value=ir.IntegerAttr.get(bit, 1))


def _places_in_unpacked(tiles: _Tiles, loops: list[Value]) -> list[Value]:
    places = [loops[tiles.order.index(axis)] for axis in range(tiles.rank)]
    for axis_index, axis in enumerate(tiles.inner):
        first = value("arith.muli", places[axis].type, places[axis], tiles.tile(axis_index))
        places[axis] = value("arith.addi", first.type, first, loops[tiles.rank + axis_index])
    return places


def _places_in_packed(tiles: _Tiles, loops: list[Value]) -> list[Value]:
    outer = list(loops)
    inner = []
    for axis_index, axis in enumerate(tiles.inner):
        inner.append(value("arith.remui", loops[axis].type, loops[axis], tiles.tile(axis_index)))
        outer[axis] = value("arith.divui", loops[axis].type, loops[axis], tiles.tile(axis_index))
    return [*(outer[axis] for axis in tiles.order), *inner]


def _loop(number: int) -> Value:
    dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    return value("linalg.index", ir.IndexType.get(), dim=dim)


def _size(tensor: Value, axis: int) -> Value:
    type_ = ir.RankedTensorType(tensor.type)
    if not type_.is_dynamic_dim(axis):
        return index(type_.shape[axis])
    return value("tensor.dim", ir.IndexType.get(), tensor, index(axis))


def _extracted(source: Value, places: Sequence[Value]) -> Value:
    return value("tensor.extract", ir.RankedTensorType(source.type).element_type, source, *places)
