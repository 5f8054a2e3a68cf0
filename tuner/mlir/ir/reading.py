"""Reads IR: walks, definitions of values, symbols, launches, index terms; inlines calls."""

import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Attribute, Block, Op, Value, WalkResult, ir, pattern_rewrites
from tuner.mlir.ir.building import recreated, symbol, value

AXES = "xyz"
POSITION = re.compile(r'"[^"]*":(\d+:\d+)')  # line and column, as MLIR prints a location
# Operand segments in the order of GPUOps.td; segment 0 is the async dependencies.
GRID = slice(1, 4)
BLOCK = slice(4, 7)
CLUSTER = slice(7, 10)
SHARED_BYTES = 10
ARGUMENTS = 11
SEGMENTS = "operandSegmentSizes"
# Attributes of a gpu.launch and of its kernel.
CLUSTER_SIZE = "nvvm.cluster_dim"  # blocks along x, y and z
TILE_GRID = "tuner.tile_grid"  # output tiles along x and y, where a block computes several


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


def set_constraints(attribute: Attribute) -> tuple[ir.AffineMap, tuple[bool, ...]]:
    """Returns the expressions of an affine set as the results of a map, and which of them must be 0.

    The others must be 0 or more. The bindings show no expressions of the attribute: its text is parsed.
    """
    # affine_set<(d0) : (d0 ceildiv 4 - 3 >= 0, d0 == 0)>
    inputs, _, constraints = str(attribute).removeprefix("affine_set<").removesuffix(")>").partition(" : (")
    sides = [constraint.rsplit(" ", 2) for constraint in constraints.split(", ")]
    expressions = ", ".join(expression for expression, _, _ in sides)
    mapping = ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{inputs} -> ({expressions})>")).value
    return mapping, tuple(relation == "==" for _, relation, _ in sides)


def groups_of(op: Op) -> list[list[int]]:
    """Returns the reassociation of a reshape: per dimension of the lower rank, dimensions of the higher."""
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(group)] for group in groups]


def constant_of(value: Value) -> int | None:
    """Returns the integer of an integer or index ``arith.constant``; None for any other value."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    if isinstance(number, ir.IntegerAttr):
        return int(number.value)
    return None


def is_zero(value: Value) -> bool:
    """Returns whether a value is an ``arith.constant`` that is the number 0, of a float or integer type."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    return isinstance(number, ir.FloatAttr | ir.IntegerAttr) and number.value == 0


def source_of(value: Value, names: Container[str]) -> Value:
    """Returns the value from which ``value`` was made by ops whose name is in ``names``, such as subviews.

    Follows the first operands of these ops backwards; returns ``value`` itself if none of them defines it.
    """
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in names:
        value = value.owner.operation.operands[0]
    return value


def index_along(name: str, axis: str) -> Value:
    """Creates the op ``name``, such as ``gpu.block_id``, along "x", "y" or "z"; returns its index value."""
    return value(name, ir.IndexType.get(), dimension=ir.Attribute.parse(f"#gpu<dim {axis}>"))


def axis_of(op: Op) -> int:
    """Returns the axis of an op such as ``gpu.block_id``: 0, 1 or 2 for x, y or z."""
    return AXES.index(str(op.attributes["dimension"]).removeprefix("#gpu<dim ").removesuffix(">"))


def split_constant(index: Value) -> tuple[Hashable, int]:
    """Returns (base, constant), whose sum is an index value; creates no ops.

    The base is None for a constant, and for an ``affine.apply`` (text of the expression, operands), or the
    value to which it only adds a constant. Of any other value, the base is the value and the constant 0.
    """
    known = constant_of(index)
    if known is not None:
        return None, known
    if op_of(index, "affine.apply") is None:
        return index, 0
    mapping = ir.AffineMapAttr(index.owner.attributes["map"]).value
    expression, constant = _split(mapping.results[0])
    if expression is None:
        return None, constant
    operands = tuple(index.owner.operands)
    names = _names(mapping)
    if expression in names:
        return operands[names.index(expression)], constant
    return (str(expression), operands), constant


