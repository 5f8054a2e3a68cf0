"""Copies the tensors that loops and branches yield into tensors from outside, before bufferization.

A loop whose iterations each create a new tensor does not bufferize, and a branch would yield memory that it
allocated, for which no device buffer can be kept in parallel. After this pass an iteration or branch ends in
a copy: an iteration into its own iter_args, a branch into a tensor defined before the branch. Results of
branches of dynamic shape stay unchanged, because no value before the branch gives their size.

    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
      %y = tensor.empty() : tensor<4xf32>
      %z = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %z : tensor<4xf32>
    }
  becomes
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
      %y = tensor.empty() : tensor<4xf32>
      %z = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
      %copy = bufferization.materialize_in_destination %z in %x : (tensor<4xf32>, ...) -> tensor<4xf32>
      scf.yield %copy : tensor<4xf32>
    }
"""

from tuner.mlir.bindings import Block, Op, Type, Value, ir
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.rewrite.building import create, index, value
from tuner.mlir.rewrite.definitions import op_of, source_of
from tuner.mlir.rewrite.walking import walk

LOOP, WHILE, BRANCH = "scf.for", "scf.while", "scf.if"
ALLOCATIONS = ("memref.alloc", "memref.alloca")


def yields_iteration_local_memory(function: Op) -> bool:
    """Returns whether an scf.for or scf.if yields a memref that its body allocated, or a view of one."""
    yields = [
        last_of(block) for name in (LOOP, BRANCH) for op in walk(function, name) for block in _blocks(op)
    ]
    return any(_is_allocated_in(each, operand) for each in yields for operand in each.operands)


def copy_yields(function: Op) -> None:
    """Makes scf.for, scf.while and scf.if yield copies of tensors, in place, before bufferization.

    An iteration copies into its iter_args, a branch into a tensor from before the branch. Other types, and
    branch results of dynamic shape, are yielded as they are.
    """
    for loop in walk(function, LOOP):
        block = _blocks(loop)[0]
        _copy_iteration(last_of(block), list(block.arguments)[1:], 0)
    for loop in walk(function, WHILE):
        condition, body = _blocks(loop)
        _copy_iteration(last_of(condition), list(condition.arguments), 1)  # operand 0 is the condition
        _copy_iteration(last_of(body), list(body.arguments), 0)
    for branch in walk(function, BRANCH):
        with branch.location, ir.InsertionPoint(branch):
            targets = [_empty(result.type) for result in branch.results]
        for block in _blocks(branch):
            _copy_into(last_of(block), targets)


def _copy_iteration(end: Op, arguments: list[Value], first: int) -> None:
    """Makes a terminator yield copies into the arguments of its block, from operand ``first`` on."""
    yielded = list(end.operands)[first:]
    fits = [
        _is_tensor(target) and target.type == each.type
        for target, each in zip(arguments, yielded, strict=False)
    ]
    targets = [target if is_fit else None for target, is_fit in zip(arguments, fits, strict=False)]
    inner = [
        each for each, is_fit in zip(yielded, fits, strict=False) if is_fit and _is_of_control_flow(each)
    ]
    if sum(fits) > 1 or inner:  # a yielded value may alias another one's target: copy all values away first
        with end.location, ir.InsertionPoint(end):
            spare = [None if target is None else _empty_like(target) for target in targets]
        _copy_into(end, spare, first)
    _copy_into(end, targets, first)


def _copy_into(end: Op, targets: list[Value | None], first: int = 0) -> None:
    for number, target in enumerate(targets, first):
        yielded = end.operands[number]
        if target is None or yielded == target:
            continue
        with end.location, ir.InsertionPoint(end):
            copy = create("bufferization.materialize_in_destination", [target.type], [yielded, target])
        end.operands[number] = copy.results[0]


def _empty(kind: Type) -> Value | None:
    is_known = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape
    return create("tensor.empty", [kind]).results[0] if is_known else None


def _empty_like(tensor: Value) -> Value:
    kind = ir.RankedTensorType(tensor.type)
    dynamic = [axis for axis in range(kind.rank) if kind.is_dynamic_dim(axis)]
    sizes = [value("tensor.dim", ir.IndexType.get(), tensor, index(axis)) for axis in dynamic]
    return value("tensor.empty", kind, *sizes)


def _is_of_control_flow(each: Value) -> bool:
    return op_of(each, LOOP, WHILE, BRANCH) is not None


def _is_tensor(each: Value) -> bool:
    return isinstance(each.type, ir.RankedTensorType)


def _is_allocated_in(end: Op, operand: Value) -> bool:
    """Returns whether a value is memory that its block allocated, or a view of such memory."""
    allocation = op_of(source_of(operand, VIEWS), *ALLOCATIONS)
    return allocation is not None and allocation.block == end.block


def _blocks(op: Op) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]
