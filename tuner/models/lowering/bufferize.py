"""Converts the tensors of a program to memrefs and frees them, after rewrites that upstream's pass needs."""

from collections.abc import Iterable
from itertools import chain

from tuner.core.errors import CandidateError
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.aliases import VIEWS, last_of
from tuner.mlir.ir.building import DYNAMIC, create, index, is_equal, value
from tuner.mlir.ir.memrefs import set_argument_attribute
from tuner.mlir.ir.reading import any_where, copy_of, op_of, set_operands, source_of, types_of, uses_of, walk
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.deallocation import deallocate
from tuner.mlir.programs.entry import function_named

LOOP = "scf.for"
WHILE = "scf.while"
BRANCH = "scf.if"
ALLOCATIONS = ("memref.alloc", "memref.alloca")
LOW = "static_low"
HIGH = "static_high"
ELEMENTWISE = "builtin.module(convert-elementwise-to-linalg)"  # of arith and math operations on tensors
ONE_SHOT = (
    "one-shot-bufferize{bufferize-function-boundaries"
    " function-boundary-type-conversion=identity-layout-map},canonicalize,cse"
)
BUFFERIZE = f"builtin.module(eliminate-empty-tensors,{ONE_SHOT})"
# eliminate-empty-tensors would merge the buffers that the copies keep separate
BUFFERIZE_COPIES = f"builtin.module({ONE_SHOT})"
YIELDS_ANOTHER = "is not equivalent to the corresponding iter bbArg"  # upstream's error for a yield
# The time to bufferize grows with the cube of the uses of an empty tensor: 1,000 take two minutes. One for
# each operation would keep as many buffers alive, since upstream frees them at the end.
EMPTY_USES = 32
TENSORS = ir.RankedTensorType | ir.UnrankedTensorType


def copy_shared_fills(function: Op) -> None:
    """Duplicates fills of a ``tensor.empty`` of static shape in place, so that no two users share a fill.

    Otherwise, after bufferization, the second of two matmuls starts from a copy of the filled buffer, and
    nothing shows that it starts from zeros. One user keeps the original.
        %f = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
        %g = linalg.exp ins(%a : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
        %h = linalg.exp ins(%b : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
      becomes, with %f and %h as before
        %e2 = tensor.empty() : tensor<4xf32>
        %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
        %g = linalg.exp ins(%a : tensor<4xf32>) outs(%f2 : tensor<4xf32>) -> tensor<4xf32>
    """
    for fill in walk(function, "linalg.fill"):
        if not fill.results or not _is_of_empty(fill):
            continue
        for use in list(fill.results[0].uses)[1:]:
            user = use.owner
            number = use.operand_number
            with user.location, ir.InsertionPoint(user):
                empty = create("tensor.empty", [fill.results[0].type])
                copy = fill.clone()
                copy.operands[1] = empty.results[0]
            user.operands[number] = copy.results[0]


def _is_of_empty(fill: Op) -> bool:
    empty = op_of(fill.operands[1], "tensor.empty")
    return empty is not None and bool(ir.RankedTensorType(empty.results[0].type).has_static_shape)


def yields_iteration_local_memory(function: Op) -> bool:
    """Returns whether an scf.for or scf.if yields a memref that its body allocated, or a view of one."""
    for op in (*walk(function, LOOP), *walk(function, BRANCH)):
        for end in map(last_of, _blocks(op)):
            if any(_is_allocated_in(end, operand) for operand in end.operands):
                return True
    return False


