"""``tuner.reorder_weights``: a convolution reads its weights by window, channel and filter, in panels."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.vnni_packing import k_group_type
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.fusions.convolutions import (
    LAYOUTS,
    PAD,
    ConvolutionForm,
    convolution_form,
    is_padding_of_zeros,
    zero_planes,
)
from tuner.mlir.ir.building import PARALLEL, REDUCTION, dimensions, generic, index, reinterpreted, value
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.packed_weights import ORDER, WEIGHT, set_packed_as
from tuner.mlir.ir.reading import op_of, walk
from tuner.models.ops.convolutions.channel_k_groups import (
    OF_BYTES,
    PAIR,
    add_products,
    as_tensor,
    channel_k_groups,
    k_group_count,
    k_groups_in_steps,
    per_k_group,
)
from tuner.models.ops.convolutions.convolution_operands import PLANES, WEIGHTS, ConvolutionTile

OF_TILES = "bf16 x bf16 x f32"  # input, weights and sums of K groups that AMX multiplies
OF_K_GROUPS = (OF_TILES, "i8 x i8 x i32")
# attributes of ops of a fusion
CONTRACTION = "contraction"
ROOT = "root"
TO_TENSOR = "bufferization.to_tensor"
SECOND_USE = Refusal("found weights with a second use, allowed one")


class ReorderWeightsOp(InPlaceOp, name="reorder_weights"):
    """``tuner.reorder_weights``: a convolution of a fusion reads its weights by window, channel and filter.

    Takes the function of a fusion. Each named convolution that has the attribute ``contraction`` becomes a
    ``linalg.generic`` of weights whose last dimension is the filters, as ``tuner.convolution_block`` needs.

    An argument ``tuner.weight`` takes its weights in that order: it gets another type, ``tuner.order``, the
    dimension of the original weights for each of its dimensions, and ``tuner.packing``, the number of
    filters. Other weights are transposed in the function, at each call.

    Of an input whose argument has ``tuner.zero_planes = array<i64: 1, 1>``, planes of zeros at the ends, the
    ``linalg.generic`` has ``planes = array<i64: 2, 1, 5>``: planes are dimension 2, and 1 to 4 are not zeros.

    A depthwise convolution may read a ``tensor.pad`` by zeros of an argument: it then has a view
    of the padded shape, from which ``tuner.depthwise_block`` reads none, and ``planes`` has the rows and the
    columns that are not padding.

    A convolution of bf16 into f32, or of i8 into i32, reads K groups of two or four channels
    (``tuner.models.ops.convolutions.channel_k_groups``): its input is copied to K groups first, and weights
    are packed so. For bf16, %input below is 1x2x6x6xi32, and %w is 3x3x2x8xi32 with ``tuner.interleave`` and
    ``tuner.depth`` 2 and ``tuner.run`` 3, the channels. Of i8 the ``linalg.generic`` has ``of_bytes``.

        func.func @f(%x: memref<1x3x6x6xf32>, %w: memref<8x3x3x3xf32> {tuner.weight}, %y: ...) {
          %weights = bufferization.to_tensor %w restrict : memref<8x3x3x3xf32> to tensor<8x3x3x3xf32>
          %sums = linalg.conv_2d_nchw_fchw {contraction, ...} ins(%input, %weights : ...) ...
      becomes
        func.func @f(%x: ..., %w: memref<3x3x3x8xf32> {tuner.order = array<i64: 2, 3, 1, 0>, ...
          %weights = bufferization.to_tensor %w restrict : memref<3x3x3x8xf32> to tensor<3x3x3x8xf32>
          %sums = linalg.generic {...} ins(%input, %weights : ...) outs(%start : ...) attrs = {contraction} {

    Attribute ``tiles``, i64: 1 for AMX tiles of bf16, whose weights are by window, filter and channel, the
    channels of both operands padded with zeros to equal steps of at most 16 K groups (default 0). The handle
    (a func.func) stays valid. Silenceable failure: a function without such a convolution, sizes that are not
    static, an argument of weights that has a second use; of bf16 and i8, sums other than of f32 and i32, a
    depthwise convolution, and operands that are not arguments.
    """

    def change(self, function: Op) -> Refusal | None:
        convolutions = [op for op in walk(function, *LAYOUTS) if CONTRACTION in op.attributes]
        if not convolutions:
            names = ", ".join(layout.removeprefix("linalg.") for layout in LAYOUTS)
            return Refusal(f"found no convolution marked {CONTRACTION}, allowed {names}")
        for op in convolutions:
            if not all(operand.type.has_static_shape for operand in op.operands):
                return Refusal(f"found {op.name} of dynamic sizes, allowed static sizes")
            with ir.InsertionPoint(op), op.location:
                tiles = bool(attribute(self, "tiles", 0))
                reason = _Convolution(op, convolution_form(op), tiles).rewrite(function)
            if reason is not None:
                return reason
        return None


@dataclass(frozen=True, eq=False)
class _Convolution:
    """A named convolution; its methods create what replaces it at the current insertion point."""

    op: Op
    form: ConvolutionForm
    tiles: bool  # of AMX

    @property
    def order(self) -> str:
        """Returns the dimensions of the reordered weights; those of a depthwise convolution stay in order."""
        form = self.form
        if form.is_depthwise:
            return form.weights
        inner = f"{form.window}fc" if self.tiles else f"{form.reduced}f"
        return "g" * form.weights.count("g") + inner

    @property
    def k_groups(self) -> int:
        weights = self.op.operands[1]
        channels = weights.type.shape[self.form.weights.index("c")]
        if self.tiles:
            return k_groups_in_steps(channels)
        return k_group_count(channels, per_k_group(weights))

    def rewrite(self, function: Op) -> Refusal | None:
        planes = self._zero_planes()
        padding = op_of(self.op.operands[0], PAD)
        if padding is not None:
            read = op_of(padding.operands[0], TO_TENSOR)
            if read is None or not is_padding_of_zeros(padding):
                return Refusal(
                    "found padding of what is computed in the fusion, allowed zeros around an argument"
                )
            planes = _padded_planes(padding)
            self.op.operands[0] = as_tensor(_around(read.operands[0], padding))
        image = self.op.operands[0]
        has_k_groups = self.tiles or per_k_group(image) > 0
        if has_k_groups:
            reason = self._refuses_k_groups()
            if reason is not None:
                return reason
            memory = image.owner.operation.operands[0]  # a memref: ``_refuses_k_groups`` has checked
            image = as_tensor(channel_k_groups(memory, self.form.input.index("c"), count=self.k_groups))
            weights = self._weight_k_groups(function)
        else:
            weights = self._reordered(function)
        if isinstance(weights, Refusal):
            return weights
        parallel = self.form.output
        reduced = self.form.reduced
        dims = dict(zip(parallel + reduced, dimensions(len(parallel + reduced)), strict=True))
        maps = (
            [self._read(name, dims) for name in self.form.input],
            [dims[name] for name in self.order],
            [dims[name] for name in parallel],
        )
        iterators = [PARALLEL] * len(parallel) + [REDUCTION] * len(reduced)
        body = add_products if has_k_groups else _multiply_add
        sums = generic([image, weights], self.op.operands[2], maps, iterators, body)
        for name in (CONTRACTION, ROOT):
            if name in self.op.attributes:
                sums.attributes[name] = ir.UnitAttr.get()
        if has_k_groups and not isinstance(sums.results[0].type.element_type, ir.FloatType):
            sums.attributes[OF_BYTES] = ir.UnitAttr.get()
        if planes:
            sums.attributes[PLANES] = ir.DenseI64ArrayAttr.get(planes)
        self.op.results[0].replace_all_uses_with(sums.results[0])
        self.op.erase()
        return None

    def _zero_planes(self) -> list[int]:
        first, last = zero_planes(self.op)
        if not first and not last:
            return []
        axis = self.form.input.index("D")
        return [axis, first, self.op.operands[0].type.shape[axis] - last]

    def _read(self, name: str, dims: dict[str, ir.AffineExpr]) -> ir.AffineExpr:
        """Returns the index of the input along a dimension; of rows: row * stride + window row * dilation."""
        if name not in "DHW":
            return dims[name]
        axis = self.form.window.index(name.lower())
        return dims[name] * self.form.strides[axis] + dims[name.lower()] * self.form.dilations[axis]

    def _refuses_k_groups(self) -> Refusal | None:
        types = [str(operand.type.element_type) for operand in self.op.operands]
        allowed = (OF_TILES,) if self.tiles else OF_K_GROUPS
        if " x ".join(types) not in allowed or self.form.is_depthwise:
            found = " x ".join([*types, self.op.name.removeprefix("linalg.")])
            return Refusal(f"found {found}, allowed {' or '.join(allowed)} that sums over channels")
        if any(op_of(operand, TO_TENSOR) is None for operand in list(self.op.operands)[:2]):
            return Refusal(f"found {types[0]} that is computed in the fusion, allowed arguments")
        return None

    def _weight_k_groups(self, function: Op) -> Value | Refusal:
        """Returns the weights as K groups: of a retyped argument, or copied at each call; else why not."""
        weights = self.op.operands[1]
        argument = weights.owner.operation.operands[0]
        axes = list(map(self.form.weights.index, self.order))
        if not is_weight(function, argument):
            return as_tensor(channel_k_groups(argument, self.form.weights.index("c"), axes, self.k_groups))
        if len(list(argument.uses)) != 1 or len(list(weights.uses)) != 1:
            return SECOND_USE
        shape = [weights.type.shape[axis] for axis in axes]
        k_groups = self.k_groups
        axis = self.order.index("c")
        # the channels are replaced by their K groups
        channels = shape[axis]
        per_channels = per_k_group(weights)
        shape[axis] = k_groups
        weights.set_type(ir.RankedTensorType.get(shape, k_group_type()))
        type_ = ir.MemRefType.get(shape, k_group_type())
        number = argument.arg_number
        if self.tiles:  # a row of channels of each filter, padded with zeros
            set_packed_as(function, number, type_, PAIR * k_groups, axes)
        else:
            depth = per_channels
            set_packed_as(
                function, number, type_, shape[-1], axes, interleave=depth, depth=depth, run=channels
            )
        return weights

    def _reordered(self, function: Op) -> Value | Refusal:
        """Returns the reordered weights: those of a retyped argument, or a transpose; else why not."""
        weights = self.op.operands[1]
        axes = list(map(self.form.weights.index, self.order))
        shape = [weights.type.shape[axis] for axis in axes]
        element = weights.type.element_type
        if axes == sorted(axes):
            return weights
        source = op_of(weights, TO_TENSOR)
        argument = None if source is None else source.operands[0]
        if argument is None or not is_weight(function, argument):
            type_ = ir.RankedTensorType.get(shape, element)
            dims = dimensions(len(axes))
            read = [dims[axes.index(number)] for number in range(len(axes))]
            start = value("tensor.empty", type_)
            reordered = generic(
                [weights],
                start,
                (read, dims),
                [PARALLEL] * len(dims),
                lambda element_read, _before: element_read,
            )
            return reordered.results[0]
        if len(list(argument.uses)) != 1 or len(list(weights.uses)) != 1:
            return SECOND_USE
        weights.set_type(ir.RankedTensorType.get(shape, element))
        set_packed_as(function, argument.arg_number, ir.MemRefType.get(shape, element), shape[-1], axes)
        return weights


def _padded_planes(padding: Op) -> list[int]:
    """Returns (dimension, first, end) of the planes between those of padding, for rows and for columns."""
    planes = []
    shape = padding.operands[0].type.shape
    for side in range(len(shape))[-2:]:
        first = padding.attributes["static_low"][side]
        planes += [side, first, first + shape[side]]
    return planes


def _around(image: Value, padding: Op) -> Value:
    """Creates a view of ``image`` with the shape of the padded one, for tiles to be parts of.

    Elements are not read through it: they would be others, and beyond the image.
    """
    type_ = ir.MemRefType(image.type)
    strides, offset = type_.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, strides)
    shape = padding.results[0].type.shape
    return reinterpreted(image, ir.MemRefType.get(shape, type_.element_type, layout))


def is_weight(function: Op, buffer: Value) -> bool:
    """Returns whether ``buffer`` is an argument of ``function`` with the attribute ``tuner.weight``.

    Such an argument has the same numbers at each call.
    """
    if not isinstance(buffer.owner, ir.Block) or buffer.owner.owner.operation != function:
        return False
    return WEIGHT in argument_attributes(function, ir.BlockArgument(buffer).arg_number)


def _multiply_add(left: Value, right: Value, before: Value) -> Value:
    type_ = left.type
    letter = "f" if isinstance(left.type, ir.FloatType) else "i"
    return value(f"arith.add{letter}", type_, before, value(f"arith.mul{letter}", type_, left, right))


def panels_of(tile: ConvolutionTile, function: Op) -> tuple[Value, tuple[Value, ...]]:
    """Returns (buffer, indices): the memory of a tile's weights, and indices that precede the tile's own.

    If the weights are a part of the filters of an argument ``tuner.weight`` that only this tile reads, this
    part becomes a panel, by a change of the argument's type; else the indices are ()::

        %w: memref<3x3x64x128xf32> {tuner.weight}, read as [3, 3, 64, 32]
      becomes
        %w: memref<4x3x3x64x32xf32> {tuner.packing = 32 : i64, tuner.weight}
    """
    weights = tile.buffer(WEIGHTS)
    view = op_of(weights, "memref.subview")
    if view is None or not _is_of_columns(view, function):
        return weights, ()
    argument = view.operands[0]
    width = weights.type.shape[-1]
    *rows, columns = ir.MemRefType(argument.type).shape
    panel = value("arith.divui", ir.IndexType.get(), view.operands[1], index(width))
    type_ = ir.MemRefType.get([columns // width, *rows, width], argument.type.element_type)
    number = ir.BlockArgument(argument).arg_number
    order = () if ORDER in argument_attributes(function, number) else range(len(type_.shape) - 1)
    set_packed_as(function, number, type_, width, order)
    return argument, (panel,)


def _is_of_columns(view: Op, function: Op) -> bool:
    """Returns whether a view is whole columns of an argument of weights that has no other use."""
    source = view.operands[0]
    part = view.results[0]
    if not is_weight(function, source) or len(list(source.uses)) != 1 or len(list(part.uses)) != 1:
        return False
    of_source = source.type.shape
    of_part = part.type.shape
    has_all_rows = len(of_source) == len(of_part) and of_source[:-1] == of_part[:-1]
    return has_all_rows and len(view.operands) == 2 and of_source[-1] % of_part[-1] == 0
