"""Channels in groups of 32 bits: the input and the weights of a convolution as K groups.

A K group is two bf16 or four i8 that are adjacent channels, as one sum of a dot product takes them
(``tuner.mlir.cpu_ops.instructions``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops.vector_lanes import load_lanes, store_lanes
from tuner.mlir.cpu_ops.vnni_packing import (
    K_GROUP_BITS,
    K_GROUPS,
    allocated,
    as_floats,
    first_half,
    k_group_type,
    k_groups_type,
    second_half,
)
from tuner.mlir.ir.building import create, for_each, index, plus, splat, times, value, zero
from tuner.mlir.ir.reading import constant_of

BYTE_BITS = 8
PER_K_GROUP = {"bf16": 2, "i8": 4}  # channels of a K group by element type
PAIR = PER_K_GROUP["bf16"]
# Attribute of a convolution of K groups: they are of four i8. Without it they are of two bf16.
OF_BYTES = "of_bytes"
At = dict[int, Value]  # dimension -> index of a K group: of the channels, its number
Place = dict[int, Value]  # dimension -> index of an element of the buffer


def k_group_count(size: int, per_k_group: int = PAIR) -> int:
    """Returns how many K groups, each 32 bits, ``size`` channels make: size / ``per_k_group``, rounded up."""
    return -(-size // per_k_group)


def per_k_group(tensor: Value) -> int:
    """Returns how many channels of a tensor or memref make a K group, 32 bits; 0 for other element types."""
    return PER_K_GROUP.get(str(tensor.type.element_type), 0)


def is_k_group(tensor: Value) -> bool:
    """Returns whether the elements of a tensor or memref are i32, which here stands for a K group."""
    return bool(tensor.type.element_type == k_group_type())


def as_tensor(memory: Value) -> Value:
    """Creates the tensor with the contents of a memref; nothing may write to the memref afterwards."""
    type_ = ir.RankedTensorType.get(memory.type.shape, memory.type.element_type)
    return value("bufferization.to_tensor", type_, memory, restrict=ir.UnitAttr.get())


def add_products(left: Value, right: Value, before: Value) -> Value:
    """Creates ``before``, an f32 or i32, plus the products of the channels of two K groups.

    A K group is the bits of an i32: two bf16 that are summed in f32, or four i8 that are summed in i32.
    """
    if not isinstance(before.type, ir.FloatType):
        for shift in range(K_GROUP_BITS - BYTE_BITS, -1, -BYTE_BITS):
            numbers = [_byte(k_group, shift) for k_group in (left, right)]
            before = value("arith.addi", before.type, before, value("arith.muli", before.type, *numbers))
        return before
    for half in (first_half, second_half):
        numbers = [as_floats(half(k_group)) for k_group in (left, right)]
        product = value("arith.mulf", before.type, *numbers)
        before = value("arith.addf", before.type, before, product)
    return before


def _byte(k_group: Value, shift: int) -> Value:
    """Creates a signed byte of a K group as an i32; ``shift``: how many bits are above it."""
    type_ = k_group.type
    highest = value("arith.shli", type_, k_group, splat(type_, shift))
    return value("arith.shrsi", type_, highest, splat(type_, K_GROUP_BITS - BYTE_BITS))


def k_groups_in_steps(size: int) -> int:
    """Returns how many K groups (pairs of channels) ``size`` >= 1 channels take, padded to equal steps.

    It uses the fewest steps of at most 16 K groups: 70 channels are 35 K groups, so 3 steps of 12, 36 in all.
    """
    steps = -(-k_group_count(size) // K_GROUPS)
    return steps * -(-k_group_count(size) // steps)


def channel_k_groups(source: Value, channels: int, order: Sequence[int] = (), count: int = 0) -> Value:
    """Creates the K groups of a memref of bf16 or i8 of static sizes, in memory of their own; returns it.

    A K group is the 32 bits of two channels of bf16, or four of i8, the first one in the lowest bits, the
    last ones filled up with zeros, as one lane of a dot product takes them. Of bf16::

        %x: memref<1x3x4x20xbf16>, dimension 1
      becomes, for each pair and row of pixels, 16 pixels at a time
        %k_groups = memref.alloc() : memref<1x2x4x20xi32>
        %even = vector.load %x[%n, %channel, %row, %first] : ..., vector<16xbf16>
        %odd = vector.load %x[%n, %next, %row, %first] : ..., vector<16xbf16>
        %low, %high = ...       // the bits of %even as vector<16xi32>, those of %odd shifted left by 16
        %pairs = arith.ori %low, %high : vector<16xi32>
        vector.store %pairs, %k_groups[%n, %pair, %row, %first] : memref<1x2x4x20xi32>, vector<16xi32>

    Where the elements along the last dimension of the result are not adjacent, K groups are made one by one.

    Args:
        channels: the dimension whose elements make K groups.
        order: the dimension of ``source`` for each dimension of the result; (): as they are.
        count: the K groups of the channels, those after the last channel zeros; 0: as few as possible.
    """
    every = tuple(order or range(ir.MemRefType(source.type).rank))
    shape = [source.type.shape[dimension] for dimension in every]
    shape[every.index(channels)] = count or k_group_count(source.type.shape[channels], per_k_group(source))
    k_groups = _KGroups(source, channels, every, allocated(shape, k_group_type()))
    k_groups.build()
    k_groups.clear()
    return k_groups.memory


@dataclass(frozen=True, eq=False)
class _KGroups:
    """A buffer and the memory of its K groups; its methods create code at the current insertion point."""

    source: Value
    channels: int
    order: tuple[int, ...]
    memory: Value

    def build(self) -> None:
        if self._last == self.channels and self._is_adjacent:
            self._over(self.order[:-1], {}, self._copy_row)
        elif self._is_adjacent:
            self._over(self.order[:-1], {}, self._along_last(self._k_group))
        else:
            self._over(self.order, {}, lambda at: self._k_group(at, K_GROUPS, is_scalar=True))

    @property
    def _per(self) -> int:
        return per_k_group(self.source)

    def clear(self) -> None:
        end = self.memory.type.shape[self.order.index(self.channels)]
        for number in range(k_group_count(self._size(self.channels), self._per), end):
            at = {self.channels: index(number)}
            if self._last == self.channels:
                others = [dimension for dimension in self.order if dimension != self.channels]
                self._over(others, at, lambda here: self._store(zero(k_group_type()), here, 1))
                continue
            rows = [dimension for dimension in self.order[:-1] if dimension != self.channels]
            self._over(
                rows,
                at,
                self._along_last(lambda here, count: self._store(zero(k_groups_type()), here, count)),
            )

    def _along_last(self, body: Callable[[At, int], None]) -> Callable[[At], None]:
        size = self._size(self._last)
        last = self._last
        return lambda at: self._in_registers(size, lambda first, count: body(at | {last: first}, count))

    @property
    def _last(self) -> int:
        return self.order[-1]

    @property
    def _is_adjacent(self) -> bool:
        type_ = ir.MemRefType(self.source.type)
        return bool(self._last == type_.rank - 1 and type_.get_strides_and_offset()[0][-1] == 1)

    def _size(self, dimension: int) -> int:
        return int(self.source.type.shape[dimension])

    def _over(self, dimensions: Sequence[int], at: At, body: Callable[[At], None]) -> None:
        """Creates loops over dimensions; the last channels are handled after the loop over whole K groups."""
        if not dimensions:
            body(at)
            return
        dimension, *inner = dimensions
        whole, rest = divmod(self._size(dimension), self._per if dimension == self.channels else 1)
        if whole:
            for_each(0, whole, lambda number: self._over(inner, at | {dimension: number}, body))
        if rest:
            self._over(inner, at | {dimension: index(whole)}, body)

    def _in_registers(self, size: int, body: Callable[[Value, int], None]) -> None:
        whole, rest = divmod(size, K_GROUPS)
        if whole:
            for_each(0, whole, lambda number: body(times(number, K_GROUPS), K_GROUPS))
        if rest:
            body(index(whole * K_GROUPS), rest)

    def _copy_row(self, at: At) -> None:
        type_ = ir.VectorType.get([self._per * K_GROUPS], self.source.type.element_type)

        def copy(first: Value, elements: int) -> None:
            here = at | {self.channels: times(first, self._per)}
            channels = load_lanes(self.source, self._element_indices(here), type_, elements)
            k_groups = value("vector.bitcast", k_groups_type(), channels)
            self._store(k_groups, at | {self.channels: first}, k_group_count(elements, self._per))

        whole, rest = divmod(self._size(self.channels), self._per * K_GROUPS)
        if whole:
            for_each(0, whole, lambda number: copy(times(number, K_GROUPS), self._per * K_GROUPS))
        if rest:  # of bf16 up to 31 elements: 31 are 16 pairs, as many as a whole register has
            copy(index(whole * K_GROUPS), rest)

    def _k_group(self, at: At, count: int, *, is_scalar: bool = False) -> None:
        """Creates one K group of channels at ``count`` adjacent positions, and its store."""
        first = times(at[self.channels], self._per)
        bits = self._bits(at | {self.channels: first}, count, is_scalar=is_scalar)
        is_last = constant_of(at[self.channels]) is not None  # the last channels, fewer than a K group
        channels = self._size(self.channels) % self._per if is_last else self._per
        for channel in range(1, channels):
            here = at | {self.channels: plus(first, channel)}
            high = self._bits(here, count, is_scalar=is_scalar)
            shift = splat(high.type, channel * K_GROUP_BITS // self._per)
            bits = value("arith.ori", bits.type, bits, value("arith.shli", high.type, high, shift))
        self._store(bits, at, count)

    def _bits(self, here: Place, count: int, *, is_scalar: bool) -> Value:
        """Creates the load of elements, and their bits as K groups of which they are the lowest."""
        element = self.source.type.element_type
        half = ir.IntegerType.get_signless(K_GROUP_BITS // self._per)
        indices = self._element_indices(here)
        if is_scalar:
            number = value("memref.load", element, self.source, *indices)
            return value("arith.extui", k_group_type(), _as_bits(number, half))
        numbers = load_lanes(self.source, indices, ir.VectorType.get([K_GROUPS], element), count)
        return value("arith.extui", k_groups_type(), _as_bits(numbers, ir.VectorType.get([K_GROUPS], half)))

    def _element_indices(self, here: Place) -> list[Value]:
        return [here.get(dimension, index(0)) for dimension in range(len(self.order))]

    def _store(self, k_groups: Value, at: At, count: int) -> None:
        indices = [at[dimension] for dimension in self.order]
        if isinstance(k_groups.type, ir.VectorType):
            store_lanes(k_groups, self.memory, indices, count)
        else:
            create("memref.store", [], [k_groups, self.memory, *indices])


def _as_bits(numbers: Value, type_: Type) -> Value:
    if numbers.type == type_:
        return numbers
    return value("arith.bitcast", type_, numbers)
