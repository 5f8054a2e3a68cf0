"""Proves that a launch stores every element of a buffer, so that none of the buffer's old contents remain.

Takes an outlined kernel and its launch of constant sizes. Two forms are proved: stores that every thread
executes once, at indices that are linear in its ids and cover the whole buffer (a mixed radix), and the form
that ``launch_parallel_loops`` gives a loop: a guarded linear index, delinearized by remainders and quotients.
Any other form counts as not proved.

    %i = gpu.block_id x        // of 4
    %j = gpu.thread_id x       // of 8
    memref.store %v, %a[%i, %j] : memref<4x8xf32>
"""

import math
from collections.abc import Sequence

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.definitions import constant_of, op_of
from tuner.mlir.rewrite.gpu_indices import axis_of
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, BLOCK, GRID, operands
from tuner.mlir.rewrite.walking import walk

LESS = (2, 6)  # predicates of arith.cmpi: slt, ult
Linear = dict[str, int]  # a linear form: block or thread id, or "" for the constant term -> its coefficient


def overwrites(launch: Op, kernel: Op, number: int) -> bool:
    """Returns whether a launch is proved to store every element of its memref argument ``number``.

    ``launch`` is a ``gpu.launch_func``, ``kernel`` its ``gpu.func``; arguments count from 0. False: not
    proved, as for a memref of dynamic shape or a kernel of several blocks. Loads are not looked at.
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
        self._given = dict(zip(self._body.arguments, given, strict=False))
        self._sizes = {
            name: [constant_of(operands(launch, place)[0]) for place in range(part.start, part.stop)]
            for name, part in (("block_id", GRID), ("thread_id", BLOCK))
        }

    def covers(self, store: Op, shape: list[int]) -> bool:
        """Returns whether all threads together execute a store at every index of a shape."""
        indices = list(store.operands)[2:]
        if store.block == self._body:
            return self._cover_all([self._linear(each) for each in indices], shape)
        guard = store.parent.operation
        if guard.name != "scf.if" or guard.block != self._body or store.block != guard.regions[0].blocks[0]:
            return False
        return self._covers_guarded(guard.operands[0], indices, shape)

    def _covers_guarded(self, condition: Value, indices: list[Value], shape: list[int]) -> bool:
        compare = op_of(condition, "arith.cmpi")
        if compare is None or ir.IntegerAttr(compare.attributes["predicate"]).value not in LESS:
            return False
        number, total = compare.operands
        count = self._number(total)
        run = self._run(self._linear(number))
        if count is None or run is None or run < count or count != math.prod(shape):
            return False
        return all(
            self._is_digit(each, number, size, math.prod(shape[axis + 1 :]), is_first=axis == 0)
            for axis, (each, size) in enumerate(zip(indices, shape, strict=True))
        )

    def _is_digit(self, each: Value, number: Value, size: int, below: int, *, is_first: bool) -> bool:
        """Returns whether an index is ``number / below % size``; the first index needs no remainder."""
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
        runs = [self._run(each) for each in known]
        return len(known) == len(shape) and len(set(ids)) == len(ids) and runs == shape

    def _run(self, linear: Linear | None) -> int | None:
        """Returns n if a linear form takes every value from 0 to n - 1, else None."""
        if linear is None or linear.get("", 0):
            return None
        run = 1
        for name, factor in sorted(linear.items(), key=lambda term: term[1]):
            size = self._size(name) if name else 1
            if size is None or (name and factor != run):
                return None
            run *= size
        return run

    def _size(self, name: str) -> int | None:
        kind, axis = name.split(".")
        return self._sizes[kind][int(axis)]

    def _number(self, each: Value) -> int | None:
        """Returns the integer of a constant, or of an argument that is constant in the launch, else None."""
        return constant_of(self._given.get(each, each))

    def _linear(self, each: Value) -> Linear | None:
        """Returns a value as a linear form of block and thread ids; None for a value that is not linear."""
        number = self._number(each)
        if number is not None:
            return {"": number}
        if isinstance(each.owner, ir.Block):
            return None
        op = each.owner.operation
        if op.name in ("gpu.block_id", "gpu.thread_id"):
            return {f"{op.name.removeprefix('gpu.')}.{axis_of(op)}": 1}
        if op.name in ("gpu.block_dim", "gpu.grid_dim"):
            kind = "thread_id" if op.name == "gpu.block_dim" else "block_id"
            size = self._sizes[kind][axis_of(op)]
            return None if size is None else {"": size}
        if op.name not in ("arith.addi", "arith.muli"):
            return None
        left, right = (self._linear(operand) for operand in op.operands)
        if left is None or right is None:
            return None
        return _sum(left, right) if op.name == "arith.addi" else _product(left, right)


def _sum(left: Linear, right: Linear) -> Linear:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}


def _product(left: Linear, right: Linear) -> Linear | None:
    if set(left) != {""}:
        left, right = right, left
    if set(left) != {""}:
        return None
    return {name: factor * left[""] for name, factor in right.items()}
