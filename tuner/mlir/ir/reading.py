"""Reads IR: walks, definitions and users of values, constants, symbols, source locations.

Some functions change IR on the way: they copy ops, set operands, declare functions or inline calls.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import NEW_VALUE
from tuner.mlir.bindings import Attribute, Block, Op, Value, WalkResult, ir, pattern_rewrites

ARGUMENT_ATTRIBUTES = "arg_attrs"  # of a func.func
POSITION = re.compile(r'"[^"]*":(\d+:\d+)')  # line and column, as MLIR prints a location


def op_of(value: Value, *names: str) -> Op | None:
    """Returns the op that defines a value if its name is one of ``names``, else None."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation  # an OpView may hide `name`
    if op is not None and op.name in names:
        return op
    return None


def attributes_of(op: Op) -> dict[str, Attribute]:
    """Returns an op's attributes as a dict from name to attribute, in the form that creates another op."""
    return {name: op.attributes[name] for name in op.attributes}


def ops_in(block: Block) -> list[Op]:
    """Returns the ops of a block in their order, as a list that stays when the block is changed."""
    return [op.operation for op in block.operations]


def types_of(values: Iterable[Any]) -> list[ir.Type]:
    """Returns the MLIR types of values: operands, results or block arguments."""
    return [value.type for value in values]


def users_of(value: Value) -> list[Op]:
    """Returns the ops that use a value, one for each operand that is the value."""
    return [use.owner.operation for use in value.uses]


def uses_of(value: Value) -> list[tuple[Op, int]]:
    """Returns the uses of a value as (op, index of the operand), in a list that stays when they change."""
    return list(map(_op_and_operand, value.uses))


def _op_and_operand(use: Any) -> tuple[Op, int]:
    return use.owner.operation, use.operand_number


def set_operands(uses: Iterable[tuple[Op, int]], value: Value) -> None:
    """Makes a value the operand of each use, which is (op, index of the operand)."""
    for op, number in uses:
        op.operands[number] = value


def replace_results(op: Op, values: Iterable[Value]) -> None:
    """Replaces the results of an op, wherever they are used, by ``values``, one for each; the op stays."""
    for result, replacement in zip(op.results, values, strict=True):
        result.replace_all_uses_with(replacement)


def arguments_in(op: Op) -> list[Value]:
    """Returns the arguments of all blocks in the regions of an op, not those of nested ops."""
    arguments: list[Value] = []
    for region in op.regions:
        for block in region.blocks:
            arguments += block.arguments
    return arguments


def maps_in(op: Op) -> list[ir.AffineMap]:
    """Returns the affine maps of an op's attribute ``indexing_maps``, one for each operand."""
    return [ir.AffineMapAttr(mapping).value for mapping in ir.ArrayAttr(op.attributes["indexing_maps"])]


def constraints_of_set(attribute: Attribute) -> tuple[ir.AffineMap, tuple[bool, ...]]:
    """Returns the expressions of an affine set as the results of a map, and which of them must be 0.

    The others must be 0 or more. The bindings show no expressions of the attribute: its text is parsed.
    """
    # affine_set<(d0) : (d0 ceildiv 4 - 3 >= 0, d0 == 0)>
    inputs, _, constraints = str(attribute).removeprefix("affine_set<").removesuffix(")>").partition(" : (")
    expressions: list[str] = []
    are_equalities: list[bool] = []
    for constraint in constraints.split(", "):
        expression, relation, _ = constraint.rsplit(" ", 2)
        expressions.append(expression)
        are_equalities.append(relation == "==")
    text = f"affine_map<{inputs} -> ({', '.join(expressions)})>"
    return ir.AffineMapAttr(ir.Attribute.parse(text)).value, tuple(are_equalities)


def groups_of(op: Op) -> list[list[int]]:
    """Returns the ``reassociation`` of a reshape, such as [[0, 1], [2]] of an ``expand_shape``.

    One list for each dimension of the shape with fewer dimensions: the dimensions of the other shape that it
    joins.
    """
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(group)] for group in groups]


def constant_of(value: Value) -> int | None:
    """Returns the integer of an integer or index ``arith.constant``; None for any other value."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    if isinstance(number, ir.IntegerAttr):
        return int(number.value)
    return None


def number_of(value: Value) -> float | None:
    """Returns the number of an ``arith.constant``, a scalar or a vector of equal elements; else None."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    if isinstance(number, ir.DenseElementsAttr) and number.is_splat:
        number = number.get_splat_value()
    if isinstance(number, ir.FloatAttr | ir.IntegerAttr):
        return float(number.value)
    return None


def is_zero(value: Value) -> bool:
    """Returns whether a value is an ``arith.constant`` that is the number 0, of a float or integer type."""
    return number_of(value) == 0


def source_of(value: Value, names: Container[str]) -> Value:
    """Returns the value from which ``value`` was made by ops whose name is in ``names``, such as subviews.

    Follows the first operands of these ops backwards; returns ``value`` itself if none of them defines it.
    """
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in names:
        value = value.owner.operation.operands[0]
    return value


def inline_call(call: Op, function: Op) -> None:
    """Replaces a call by a copy of the body of ``function``, which must have one block; erases the call.

      %y = func.call @twice(%x) : (f32) -> f32
    becomes
      %y = arith.addf %x, %x : f32
    """
    copy = function.clone(ip=ir.InsertionPoint(function))
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = ops_in(block)
    for op in body:
        op.move_before(call)
    replace_results(call, end.operands)
    call.erase()
    copy.erase()