def _split(expression: ir.AffineExpr) -> tuple[ir.AffineExpr | None, int]:
    """Returns (affine sum without constant terms, or None if it has only these; total of the constants)."""
    if isinstance(expression, ir.AffineConstantExpr):
        return None, int(expression.value)
    if not isinstance(expression, ir.AffineAddExpr):
        return expression, 0
    left, one = _split(expression.lhs)
    right, other = _split(expression.rhs)
    if left is None or right is None:
        return (right if left is None else left), one + other
    return ir.AffineExpr.get_add(left, right), one + other


def without_constant(index: Value) -> tuple[Value | None, int]:
    """Returns (base or None, constant) whose sum is an index value; may create ops for the base."""
    known = constant_of(index)
    if known is not None:
        return None, known
    if op_of(index, "arith.addi") is not None:
        return _sum_without_constant(index)
    if op_of(index, "affine.apply") is not None:
        return _apply_without_constant(index)
    return index, 0


def _sum_without_constant(total: Value) -> tuple[Value | None, int]:
    (left, one), (right, other) = map(without_constant, total.owner.operands)
    if one + other == 0:
        return total, 0
    if left is None or right is None:
        return (right if left is None else left), one + other
    return value("arith.addi", total.type, left, right), one + other


def _apply_without_constant(applied: Value) -> tuple[Value | None, int]:
    mapping = ir.AffineMapAttr(applied.owner.attributes["map"]).value
    expression, constant = _split(mapping.results[0])
    operands = list(applied.owner.operands)
    names = _names(mapping)
    # the constant part of an operand that the map only adds moves out of the map
    for number, name in enumerate(names):
        base, more = without_constant(operands[number])
        if more and base is not None and expression is not None and _is_added_once(expression, name):
            operands[number], constant = base, constant + more
    if constant == 0:
        return applied, 0
    if expression is None:
        return None, constant
    if expression in names:
        return operands[names.index(expression)], constant
    kept = ir.AffineMapAttr.get(ir.AffineMap.get(mapping.n_dims, mapping.n_symbols, [expression]))
    return value("affine.apply", applied.type, *operands, map=kept), constant


def _names(mapping: ir.AffineMap) -> list[ir.AffineExpr]:
    dimensions = list(map(ir.AffineExpr.get_dim, range(mapping.n_dims)))
    return [*dimensions, *map(symbol, range(mapping.n_symbols))]


def _is_added_once(expression: ir.AffineExpr, name: ir.AffineExpr) -> bool:
    terms = _terms(expression)
    others = [term for term in terms if term != name]
    return len(others) == len(terms) - 1 and not any(_mentions(other, name) for other in others)


def _terms(expression: ir.AffineExpr) -> list[ir.AffineExpr]:
    if isinstance(expression, ir.AffineAddExpr):
        return _terms(expression.lhs) + _terms(expression.rhs)
    return [expression]


def _mentions(expression: ir.AffineExpr, name: ir.AffineExpr) -> bool:
    if isinstance(expression, ir.AffineBinaryExpr):
        return _mentions(expression.lhs, name) or _mentions(expression.rhs, name)
    return bool(expression == name)


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
    for result, returned in zip(call.results, end.operands, strict=True):
        result.replace_all_uses_with(returned)
    call.erase()
    copy.erase()


def unsupported(op: Op, found: str, allowed: str) -> CandidateError:
    """Returns a CandidateError(COMPILE) to be raised: "<op> at line L:C: found ..., allowed ..."."""
    return CandidateError(Stage.COMPILE, f"{op.name} {location_of(op)}: found {found}, allowed {allowed}")


def location_of(op: Op) -> str:
    """Returns "at line L:C" of an op, or of its closest parent with a location, else "at an unknown line"."""
    around = op
    while around is not None:
        found = POSITION.search(str(around.location))
        if found is not None:
            return f"at line {found[1]}"
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


def private_function(name: str, kind: ir.FunctionType, **more: Attribute) -> Op:
    """Creates a private func.func of a type without a body; ``more``: further attributes. Returns the op."""
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    return ir.Operation.create("func.func", attributes=attributes | more, regions=1)


