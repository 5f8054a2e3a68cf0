"""Moves what depends on weights alone out of a program: ``@init`` computes it once, at compile time.

    func.func @main(%x, %w) {                      func.func @main(%x, %t)
      %t = linalg.transpose ins(%w) ...              %y = linalg.matmul ins(%x, %t) ...
      %y = linalg.matmul ins(%x, %t) ...     ->    func.func @init(%w) -> ... {
                                                     %t = linalg.transpose ins(%w) ...
                                                     return %t

A broadcast is not hoisted: torch-mlir repeats a bias to the whole result of a matmul, which a fusion reads
faster as it was. Masks and positions, too, are larger than their sources; they are hoisted up to a limit.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from operator import attrgetter
from typing import Any

import numpy.typing as npt

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.memrefs import element_bytes
from tuner.mlir.ir.reading import copy_of, name_of, op_of, ops_in, types_of
from tuner.mlir.programs.entry import function_named
from tuner.mlir.programs.row_writes import SCATTER
from tuner.models.fusions.normal_forms import clean_up
from tuner.models.fusions.payload import TensorPayload, set_function_type
from tuner.models.fusions.views import transposition_of

Array = npt.NDArray[Any]
INIT = "init"
GENERATED_LIMIT = 1 << 22  # elements of a result that is computed, not only a broadcast
PART_OF_WEIGHTS = 4  # a mask of truths may have this part of the weights' bytes, where that is more,
MOST_TRUTHS = 1 << 24  # up to this limit: the positions that it is computed of have eight bytes each


def hoist(payload: TensorPayload, first_weight: int) -> tuple[str, tuple[int, ...]]:
    """Moves what depends only on weights, the arguments from ``first_weight`` on, out of a program, in place.

    Returns (text, kept). ``text`` is MLIR with a function ``init``, which takes all weights and returns the
    values that replace them; ``kept`` is then (). If nothing can be moved, ``text`` is "" and ``kept`` has
    the numbers, from 0, of the weights that the program still takes.
    """
    decided = _decided_by_weights(payload, first_weight)
    # views are not stored: the program keeps them, and applies them to what is stored
    taken = [
        value for value in decided if op_of(value, *operations.VIEWS) is None and _is_used(value, decided)
    ]
    weights = list(payload.block.arguments)[first_weight:]
    is_computed = any(operations.defining(value) is not None for value in taken)
    text = _init(payload, first_weight, taken) if is_computed else ""
    kept = [] if is_computed else list(map(weights.index, taken))
    for value in taken:
        value.replace_all_uses_with(payload.block.add_argument(value.type, ir.Location.unknown()))
    for op in reversed(payload.ops):
        if list(op.results) and not any(list(result.uses) for result in op.results):
            op.erase()
    for _ in weights:
        payload.block.erase_argument(first_weight)
    set_function_type(payload.function)
    if is_computed:
        clean_up(payload.module)
    return text, tuple(kept)


@dataclass(frozen=True)
class InitPart:
    """A part of the function ``init``: some of its results, and a module whose ``init`` computes only them.

    No two parts have an operation in common, except constants, empty and filled tensors.
    """

    text: str  # "": the result is the input, moved
    inputs: tuple[int, ...]  # which arguments of the whole ``init`` it takes
    results: tuple[int, ...]  # which results of the whole ``init`` it returns
    # without text: per dimension of the result the input's; (): the result is the input as it is
    order: tuple[int, ...] = ()

    def moved(self, array: Array) -> Array:
        """Returns the result of a part without text for its input: a view of the input."""
        if self.order:
            return array.transpose(self.order)
        return array


def init_parts(text: str) -> tuple[InitPart, ...]:
    """Splits the module of ``hoist`` into parts without common operations, in the current MLIR context.

    LLVM's time for one function grows with the square of its size: 100 transposes of 100 weights take 20 s.
    Parts of equal text can be compiled once.
    """
    module = ir.Module.parse(text)
    block = module.body.operations[0].operation.regions[0].blocks[0]
    *ops, end = ops_in(block)
    order = {op: index for index, op in enumerate(ops)}
    read_in: dict[Op, Op] = {}  # union-find: operation -> a later operation of the same part

    def last(op: Op) -> Op:
        while op in read_in:
            op = read_in[op]
        return op

    for op in ops:
        for value in operations.read_by(op):
            producer = operations.defining(value)
            # constants, empty and filled tensors do not join parts: each part has its own
            if producer is not None and not operations.is_free(value) and last(producer) != op:
                read_in[last(producer)] = op
    parts: dict[Op | int, list[int]] = {}
    for index, value in enumerate(end.operands):
        producer = operations.defining(value)
        parts.setdefault(index if producer is None else last(producer), []).append(index)
    values = list(end.operands)
    return tuple(_part(numbers, list(map(values.__getitem__, numbers)), order) for numbers in parts.values())


def _part(results: Sequence[int], values: Sequence[Value], order: Mapping[Op, int]) -> InitPart:
    needed = operations.needed_ops([op for value in values if (op := operations.defining(value)) is not None])
    read = {*values, *chain.from_iterable(map(operations.read_by, needed))}
    arguments = (value for value in read if operations.defining(value) is None)
    inputs = sorted(arguments, key=lambda value: ir.BlockArgument(value).arg_number)
    numbers = tuple(ir.BlockArgument(value).arg_number for value in inputs)
    if not needed:
        return InitPart("", numbers, tuple(results))
    transposition = _order_of(needed, values)
    if transposition is not None:
        return InitPart("", numbers, tuple(results), transposition)
    types = [", ".join(str(value.type) for value in group) for group in (inputs, values)]
    module = ir.Module.parse(f"func.func private @{INIT}({types[0]}) -> ({types[1]})")
    function = module.body.operations[0].operation
    block = function.regions[0].blocks.append(
        *types_of(inputs), arg_locs=[ir.Location.unknown()] * len(inputs)
    )
    del function.attributes["sym_visibility"]
    cloned: dict[Value, Value] = dict(zip(inputs, block.arguments, strict=True))
    with ir.InsertionPoint(block), ir.Location.unknown():
        for op in sorted(needed, key=lambda producer: order[producer]):
            operations.clone_into(op, cloned)
        ir.Operation.create("func.return", operands=[cloned[value] for value in values])
    return InitPart(str(module), numbers, tuple(results))


def _order_of(needed: Collection[Op], values: Sequence[Value]) -> tuple[int, ...] | None:
    """Returns per dimension of a value the input's dimension; None if ``needed`` does not only transpose."""
    op = operations.defining(values[0])
    if op is None or len(values) > 1 or operations.defining(op.operands[0]) is not None:
        return None
    others = map(attrgetter("name"), set(needed) - {op})
    if not {operations.EMPTY}.issuperset(others):
        return None
    return transposition_of(op)


