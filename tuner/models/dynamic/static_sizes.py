"""Makes a function of a dynamic size n one of static sizes, in place, for one value of n.

Shapes become static, sizes that operations take become attributes. What the function computes from n itself,
such as the divisor of a mean, becomes an argument, as does the mask of what it reduces over n: the caller
gives both for the n of each call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuner.core.dynamic_sizes import LinearSize, Sizes, shape_at
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    EMPTY,
    EXPAND,
    GENERIC,
    INSERT,
    PAD,
    SLICE,
    body_of,
    defining,
    is_scalar_op,
    is_tensor,
)
from tuner.mlir.ir import building
from tuner.mlir.ir.building import recreated, value
from tuner.mlir.ir.reading import ops_in, types_of
from tuner.models.dynamic.loop_rules import MaskedLoops
from tuner.models.dynamic.masks import add_masks, masked_along
from tuner.models.dynamic.size_analysis import DYNAMIC_SIZE, KnownSizes, reads_size, refusal
from tuner.models.dynamic.size_numbers import pass_numbers
from tuner.models.dynamic.tensor_rules import (
    FROM_ELEMENTS,
    RESHAPE,
    dropped_dimensions,
    is_at_n,
    pads_after,
    reshape_groups,
    segments,
)
from tuner.models.fusions.generics import collapse, empty, expand
from tuner.models.run.sized_types import MASK, NUMBER, SizeArgument

SPLAT = "tensor.splat"
# Operation -> its attributes of sizes and offsets, in the order of the operands that are dynamic ones
MIXED: Mapping[str, tuple[str, ...]] = {
    EMPTY: (),
    EXPAND: ("static_output_shape",),
    INSERT: ("static_offsets", "static_sizes", "static_strides"),
    PAD: ("static_low", "static_high"),
    SLICE: ("static_offsets", "static_sizes", "static_strides"),
    SPLAT: (),
}
TENSORS = {EMPTY: 0, EXPAND: 1, INSERT: 2, PAD: 1, SLICE: 1, SPLAT: 1}  # operands before those of sizes


@dataclass(frozen=True, eq=False)
class StaticFunction:
    """A function that becomes one of static sizes, for n = ``size``."""

    function: Op
    known: KnownSizes
    size: Sizes
    arguments: dict[SizeArgument, Value] = field(default_factory=dict)

    def make(self, masked: Sequence[MaskedLoops]) -> tuple[SizeArgument, ...]:
        """Gives the function static sizes, in place; returns the arguments that it adds at the end.

        Raises UsageError where an operation other than linalg's reads a number that depends on n.
        """
        block = self.function.regions[0].blocks[0]
        # before anything changes; a list, as the hash of an operation depends on its operands
        pads = [(op, self._pads_after(op)) for op in ops_in(block)]
        for argument in block.arguments:
            self._make_static(argument)
        for op, padded in pads:
            for dimension, size in padded:
                self._mask_padded(op, dimension, size)
            self._make_static_op(op)
        for loops in masked:
            add_masks(loops, self._mask, self.known)
        for op in ops_in(block):
            if op.name == GENERIC:
                pass_numbers(op, self.known, self._number)
        self._require_no_size(block)
        self._set_type(block)
        return tuple(self.arguments)

    def _pads_after(self, op: Op) -> list[tuple[int, LinearSize]]:
        if op.name != PAD:
            return []
        return pads_after(op, self.known)

    def _make_static_op(self, op: Op) -> None:
        if op.name == SLICE and is_at_n(op, self.known):
            self._replace(op, self._elements_at(op))
        elif op.name == RESHAPE and self._is_padded(op):
            sizes = op.operands[1].owner.operation
            self._replace(op, self._reshaped(op))
            if not list(sizes.results[0].uses):
                sizes.erase()
        elif self._is_number_of_n(op):
            (number,) = op.operands
            self._replace(op, self._looped(op, (), lambda _: number))
        else:
            self._with_sizes(op)

    def _make_static(self, tensor: Value) -> None:
        shape = list(shape_at(self.known.shapes[tensor], self.size))
        tensor.set_type(ir.RankedTensorType.get(shape, tensor.type.element_type, tensor.type.encoding))

    def _with_sizes(self, op: Op) -> None:
        """Gives the results of an operation their static types, and its sizes as attributes."""
        results = [result for result in op.results if result in self.known.shapes]
        if op.name not in MIXED:
            for result in results:
                self._make_static(result)
            return
        operands = list(op.operands)
        kept = operands[: TENSORS[op.name]]
        if len(kept) == len(operands):
            self._make_static(op.results[0])
            return
        attributes = self._mixed(op)
        if "operandSegmentSizes" in op.attributes:
            sizes = [1] * len(kept) + [0] * len(MIXED[op.name])
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
        old = op.results[0]
        shape = list(shape_at(self.known.shapes[old], self.size))
        type_ = ir.RankedTensorType.get(shape, old.type.element_type)
        with op.location, ir.InsertionPoint(op):
            new = recreated(op, [type_], kept, **attributes)
        for region, target in zip(op.regions, new.regions, strict=True):
            region.blocks[0].append_to(target)
        self._replace(op, new.results[0])

    def _replace(self, op: Op, new: Value) -> None:
        """Replaces the result of an operation by a tensor of static sizes, and erases the operation."""
        old = op.results[0]
        self.known.shapes[new] = self.known.shapes[old]
        if old in self.known.zero_padded:
            self.known.zero_padded.add(new)
        old.replace_all_uses_with(new)
        op.erase()

    def _elements_at(self, op: Op) -> Value:
        """Creates a loop that reads the elements of a slice which begins at a place that depends on n.

          %r = tensor.extract_slice %x[%n_less_1, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
        becomes
          %r = linalg.generic outs(%empty : tensor<4xf32>) {
            %j = linalg.index 0
            %element = tensor.extract %x[%n_less_1, %j]
        """
        source = op.operands[0]
        dropped = dropped_dimensions(op)
        shape = shape_at(self.known.shapes[op.results[0]], self.size)
        operands = iter(segments(op)[1])
        places = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
        steps = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))

        def body(_: Value) -> Value:
            loops = iter(range(len(shape)))
            indices = []
            for dimension, (place, step) in enumerate(zip(places, steps, strict=True)):
                position = next(operands) if place == DYNAMIC_SIZE else building.index(place)
                if dimension not in dropped:
                    loop = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), next(loops))
                    index = building.times(value("linalg.index", ir.IndexType.get(), dim=loop), step)
                    position = building.total(position, index)
                indices.append(position)
            return value("tensor.extract", source.type.element_type, source, *indices)

        return self._looped(op, shape, body)

    def _is_padded(self, op: Op) -> bool:
        return any(map(self.known.is_dynamic, filter(is_tensor, (*op.operands, *op.results))))

    def _is_number_of_n(self, op: Op) -> bool:
        """Returns whether an operation makes a tensor of rank 0 of a number that depends on n."""
        is_number = op.name == FROM_ELEMENTS and not op.results[0].type.rank
        return is_number and reads_size(op.operands[0], self.known)

    def _looped(self, op: Op, shape: Sequence[int], body: building.Body) -> Value:
        """Creates, before an operation, a generic that reads no tensor; returns its result."""
        loops = building.dimensions(len(shape))
        with op.location, ir.InsertionPoint(op):
            start = empty(shape, op.results[0].type.element_type)
            return building.generic([], start, [loops], [building.PARALLEL] * len(shape), body).results[0]

    def _reshaped(self, op: Op) -> Value:
        """Creates a ``tensor.collapse_shape`` and a ``tensor.expand_shape`` for a ``tensor.reshape``."""
        source = op.operands[0]
        shape = self.known.shapes[op.results[0]]
        groups = reshape_groups(op, self.known.shapes[source], shape)
        with op.location, ir.InsertionPoint(op):
            if any(len(read) > 1 for read, _ in groups):
                source = collapse(source, [read for read, _ in groups])
            if any(len(made) > 1 for _, made in groups):
                source = expand(source, [made for _, made in groups], shape_at(shape, self.size))
        return source

    def _mixed(self, op: Op) -> dict[str, ir.Attribute]:
        """Returns the attributes of an operation's sizes and offsets, as numbers."""
        groups = [list(op.operands)[1:]]
        if "operandSegmentSizes" in op.attributes:
            groups = segments(op)[TENSORS[op.name] :]
        attributes = {}
        for name, group in zip(MIXED[op.name], groups, strict=False):
            numbers = shape_at(self.known.mixed(op, name, group), self.size)
            attributes[name] = ir.DenseI64ArrayAttr.get(list(numbers))
        return attributes

    def _mask_padded(self, op: Op, dimension: int, size: LinearSize) -> None:
        """Makes the source of a ``tensor.pad`` hold the pad's number wherever the source is padding of n.

        ``dimension``: the padded dimension that depends on n; ``size``: its size, as a function of n.
        """
        number = body_of(op)[-1].operands[0]
        made = defining(number)
        if made is None and number.owner == op.regions[0].blocks[0]:
            raise refusal(op, "it pads with the numbers of its indices, after a size that depends on n")

        def padding(_type: ir.Type) -> Value:
            if made is not None and made.name == "arith.constant":
                return value("arith.constant", number.type, value=made.attributes["value"])
            return number

        op.operands[0] = masked_along(op, op.operands[0], dimension, self._mask(size), padding)

    def _argument(self, added: SizeArgument) -> Value:
        if added not in self.arguments:
            element = ir.Type.parse(added.element)
            type_ = ir.RankedTensorType.get(list(added.shape), element)
            block = self.function.regions[0].blocks[0]
            self.arguments[added] = block.add_argument(type_, self.function.location)
        return self.arguments[added]

    def _number(self, size: LinearSize, element: str) -> Value:
        return self._argument(SizeArgument(NUMBER, size, (), element))

    def _mask(self, size: LinearSize) -> Value:
        return self._argument(SizeArgument(MASK, size, (size.at(self.size),), "f32"))

    def _require_no_size(self, block: ir.Block) -> None:
        for op in ops_in(block):
            if is_scalar_op(op) and not op.name.startswith("tensor.extract"):
                continue
            if any(reads_size(operand, self.known) for operand in op.operands):
                raise refusal(op, "a number that depends on the size n: only bodies of linalg may read it")

    def _set_type(self, block: ir.Block) -> None:
        returned = ops_in(block)[-1].operands
        type_ = ir.FunctionType.get(types_of(block.arguments), types_of(returned))
        self.function.attributes["function_type"] = ir.TypeAttr.get(type_)
        for name in ("arg_attrs", "res_attrs"):
            if name in self.function.attributes:
                del self.function.attributes[name]