def unsupported(op: Op, found: str, allowed: str) -> CandidateError:
    """Returns a CandidateError(COMPILE) to be raised: "<op> at line L:C: found ..., allowed ..."."""
    return CandidateError(Stage.COMPILE, f"{op.name} {location_of(op)}: found {found}, allowed {allowed}")


def location_of(op: Op) -> str:
    """Returns "at line L:C" of an op, or of its closest parent with a location, else "at an unknown line"."""
    around = op
    while around is not None:
        position = POSITION.search(str(around.location))
        if position is not None:
            return f"at line {position[1]}"
        around = around.parent
    return "at an unknown line"


def copy_of(module: ir.Module) -> ir.Module:
    """Returns a deep copy of a module, without printing it, which writes each ``dense_resource`` as text."""
    copied = ir.Module.create(module.operation.location)
    for name in module.operation.attributes:
        copied.operation.attributes[name] = module.operation.attributes[name]
    for op in module.body.operations:
        op.operation.clone(ip=ir.InsertionPoint(copied.body))
    return copied


def name_of(op: Op) -> str:
    """Returns the symbol name (``sym_name``) of an op such as a func.func, without "@"."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def callee_of(call: Op) -> str:
    """Returns the name of the function that a ``func.call`` or a direct ``llvm.call`` calls, without "@"."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def private_function(name: str, type_: ir.FunctionType, **more: Attribute) -> Op:
    """Creates a private func.func of a type without a body; ``more``: further attributes. Returns the op."""
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(type_),
    }
    return ir.Operation.create("func.func", attributes=attributes | more, regions=1)


def function_type(function: Op) -> ir.FunctionType:
    """Returns the FunctionType of a func.func or gpu.func; ``function`` must not be an llvm.func."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def new_values_of(function: Op) -> dict[int, int]:
    """Returns, by argument index of a ``func.func``, the index of the result that is its ``tuner.new_value``.

    Raises CandidateError(BIND) where that is not a result of the argument's type, or one of two arguments.
    """
    if ARGUMENT_ATTRIBUTES not in function.attributes:
        return {}
    signature = function_type(function)
    results = list(signature.results)
    new_values: dict[int, int] = {}
    attributes = ir.ArrayAttr(function.attributes[ARGUMENT_ATTRIBUTES])
    for index, (type_, attribute) in enumerate(zip(signature.inputs, attributes, strict=True)):
        if NEW_VALUE not in ir.DictAttr(attribute):
            continue
        number = ir.IntegerAttr(ir.DictAttr(attribute)[NEW_VALUE]).value
        is_result = 0 <= number < len(results) and results[number] == type_
        if not is_result or number in new_values.values():
            raise CandidateError(
                Stage.BIND,
                f"payload: argument {index}: found {NEW_VALUE} = {number}, allowed the number of a result of "
                "its type, which is not another argument's",
            )
        new_values[index] = number
    return new_values


def walk_ops(root: Op | ir.Module, visit: Callable[[Op], WalkResult], *, is_pre_order: bool = False) -> None:
    """Calls ``visit`` for ``root`` and all ops in it: ``root`` is first in pre-order, else last.

    An exception of ``visit`` is raised as it is: MLIR's walk makes a RuntimeError with a traceback.
    """
    raised: list[BaseException] = []

    def guarded(op: Op) -> WalkResult:
        try:
            return visit(op)
        except BaseException as error:
            raised.append(error)
            raise

    order = ir.WalkOrder.PRE_ORDER if is_pre_order else ir.WalkOrder.POST_ORDER
    try:
        root.operation.walk(guarded, order)
    except RuntimeError:
        if raised:
            raise raised[0] from None
        raise


def walk(root: Op | ir.Module, *names: str) -> list[Op]:
    """Returns the ops named ``names`` in ``root``, and ``root`` itself if so named, nested ops first.

    Ops in unreachable blocks are left out. MLIR's pattern driver takes a fiftieth of the time of a callback
    per op.
    """
    ops: list[Op] = []

    def note(op: Op, _: object) -> bool:
        ops.append(op.operation)
        return True  # nothing was rewritten

    patterns = pattern_rewrites.RewritePatternSet(root.operation.context)
    for name in names:
        patterns.add(name, note)
    pattern_rewrites.walk_and_apply_patterns(root.operation, patterns.freeze())
    if root.operation.name in names:
        return [*ops, root.operation]
    return ops


def walk_where(root: Op | ir.Module, is_wanted: Callable[[Op], bool]) -> list[Op]:
    """Returns the ops for which ``is_wanted`` holds, of ``root`` and all ops in it, in post-order."""
    ops: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if is_wanted(op):
            ops.append(op)
        return WalkResult.ADVANCE

    walk_ops(root, visit)
    return ops


def any_where(root: Op | ir.Module, is_wanted: Callable[[Op], bool]) -> bool:
    """Returns whether ``is_wanted`` holds for ``root`` or any op in it; looks no further than the first."""
    is_found = False

    def visit(op: Op) -> WalkResult:
        nonlocal is_found
        is_found = is_wanted(op)
        if is_found:
            return WalkResult.INTERRUPT
        return WalkResult.ADVANCE

    walk_ops(root, visit)
    return is_found


def parents_of(op: Op) -> Iterator[Op]:
    """Yields the ops around an op, the innermost first, up to and including its function."""
    while not op.name.endswith(".func") and op.parent is not None:
        op = op.parent.operation
        yield op


def ancestor_in_block(op: Op, block: Block) -> Op | None:
    """Returns the op of ``block`` that is ``op`` or one of its parents within its function, else None."""
    return next((candidate for candidate in (op, *parents_of(op)) if candidate.block == block), None)