def copy_yields(function: Op) -> None:
    """Makes scf.for, scf.while and scf.if yield copies of tensors, in place, before bufferization.

    A loop whose iterations each create a new tensor does not bufferize. A branch would yield memory that it
    allocated, for which no device buffer can be kept in parallel. Branch results of dynamic shape stay as
    they are.
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
          %z = ... : tensor<4xf32>
          scf.yield %z : tensor<4xf32>
        }
      becomes
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
          %z = ... : tensor<4xf32>
          %copy = bufferization.materialize_in_destination %z in %x : (tensor<4xf32>, ...) -> tensor<4xf32>
          scf.yield %copy : tensor<4xf32>
        }
    """
    for loop in walk(function, LOOP):
        block = _blocks(loop)[0]
        _copy_iteration(last_of(block), list(block.arguments)[1:], 0)
    for loop in walk(function, WHILE):
        condition, body = _blocks(loop)
        _copy_iteration(last_of(condition), list(condition.arguments), 1)  # operand 0 is the condition
        _copy_iteration(last_of(body), list(body.arguments), 0)
    for branch in walk(function, BRANCH):
        types = types_of(branch.results)
        is_known = [isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types]
        with branch.location, ir.InsertionPoint(branch):
            targets = [
                value("tensor.empty", type_) if known else None
                for type_, known in zip(types, is_known, strict=True)
            ]
        for block in _blocks(branch):
            _copy_into(last_of(block), targets)


def _copy_iteration(end: Op, arguments: list[Value], first: int) -> None:
    """Makes a terminator yield copies into the arguments of its block, from operand ``first`` on."""
    yielded = list(end.operands)[first:]
    targets = [
        target if isinstance(target.type, ir.RankedTensorType) and target.type == value.type else None
        for target, value in zip(arguments, yielded, strict=False)
    ]
    copied = [value for target, value in zip(targets, yielded, strict=False) if target is not None]
    is_of_control_flow = any(op_of(value, LOOP, WHILE, BRANCH) is not None for value in copied)
    # a yielded value may alias another one's target: copy all values away first
    if len(copied) > 1 or is_of_control_flow:
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
            _assert_equal_sizes(yielded, target)
            copy = create("bufferization.materialize_in_destination", [target.type], [yielded, target])
        end.operands[number] = copy.results[0]


def _assert_equal_sizes(yielded: Value, target: Value) -> None:
    """Creates assertions that the dynamic sizes of two tensors are equal: a loop may yield a larger one."""
    type_ = ir.RankedTensorType(target.type)
    message = ir.StringAttr.get(f"{type_} of another size in the next iteration or branch")
    for axis in filter(type_.is_dynamic_dim, range(type_.rank)):
        sizes = [value("tensor.dim", ir.IndexType.get(), tensor, index(axis)) for tensor in (yielded, target)]
        create("cf.assert", (), [is_equal(*sizes)], msg=message)


def _empty_like(tensor: Value) -> Value:
    type_ = ir.RankedTensorType(tensor.type)
    dynamic = list(filter(type_.is_dynamic_dim, range(type_.rank)))
    sizes = [value("tensor.dim", ir.IndexType.get(), tensor, index(axis)) for axis in dynamic]
    return value("tensor.empty", type_, *sizes)


def _is_allocated_in(end: Op, operand: Value) -> bool:
    allocation = op_of(source_of(operand, VIEWS), *ALLOCATIONS)
    return allocation is not None and allocation.block == end.block


def _blocks(op: Op) -> list[Block]:
    return list(chain.from_iterable(region.blocks for region in op.regions))