def function_type(function: Op) -> ir.FunctionType:
    """Returns the FunctionType of a func.func or gpu.func, not that of an llvm.func."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


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
    found: list[Op] = []

    def note(op: Op, _: object) -> bool:
        found.append(op.operation)
        return True  # nothing was rewritten

    patterns = pattern_rewrites.RewritePatternSet(root.operation.context)
    for name in names:
        patterns.add(name, note)
    pattern_rewrites.walk_and_apply_patterns(root.operation, patterns.freeze())
    if root.operation.name in names:
        return [*found, root.operation]
    return found


def walk_where(root: Op | ir.Module, is_wanted: Callable[[Op], bool]) -> list[Op]:
    """Returns the ops for which ``is_wanted`` holds, of ``root`` and all ops in it, in post-order."""
    found: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if is_wanted(op):
            found.append(op)
        return WalkResult.ADVANCE

    walk_ops(root, visit)
    return found


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


def launches_of(module: ir.Module, kernel: str) -> list[Op]:
    """Returns, in program order, each ``gpu.launch_func`` of a kernel ``kernel``, of any ``gpu.module``."""
    return [op for op in walk(module, "gpu.launch_func") if kernel_of(op) == kernel]


def kernel_of(launch: Op) -> str:
    """Returns the name of the kernel that a ``gpu.launch_func`` launches, without its gpu.module."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


def module_of(launch: Op) -> str:
    """Returns the name of the ``gpu.module`` whose kernel a ``gpu.launch_func`` launches."""
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[0])


def operands(launch: Op, segment: int) -> list[Value]:
    """Returns the operands of a ``gpu.launch_func`` in one operand segment, such as ``ARGUMENTS``."""
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    start = sum(sizes[:segment])
    return list(launch.operands)[start : start + sizes[segment]]


def constant(launch: Op, value: Value, what: str) -> int:
    """Returns the integer of an operand of a launch; ``what``: the operand's name in the error.

    Raises CandidateError(COMPILE) if the operand is not constant.
    """
    found = constant_of(value)
    if found is None:
        raise CandidateError(Stage.COMPILE, f"launch of {kernel_of(launch)}: {what} is not constant")
    return found


def shared_bytes(launch: Op) -> int:
    """Returns the dynamic shared memory of a ``gpu.launch_func`` in bytes; 0 if it has none.

    Raises CandidateError(COMPILE) if the size is not constant.
    """
    requested = shared_bytes_operand(launch)
    if requested is None:
        return 0
    return constant(launch, requested, "dynamic_shared_memory_size")


def shared_bytes_operand(launch: Op) -> Value | None:
    """Returns the dynamic shared memory size of a ``gpu.launch_func``, an i32 value; None without one."""
    requested = operands(launch, SHARED_BYTES)
    if requested:
        return requested[0]
    return None


def set_shared_bytes(launch: Op, size: int, extra_bytes: Value | None = None) -> None:
    """Replaces a launch by one with ``size`` + ``extra_bytes`` (i32) bytes of dynamic shared memory."""
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    before = sum(sizes[:SHARED_BYTES])
    old = list(launch.operands)
    with launch.location, ir.InsertionPoint(launch):
        kind = ir.IntegerType.get_signless(32)
        total = value("arith.constant", kind, value=ir.IntegerAttr.get(kind, size))
        if extra_bytes is not None:
            total = value("arith.addi", kind, total, extra_bytes)
        new = recreated(
            launch,
            [result.type for result in launch.results],
            [*old[:before], total, *old[before + sizes[SHARED_BYTES] :]],
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([*sizes[:SHARED_BYTES], 1, *sizes[ARGUMENTS:]]),
        )
    for before_it, after_it in zip(launch.results, new.results, strict=True):
        before_it.replace_all_uses_with(after_it)
    launch.erase()


def constant_grid(launch: Op) -> tuple[int, int] | None:
    """Returns the blocks of a ``gpu.launch`` along (x, y); None if one of the two is not constant."""
    columns, rows = map(constant_of, list(launch.operands)[:2])
    if columns is None or rows is None:
        return None
    return (columns, rows)