def _decided_by_weights(payload: TensorPayload, first_weight: int) -> dict[Value, None]:
    decided = dict.fromkeys(list(payload.block.arguments)[first_weight:])
    most_truths = min(sum(map(_bytes_of, types_of(decided))) // PART_OF_WEIGHTS, MOST_TRUTHS)
    # is_free: a constant, an empty or filled tensor, or a number computed from such
    for op in payload.ops:
        if all(
            value in decided or operations.is_free(value) for value in operations.read_by(op)
        ) and _is_hoisted(op, decided, most_truths):
            decided |= dict.fromkeys(op.results)
    return decided


def _bytes_of(type_: ir.RankedTensorType) -> int:
    return int(prod(type_.shape)) * element_bytes(type_.element_type)


def _is_hoisted(op: Op, decided: dict[Value, None], most_truths: int) -> bool:
    if all(map(operations.is_free, op.results)) or not all(map(operations.is_tensor, op.results)):
        return False  # made anew at no cost, or not storable
    if op.name == SCATTER:
        return False  # no code of ``init`` asserts
    read = [operand for operand in operations.read_by(op) if operand in decided]
    size = max(prod(result.type.shape) for result in op.results)
    limit = GENERATED_LIMIT
    elements = map(attrgetter("element_type"), types_of(op.results))
    if set(map(type, elements)) == {ir.IntegerType}:
        limit = max(limit, most_truths)  # also for positions, which the mask is computed of
    if op.name == operations.GENERIC and size <= limit and len(operations.body_of(op)) > 1:
        return True  # masks, positions, and what is computed of them
    readers = chain.from_iterable(map(operations.users, op.results))
    if any(map(operations.is_quantized, readers)):
        return True  # scales of a quantized weight, repeated for its rows or groups
    if op.name == operations.CONCAT:
        return True  # of weights alone
    return bool(read) and size <= max(prod(operand.type.shape) for operand in read)


def _is_used(value: Value, decided: dict[Value, None]) -> bool:
    """Returns whether what stays in the program reads a value, directly or through views of the value."""
    for user in operations.users(value):
        results = list(user.results)
        if not results or any(result not in decided for result in results):
            return True
        if user.name in operations.VIEWS and any(_is_used(result, decided) for result in results):
            return True
    return False


def _init(payload: TensorPayload, first_weight: int, taken: list[Value]) -> str:
    module = copy_of(payload.module)
    copied = TensorPayload(module, function_named(module, name_of(payload.function)))
    ops = copied.ops
    in_copy = dict(zip(payload.block.arguments, copied.block.arguments, strict=True))
    for original, copy in zip(payload.ops, ops, strict=True):
        in_copy |= dict(zip(original.results, copy.results, strict=True))
    values = [in_copy[value] for value in taken]
    copied.end.erase()
    with ir.InsertionPoint(copied.block), ir.Location.unknown():
        ir.Operation.create("func.return", operands=values)
    for op in reversed(ops):
        if not any(list(result.uses) for result in op.results):
            op.erase()
    for _ in range(first_weight):
        copied.block.erase_argument(0)
    set_function_type(copied.function)
    copied.function.attributes["sym_name"] = ir.StringAttr.get(INIT)
    clean_up(module)
    return str(module)