def crop_negative_padding(function: Op) -> None:
    """Replaces a negative width of each ``tensor.pad`` by a slice of the pad's source, in place.

    Upstream's bufferization writes the source at the offset of the low padding. torch-mlir exports an
    ``F.pad`` that crops in this form. Sources of dynamic shape, and widths that are known at run time only,
    stay as they are.
        %y = tensor.pad %x low[-1] high[2] {...} : tensor<8xf32> to tensor<9xf32>
      becomes
        %s = tensor.extract_slice %x[1] [7] [1] : tensor<8xf32> to tensor<7xf32>
        %y = tensor.pad %s low[0] high[2] {...} : tensor<7xf32> to tensor<9xf32>
    """
    for pad in walk(function, "tensor.pad"):
        source = pad.operands[0]
        low, high = (list(pad.attributes[name]) for name in (LOW, HIGH))
        is_negative = any(width < 0 and width != DYNAMIC for width in low + high)
        if not is_negative or not source.type.has_static_shape:
            continue
        cropped = [0 if width == DYNAMIC else max(-width, 0) for width in low + high]
        offsets = cropped[: len(low)]
        ends = cropped[len(low) :]
        widths = zip(source.type.shape, offsets, ends, strict=True)
        sizes = [size - begin - end for size, begin, end in widths]
        with pad.location, ir.InsertionPoint(pad):
            pad.operands[0] = value(
                "tensor.extract_slice",
                ir.RankedTensorType.get(sizes, source.type.element_type),
                source,
                operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                static_offsets=_widths(offsets),
                static_sizes=_widths(sizes),
                static_strides=_widths([1] * len(sizes)),
            )
        pad.attributes[LOW] = _widths(width if width == DYNAMIC else max(width, 0) for width in low)
        pad.attributes[HIGH] = _widths(width if width == DYNAMIC else max(width, 0) for width in high)


def _widths(numbers: Iterable[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(numbers))


def has_tensors(module: ir.Module) -> bool:
    """Returns whether any operand, result or block argument in a module is a tensor."""

    def uses_tensors(op: Op) -> bool:
        arguments = chain.from_iterable(block.arguments for block in _blocks(op))
        return any(isinstance(value.type, TENSORS) for value in (*op.operands, *op.results, *arguments))

    return any_where(module, uses_tensors)


def bufferized(module: ir.Module, name: str) -> ir.Module:
    """Converts a module's tensors to memrefs, by upstream's one-shot bufferization, and adds deallocations.

    ``name``: the entry function. Its arguments that were tensors are never written. Loops and branches whose
    yields upstream rejects, or would free by address at run time, yield copies (``copy_yields``). Only the
    returned module is valid; it may be ``module`` itself. Raises CandidateError(COMPILE) where bufferization
    fails.
        func.func @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
          %empty = tensor.empty() : tensor<4xf32>
          %y = linalg.exp ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
          return %y : tensor<4xf32>
      becomes
        func.func @exp(%x: memref<4xf32>) -> memref<4xf32> {
          %y = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
          linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
          return %y : memref<4xf32>
    """
    function = function_named(module, name)
    for argument in function.regions[0].blocks[0].arguments:
        if isinstance(argument.type, TENSORS):
            no = ir.BoolAttr.get(False)
            set_argument_attribute(function, argument.arg_number, "bufferization.writable", no)
    run_passes(module, ELEMENTWISE)
    crop_negative_padding(function_named(module, name))
    copy_shared_fills(function_named(module, name))
    for empty in walk(function_named(module, name), "tensor.empty"):
        uses = uses_of(empty.results[0])
        uses.reverse()  # in the order of the program
        for first in range(EMPTY_USES, len(uses), EMPTY_USES):
            with ir.InsertionPoint.after(empty), empty.location:
                own = empty.clone()
            set_operands(uses[first : first + EMPTY_USES], own.results[0])
    copied = copy_of(module)
    if _is_bufferized_without_copies(module, name):
        return module
    copy_yields(function_named(copied, name))
    run_passes(copied, BUFFERIZE_COPIES)
    deallocate(copied)
    return copied


def _is_bufferized_without_copies(module: ir.Module, name: str) -> bool:
    """Bufferizes a module in place, without copies of yields.

    Returns whether upstream accepts the yields, and frees all memory without comparing addresses. Raises
    CandidateError(COMPILE) for other failures.
    """
    try:
        run_passes(module, BUFFERIZE)
        return not yields_iteration_local_memory(function_named(module, name)) and deallocate(module)
    except CandidateError as error:
        if YIELDS_ANOTHER not in error.reason:
            raise
        return False
