"""Channels of bf16 in pairs: the input and the weights of a convolution as K groups.

A K group is the 32 bits of two bf16 that are adjacent channels, as vdpbf16ps and AMX multiply them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.vector_lanes import load_lanes, store_lanes
from tuner.mlir.cpu_ops.vnni_packing import (
    DOT,
    HALF_BITS,
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

PAIR = 2  # channels of a K group
At = dict[int, Value]  # dimension -> index of a K group: of the channels, the number of the pair
Place = dict[int, Value]  # dimension -> index of an element of the buffer


def pair_count(size: int) -> int:
    """Returns how many pairs ``size`` channels of bf16 make, each 32 bits: size / 2, rounded up."""
    return -(-size // PAIR)


def is_narrow(tensor: Value) -> bool:
    """Returns whether the elements of a tensor or memref are bf16."""
    return bool(str(tensor.type.element_type) == "bf16")


def is_k_group(tensor: Value) -> bool:
    """Returns whether the elements of a tensor or memref are i32, which here stands for two bf16 channels."""
    return bool(tensor.type.element_type == k_group_type())


def as_tensor(memory: Value) -> Value:
    """Creates the tensor with the contents of a memref; nothing may write to the memref afterwards."""
    type_ = ir.RankedTensorType.get(memory.type.shape, memory.type.element_type)
    return value("bufferization.to_tensor", type_, memory, restrict=ir.UnitAttr.get())


def add_products(left: Value, right: Value, before: Value) -> Value:
    """Creates ``before``, an f32, plus both products of the bf16 pairs ``left`` and ``right``.

    A pair, two adjacent channels, is the bits of an i32. Returns the sum.
    """
    for half in (first_half, second_half):
        numbers = [as_floats(half(k_group)) for k_group in (left, right)]
        product = value("arith.mulf", before.type, *numbers)
        before = value("arith.addf", before.type, before, product)
    return before


def dot_product(left: Value, right: Value, before: Value) -> Value:
    """Creates ``before`` plus, per lane, both products of the bf16 pairs in ``left`` and ``right``.

    By one vdpbf16ps. ``before``: a vector of 16 f32; ``left``, ``right``: vectors of 16 i32, each the bits of
    a pair. Returns the sums.
    """
    type_ = ir.VectorType.get([PAIR * K_GROUPS], ir.BF16Type.get())
    return value(
        DOT, before.type, before, *(value("vector.bitcast", type_, k_groups) for k_groups in (left, right))
    )


def k_groups_in_steps(size: int) -> int:
    """Returns how many K groups (pairs of channels) ``size`` >= 1 channels take, padded to equal steps.

    It uses the fewest steps of at most 16 K groups: 70 channels are 35 K groups, so 3 steps of 12, 36 in all.
    """
    steps = -(-pair_count(size) // K_GROUPS)
    return steps * -(-pair_count(size) // steps)


def channel_k_groups(source: Value, channels: int, order: Sequence[int] = (), count: int = 0) -> Value:
    """Creates the K groups of a memref of bf16 of static sizes, in memory of their own; returns that memref.

    A K group is the 32 bits of a pair of channels, the first one in the lower half, an odd last one paired
    with zeros, as one lane of a dot product takes them::

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
        channels: the dimension whose elements are paired.
        order: the dimension of ``source`` for each dimension of the result; (): as they are.
        count: the K groups of the channels, those after the last pair zeros; 0: as many as there are pairs.
    """
    every = tuple(order or range(ir.MemRefType(source.type).rank))
    shape = [source.type.shape[dimension] for dimension in every]
    shape[every.index(channels)] = count or pair_count(source.type.shape[channels])
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
            self._over(self.order[:-1], {}, self._along_last(self._pair))
        else:
            self._over(self.order, {}, lambda at: self._pair(at, K_GROUPS, is_scalar=True))

    def clear(self) -> None:
        end = self.memory.type.shape[self.order.index(self.channels)]
        for number in range(pair_count(self._size(self.channels)), end):
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
        """Creates loops over dimensions; an odd last channel is handled after the loop over pairs."""
        if not dimensions:
            body(at)
            return
        dimension, *inner = dimensions
        pairs, rest = divmod(self._size(dimension), PAIR if dimension == self.channels else 1)
        if pairs:
            for_each(0, pairs, lambda number: self._over(inner, at | {dimension: number}, body))
        if rest:
            self._over(inner, at | {dimension: index(pairs)}, body)

    def _in_registers(self, size: int, body: Callable[[Value, int], None]) -> None:
        whole, rest = divmod(size, K_GROUPS)
        if whole:
            for_each(0, whole, lambda number: body(times(number, K_GROUPS), K_GROUPS))
        if rest:
            body(index(whole * K_GROUPS), rest)

    def _copy_row(self, at: At) -> None:
        type_ = ir.VectorType.get([PAIR * K_GROUPS], ir.BF16Type.get())

        def copy(first: Value, elements: int) -> None:
            here = at | {self.channels: times(first, PAIR)}
            pairs = load_lanes(self.source, self._element_indices(here), type_, elements)
            k_groups = value("vector.bitcast", k_groups_type(), pairs)
            self._store(k_groups, at | {self.channels: first}, pair_count(elements))

        whole, rest = divmod(self._size(self.channels), PAIR * K_GROUPS)
        if whole:
            for_each(0, whole, lambda number: copy(times(number, K_GROUPS), PAIR * K_GROUPS))
        if rest:  # up to 31 elements: 31 are 16 pairs, as many as a whole register has
            copy(index(whole * K_GROUPS), rest)

    def _pair(self, at: At, count: int, *, is_scalar: bool = False) -> None:
        """Creates the K groups of one pair of channels at ``count`` adjacent positions, and stores them."""
        first = times(at[self.channels], PAIR)
        low = self._bits(at | {self.channels: first}, count, is_scalar=is_scalar)
        if constant_of(at[self.channels]) is not None:  # an odd last channel
            self._store(low, at, count)
            return
        high = self._bits(at | {self.channels: plus(first, 1)}, count, is_scalar=is_scalar)
        shift = splat(high.type, HALF_BITS)
        self._store(value("arith.ori", low.type, low, value("arith.shli", high.type, high, shift)), at, count)

    def _bits(self, here: Place, count: int, *, is_scalar: bool) -> Value:
        """Creates the load of elements, and their bits as K groups whose upper halves are 0."""
        half = ir.IntegerType.get_signless(HALF_BITS)
        indices = self._element_indices(here)
        if is_scalar:
            number = value("memref.load", ir.BF16Type.get(), self.source, *indices)
            return value("arith.extui", k_group_type(), value("arith.bitcast", half, number))
        numbers = load_lanes(self.source, indices, ir.VectorType.get([K_GROUPS], ir.BF16Type.get()), count)
        bits = value("arith.bitcast", ir.VectorType.get([K_GROUPS], half), numbers)
        return value("arith.extui", k_groups_type(), bits)

    def _element_indices(self, here: Place) -> list[Value]:
        return [here.get(dimension, index(0)) for dimension in range(len(self.order))]

    def _store(self, k_groups: Value, at: At, count: int) -> None:
        indices = [at[dimension] for dimension in self.order]
        if isinstance(k_groups.type, ir.VectorType):
            store_lanes(k_groups, self.memory, indices, count)
        else:
            create("memref.store", [], [k_groups, self.memory, *indices])
