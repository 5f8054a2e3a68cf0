"""Creates device work in asynchronous and in synchronous form: tokens and waits.

Other modules of this package decide on the order of device work, and create it by these functions.
"""

from collections.abc import Sequence
from itertools import chain

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, ir, passmanager
from tuner.mlir.effects.accesses import DEVICE_OPS, inside, is_device_work
from tuner.mlir.effects.aliases import ASYNC, is_token
from tuner.mlir.effects.launches import SEGMENTS
from tuner.mlir.ir.building import create
from tuner.mlir.ir.memrefs import element_bytes, is_contiguous
from tuner.mlir.ir.reading import attributes_of, location_of, types_of

FILLED_BYTES = (2, 4)  # element sizes that mgpuMemset16 and mgpuMemset32 fill
WAIT = "gpu.wait"
CARRIERS = frozenset({"scf.for", "scf.while", "scf.if", "scf.index_switch", "scf.yield", "scf.condition"})


def is_filled_by_runtime(memref: Type) -> bool:
    """Returns whether MLIR's GPU runtime can fill memory of this memref type with one number."""
    return is_contiguous(memref) and element_bytes(memref.element_type) in FILLED_BYTES


def make_async(op: Op, dependency: Value) -> Value:
    """Creates, before ``op``, its asynchronous form, which waits for a token; returns the form's token.

    Replaces ``op`` in its users. The caller erases ``op``, because insertion points may still refer to it.

        gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
      becomes
        %1 = gpu.memcpy async [%0] %b, %a : memref<4xf32>, memref<4xf32>
    """
    results = [*types_of(op.results), ir.Type.parse(ASYNC)]
    asynchronous = _recreated(op, [dependency], op.operands, results)
    return asynchronous.results[len(results) - 1]


def _recreated(op: Op, tokens: Sequence[Value], operands: Sequence[Value], results: Sequence[Type]) -> Op:
    """Creates a copy before ``op`` that waits for ``tokens``; replaces uses of results other than a token."""
    attributes = attributes_of(op)
    if SEGMENTS in attributes:
        sizes = list(ir.DenseI32ArrayAttr(attributes[SEGMENTS]))
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([len(tokens), *sizes[1:]])
    with op.location, ir.InsertionPoint(op):
        new_op = create(op.name, results, [*tokens, *operands], **attributes)
    for old, new in zip(op.results, new_op.results, strict=False):
        old.replace_all_uses_with(new)
    return new_op


def wait_async(tokens: Sequence[Value]) -> Value:
    """Creates ``gpu.wait async`` at the insertion point; returns its token.

    The operation begins a new stream, whose work follows the work of ``tokens``.
    """
    return create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]


def wait_on_host(tokens: Sequence[Value]) -> None:
    """Creates ``gpu.wait`` at the insertion point: the host waits for ``tokens``, whose streams end there."""
    create("gpu.wait", [], tokens)


def drop_tokens(function: Op) -> None:
    """Makes a function's device work synchronous in place: removes async tokens and ``gpu.wait``.

    Tokens that scf forwards, such as iter_args of a loop, are removed as well. Raises CandidateError(COMPILE)
    if an operation other than GPU work and scf uses a token.

        %t = gpu.wait async
        %u = gpu.memcpy async [%t] %b, %a : memref<4xf32>, memref<4xf32>
        gpu.wait [%u]
      becomes
        gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
    """
    _forget_carried(function)
    for op in reversed(list(inside(function))):  # users of a token before the operation that returns it
        if op.name != WAIT and not (op.name in DEVICE_OPS and has_tokens(op)):
            continue
        for use in list(chain.from_iterable(result.uses for result in filter(is_token, op.results))):
            actual = f"{use.owner.name} {location_of(op)}: found a token of {op.name}"
            raise CandidateError(Stage.COMPILE, f"{actual}, allowed for gpu operations in the same block")
        if op.name != WAIT:
            operands = [operand for operand in op.operands if not is_token(operand)]
            results = [result.type for result in op.results if not is_token(result)]
            _recreated(op, (), operands, results)
        op.erase()


def _forget_carried(function: Op) -> None:
    """Replaces all tokens that structured control flow forwards by one poison token, which is then folded."""
    uses = []
    for op in inside(function):
        for result in filter(is_token, op.results):
            uses += [use for use in result.uses if use.owner.name in CARRIERS]
    if not uses:
        return
    block = function.regions[0].blocks[0]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        nothing = create("ub.poison", [ir.Type.parse(ASYNC)], value=ir.Attribute.parse("#ub.poison"))
    for use in uses:
        use.owner.operands[use.operand_number] = nothing.results[0]
    for op in [work for work in inside(function) if work.name == WAIT or work.name in DEVICE_OPS]:
        for index, operand in enumerate(op.operands):
            if is_token(operand) and (isinstance(operand.owner, ir.Block) or operand.owner.name in CARRIERS):
                op.operands[index] = nothing.results[0]
    passmanager.PassManager.parse("func.func(canonicalize)").run(function)


def has_tokens(op: Op) -> bool:
    """Returns whether an operation takes or returns an async token."""
    return any(map(is_token, [*op.operands, *op.results]))


def wait_for_each(function: Op) -> None:
    """Makes the host wait for each device operation of a function, in place, so that no work overlaps.

    Tokens are needed because ``gpu-to-llvm`` silently leaves synchronous allocations and copies unconverted.

        gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
      becomes
        %0 = gpu.wait async
        %1 = gpu.memcpy async [%0] %b, %a : memref<4xf32>, memref<4xf32>
        gpu.wait [%1]
    """
    works = list(filter(is_device_work, inside(function)))
    for op in works:
        with op.location, ir.InsertionPoint(op):
            dependency = wait_async([])
        token = make_async(op, dependency)
        with op.location, ir.InsertionPoint(op):
            wait_on_host([token])
    for op in reversed(works):
        op.erase()
