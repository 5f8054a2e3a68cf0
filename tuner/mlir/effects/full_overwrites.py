"""Proofs that a launch of a kernel overwrites a whole buffer.

Proved for two forms, with launches of constant sizes. In the first every thread executes a store once, at
indices that are linear in its ids and cover the whole buffer, as the digits of a mixed-radix number do::

    %i = gpu.block_id x        // of 4
    %j = gpu.thread_id x       // of 8
    memref.store %v, %a[%i, %j] : memref<4x8xf32>

The second is what ``launch_parallel_loops`` makes: a linear index, compared with the number of elements and
taken apart into digits (delinearized).
"""

import math
from collections.abc import Sequence

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.reading import ARGUMENTS, BLOCK, GRID, axis_of, constant_of, op_of, operands, walk

CONSTANT = ""  # the term without an id
LESS = (2, 6)  # predicates of arith.cmpi: slt, ult
Linear = dict[str, int]  # a linear form: "thread_id.0" or the like, or CONSTANT -> its coefficient


def stores_every_element(launch: Op, kernel: Op, number: int) -> bool:
    """Returns whether a launch is proved to store every element of its memref argument ``number``.

    False: not proved, as for a dynamic shape or a kernel of several blocks. Loads are not looked at.
    """
    reading = _Reading(launch, kernel)
    blocks = list(kernel.regions[0].blocks)
    target = blocks[0].arguments[number]
    kind = target.type
    if len(blocks) != 1 or not isinstance(kind, ir.MemRefType) or not kind.has_static_shape:
        return False
    stores = [op for op in walk(kernel, "memref.store") if op.operands[1] == target]
    return any(reading.covers(store, list(kind.shape)) for store in stores)


class _Reading:
    """Values of a kernel's body, evaluated for one of its launches."""

    def __init__(self, launch: Op, kernel: Op) -> None:
        self._body = kernel.regions[0].blocks[0]
        given = operands(launch, ARGUMENTS)
        # block arguments for memory of the kernel's own (attributions) follow those that the launch gives
        self._given = dict(zip(self._body.arguments, given, strict=False))
        self._sizes = {
            name: [constant_of(operands(launch, place)[0]) for place in range(part.start, part.stop)]
            for name, part in (("block_id", GRID), ("thread_id", BLOCK))
        }

    def covers(self, store: Op, shape: list[int]) -> bool:
        indices = list(store.operands)[2:]
        if store.block == self._body:
            return self._cover_all([self._linear(each) for each in indices], shape)
        # `if number < total`: each thread writes the element whose indices are the digits of its linear
        # number
        guard = store.parent.operation
        if guard.name != "scf.if" or guard.block != self._body or store.block != guard.regions[0].blocks[0]:
            return False
        compare = op_of(guard.operands[0], "arith.cmpi")
        if compare is None or ir.IntegerAttr(compare.attributes["predicate"]).value not in LESS:
            return False
        number, total = compare.operands
        count = self._number(total)
        length = self._range_length(self._linear(number))
        if count is None or length is None or length < count or count != math.prod(shape):
            return False
        return all(
            self._is_mixed_radix_digit(each, number, size, math.prod(shape[axis + 1 :]), is_first=axis == 0)
            for axis, (each, size) in enumerate(zip(indices, shape, strict=True))
        )

    def _is_mixed_radix_digit(
        self, each: Value, number: Value, size: int, below: int, *, is_first: bool
    ) -> bool:
        """Returns whether an index is ``number / below % size``, ``below`` the product of the sizes after it.

        The first index needs no remainder: the guard keeps ``number`` below the product of all sizes.
        """
        if size == 1 and self._number(each) == 0:
            return True
        remainder = op_of(each, "arith.remui")
        if remainder is not None and self._number(remainder.operands[1]) == size:
            each = remainder.operands[0]
        elif not is_first:
            return False
        divisor = 1
        while each != number:
            quotient = op_of(each, "arith.divui")
            by = None if quotient is None else self._number(quotient.operands[1])
            if quotient is None or by is None:
                return False
            each, divisor = quotient.operands[0], divisor * by
        return divisor == below

    def _cover_all(self, indices: Sequence[Linear | None], shape: list[int]) -> bool:
        """Returns whether the indices cover their sizes, each linear in ids that no other index uses."""
        known = [each for each in indices if each is not None]
        ids = [name for each in known for name in each if name]
        lengths = [self._range_length(each) for each in known]
        return len(known) == len(shape) and len(set(ids)) == len(ids) and lengths == shape

    def _range_length(self, linear: Linear | None) -> int | None:
        """Returns n if a linear form takes every value from 0 to n - 1, else None.

        So it is where, by rising factors, each factor is the product of the sizes of the ids before it.
        """
        if linear is None or linear.get(CONSTANT, 0):
            return None
        length = 1
        for name, factor in sorted(linear.items(), key=lambda term: term[1]):
            size = self._size(name) if name else 1
            if size is None or (name and factor != length):
                return None
            length *= size
        return length

    def _size(self, name: str) -> int | None:
        kind, axis = name.split(".")
        return self._sizes[kind][int(axis)]

    def _number(self, each: Value) -> int | None:
        return constant_of(self._given.get(each, each))

    def _linear(self, each: Value) -> Linear | None:
        """Returns a value as a linear form of block and thread ids; None for a value that is not linear."""
        number = self._number(each)
        if number is not None:
            return {CONSTANT: number}
        if isinstance(each.owner, ir.Block):
            return None
        op = each.owner.operation
        if op.name in ("gpu.block_id", "gpu.thread_id"):
            return {f"{op.name.removeprefix('gpu.')}.{axis_of(op)}": 1}
        if op.name in ("gpu.block_dim", "gpu.grid_dim"):
            kind = "thread_id" if op.name == "gpu.block_dim" else "block_id"
            size = self._sizes[kind][axis_of(op)]
            return None if size is None else {CONSTANT: size}
        if op.name not in ("arith.addi", "arith.muli"):
            return None
        left, right = (self._linear(operand) for operand in op.operands)
        if left is None or right is None:
            return None
        if op.name == "arith.addi":
            return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
        return _product(left, right)


def _product(left: Linear, right: Linear) -> Linear | None:
    if set(left) != {CONSTANT}:
        left, right = right, left
    if set(left) != {CONSTANT}:
        return None
    return {name: factor * left[CONSTANT] for name, factor in right.items()}
