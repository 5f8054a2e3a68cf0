"""Decomposes linalg.pack and linalg.unpack, for which upstream has neither loops nor buffers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu.packs import packs_to_loops
from tuner.mlir.ir.building import (
    PARALLEL,
    as_index,
    compared,
    create,
    dimensions,
    generic,
    index,
    integers,
    value,
)
from tuner.mlir.ir.reading import unsupported, walk

PACK = "linalg.pack"
UNPACK = "linalg.unpack"
DYNAMIC = ir.ShapedType.get_dynamic_size()


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
        given = tuple(ir.DenseI64ArrayAttr(order)) if order is not None else ()
        inner = tuple(ir.DenseI64ArrayAttr(op.attributes["inner_dims_pos"]))
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        padding = list(op.operands)[2 : 2 + segments[2]]
        dynamic = iter(list(op.operands)[2 + segments[2] :])
        static = ir.DenseI64ArrayAttr(op.attributes["static_inner_tiles"])
        sizes = tuple(next(dynamic) if size == DYNAMIC else size for size in static)
        order = given or tuple(range(rank))
        return cls(op, unpacked, packed, padding[0] if padding else None, sizes, inner, order)

    def tile(self, number: int) -> Value:
        """Returns the size of a tile as an index, created at the insertion point if it is static."""
        return as_index(self.sizes[number])

    @property
    def rank(self) -> int:
        return len(self.order)

    @property
    def is_static(self) -> bool:
        kinds = (ir.RankedTensorType(each.type) for each in (self.unpacked, self.packed))
        return all(kind.has_static_shape for kind in kinds)

    def split_shape(self) -> tuple[list[int], list[list[int]]]:
        """Returns the sizes with each tile after its dimension, and the groups that are one dimension."""
        packed = list(self.packed.type.shape)
        sizes: list[int] = []
        groups = []
        for axis in range(self.rank):
            group = [len(sizes)]
            sizes.append(packed[self.order.index(axis)])
            if axis in self.inner:
                group.append(len(sizes))
                sizes.append(packed[self.rank + self.inner.index(axis)])
            groups.append(group)
        return sizes, groups

    def packed_axes(self, groups: list[list[int]]) -> list[int]:
        """Returns, per dimension of the packed tensor, the dimension of the split shape."""
        return [groups[axis][0] for axis in self.order] + [groups[axis][1] for axis in self.inner]


def decompose_packing(module: ir.Module) -> None:
    """Replaces each linalg.pack and linalg.unpack, in place.

    Those of memrefs become loops, those of tensors of dynamic shapes a ``linalg.generic`` over the result
    that extracts elements. Raises CandidateError(COMPILE) for partial tiles of tensors without a padding
    value.

        %r = linalg.pack %x padding_value(%z : f32) inner_dims_pos = [1] inner_tiles = [8] into %e
          : tensor<4x13xf32> -> tensor<4x2x8xf32>
      becomes
        %p = tensor.pad %x low[0, 0] high[0, 3] { tensor.yield %z } : tensor<4x13xf32> to tensor<4x16xf32>
        %s = tensor.expand_shape %p [[0], [1, 2]] output_shape [4, 2, 8] : ... into tensor<4x2x8xf32>
        %r = linalg.transpose ins(%s) outs(%e) permutation = [0, 1, 2]

    An unpack is the transposition, a tensor.collapse_shape, and a tensor.extract_slice without the padding.
    """
    packs_to_loops(module)
    for op in walk(module, PACK, UNPACK):
        tiles = _Tiles.of(op)
        with op.location, ir.InsertionPoint(op):
            if not tiles.is_static:
                result = _gathered(tiles)
            elif op.name == PACK:
                result = _packed(tiles)
            else:
                result = _unpacked(tiles)
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _packed(tiles: _Tiles) -> Value:
    sizes, groups = tiles.split_shape()
    kind = ir.RankedTensorType(tiles.unpacked.type)
    padded_shape = [math.prod(sizes[axis] for axis in group) for group in groups]
    source = tiles.unpacked
    if padded_shape != list(kind.shape):
        source = _padded(tiles, padded_shape)
    split = ir.RankedTensorType.get(sizes, kind.element_type)
    if len(sizes) > tiles.rank:
        expanded = {"reassociation": _groups(groups), "static_output_shape": ir.DenseI64ArrayAttr.get(sizes)}
        source = value("tensor.expand_shape", split, source, **expanded)
    return _transposed(source, tiles.packed_axes(groups))


def _padded(tiles: _Tiles, shape: list[int]) -> Value:
    kind = ir.RankedTensorType(tiles.unpacked.type)
    if tiles.padding is None:
        raise unsupported(tiles.op, f"tiles that do not divide {kind}, without a padding value", "one")
    high = [padded - size for padded, size in zip(shape, kind.shape, strict=True)]
    pad = ir.Operation.create(
        "tensor.pad",
        results=[ir.RankedTensorType.get(shape, kind.element_type)],
        operands=[tiles.unpacked],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
            "static_low": ir.DenseI64ArrayAttr.get([0] * tiles.rank),
            "static_high": ir.DenseI64ArrayAttr.get(high),
        },
        regions=1,
    )
    block = pad.regions[0].blocks.append(*[ir.IndexType.get()] * tiles.rank)
    with ir.InsertionPoint(block):
        create("tensor.yield", [], [tiles.padding])
    return pad.results[0]


def _unpacked(tiles: _Tiles) -> Value:
    sizes, groups = tiles.split_shape()
    kind = ir.RankedTensorType(tiles.unpacked.type)
    axes = tiles.packed_axes(groups)
    result = _transposed(tiles.packed, list(map(axes.index, range(len(sizes)))))
    shape = [math.prod(sizes[axis] for axis in group) for group in groups]
    if len(sizes) > tiles.rank:
        collapsed = ir.RankedTensorType.get(shape, kind.element_type)
        result = value("tensor.collapse_shape", collapsed, result, reassociation=_groups(groups))
    if shape == list(kind.shape):
        return result
    return value(
        "tensor.extract_slice",
        kind,
        result,
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        static_offsets=ir.DenseI64ArrayAttr.get([0] * tiles.rank),
        static_sizes=ir.DenseI64ArrayAttr.get(list(kind.shape)),
        static_strides=ir.DenseI64ArrayAttr.get([1] * tiles.rank),
    )


def _groups(groups: list[list[int]]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get(list(map(integers, groups)))


def _transposed(source: Value, axes: Sequence[int]) -> Value:
    """Creates a tensor whose dimension ``i`` is dimension ``axes[i]`` of ``source``."""
    kind = ir.RankedTensorType(source.type)
    if list(axes) == sorted(axes):
        return source
    result = ir.RankedTensorType.get([kind.shape[axis] for axis in axes], kind.element_type)
    empty = value("tensor.empty", result)
    loops = dimensions(len(axes))
    indices = [loops[list(axes).index(axis)] for axis in range(len(axes))]
    maps = (indices, loops)
    return generic([source], empty, maps, [PARALLEL] * len(axes), lambda element, _: element).results[0]


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
        places = [value("arith.select", place.type, inside, place, zero) for place in places]
        element = _extracted(source, places)
        return value("arith.select", element.type, inside, element, tiles.padding)

    loops = dimensions(rank)
    return generic([], start, [loops], [PARALLEL] * rank, body).results[0]


def _true() -> Value:
    bit = ir.IntegerType.get_signless(1)
    return value("arith.constant", bit, value=ir.IntegerAttr.get(bit, 1))


def _places_in_unpacked(tiles: _Tiles, loops: list[Value]) -> list[Value]:
    places = [loops[tiles.order.index(axis)] for axis in range(tiles.rank)]
    for number, axis in enumerate(tiles.inner):
        first = value("arith.muli", places[axis].type, places[axis], tiles.tile(number))
        places[axis] = value("arith.addi", first.type, first, loops[tiles.rank + number])
    return places


def _places_in_packed(tiles: _Tiles, loops: list[Value]) -> list[Value]:
    outer = list(loops)
    inner = []
    for number, axis in enumerate(tiles.inner):
        inner.append(value("arith.remui", loops[axis].type, loops[axis], tiles.tile(number)))
        outer[axis] = value("arith.divui", loops[axis].type, loops[axis], tiles.tile(number))
    return [*(outer[axis] for axis in tiles.order), *inner]


def _loop(number: int) -> Value:
    dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    return value("linalg.index", ir.IndexType.get(), dim=dim)


def _size(tensor: Value, axis: int) -> Value:
    kind = ir.RankedTensorType(tensor.type)
    if not kind.is_dynamic_dim(axis):
        return index(kind.shape[axis])
    return value("tensor.dim", ir.IndexType.get(), tensor, index(axis))


def _extracted(source: Value, places: Sequence[Value]) -> Value:
    return value("tensor.extract", ir.RankedTensorType(source.type).element_type, source, *places)
