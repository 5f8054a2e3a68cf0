"""Creates device work in asynchronous and in synchronous form: tokens, waits, async regions, runtime calls.

Other modules of this package decide on the order of device work, and create it by these functions.
"""

from collections.abc import Sequence
from itertools import chain

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, ir, passmanager
from tuner.mlir.effects.accesses import DEVICE_OPS, inside, is_device_work
from tuner.mlir.effects.aliases import ASYNC, is_token, last_of
from tuner.mlir.ir.building import create
from tuner.mlir.ir.launches import SEGMENTS
from tuner.mlir.ir.memrefs import element_bytes, is_contiguous
from tuner.mlir.ir.reading import (
    attributes_of,
    function_type,
    location_of,
    private_function,
    types_of,
    unsupported,
    walk,
    walk_where,
)

FILLED_BYTES = (2, 4)  # element sizes that mgpuMemset16 and mgpuMemset32 fill
EXECUTE = "async.execute"
AWAIT = "async.await"
ALLOWED = f"{EXECUTE}, {AWAIT} and async.yield, in one block"
WAIT = "gpu.wait"
CARRIERS = frozenset({"scf.for", "scf.while", "scf.if", "scf.index_switch", "scf.yield", "scf.condition"})
POINTER = "!llvm.ptr"
# Function -> (number of pointer arguments, whether it returns a pointer).
SIGNATURES = {
    "mgpuEventCreate": (0, True),
    "mgpuEventDestroy": (1, False),
    "mgpuEventRecord": (2, False),
    "mgpuEventSynchronize": (1, False),
    "mgpuStreamSynchronize": (1, False),
    "mgpuStreamWaitEvent": (2, False),
}
Stream = int | Value  # the number of a stream argument, or a pointer that control flow selects


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

    It begins a new stream, whose work follows the work of ``tokens``.
    """
    return create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]


def wait_on_host(tokens: Sequence[Value]) -> None:
    """Creates ``gpu.wait`` at the insertion point: the host waits for ``tokens``, whose streams end there."""
    create("gpu.wait", [], tokens)


def inline_async_regions(function: Op) -> None:
    """Replaces each ``async.execute`` of a function by its body, in place; dependences are computed later.

    A region follows the regions that it depends on, so program order is allowed. Raises
    CandidateError(COMPILE) for operations other than async.execute, async.await and async.yield, and for
    values that control flow forwards.

        %t, %f = async.execute -> !async.value<memref<4xf32>> {
          %0 = gpu.alloc () : memref<4xf32>
          async.yield %0 : memref<4xf32>
        }
        %1 = async.await %f : !async.value<memref<4xf32>>
      becomes
        %0 = gpu.alloc () : memref<4xf32>
    """
    ops = walk(function, EXECUTE, AWAIT)  # inner regions first
    plain: dict[Value, Value] = {}  # value of the async dialect -> the plain value
    for op in ops:
        if op.name == EXECUTE:
            _move_body(op, plain)
        elif list(op.results):
            if op.operands[0] not in plain:
                raise unsupported(op, "a value that control flow hands on", ALLOWED)
            op.results[0].replace_all_uses_with(plain[op.operands[0]])
    for op in reversed(ops):
        for use in list(chain.from_iterable(result.uses for result in op.results)):
            raise unsupported(use.owner.operation, f"a token or value of {op.name}", ALLOWED)
        op.erase()
    left = walk_where(function, lambda op: op.name.startswith("async."))
    if left:
        raise unsupported(left[0], left[0].name, ALLOWED)


def _move_body(op: Op, plain: dict[Value, Value]) -> None:
    block = op.regions[0].blocks[0]
    given = list(op.operands)[len(op.operands) - len(block.arguments) :]  # the operands after the tokens
    for argument, operand in zip(block.arguments, given, strict=True):
        if operand not in plain:
            raise unsupported(op, "a value that control flow hands on", ALLOWED)
        argument.replace_all_uses_with(plain[operand])
    plain.update(zip(list(op.results)[1:], list(last_of(block).operands), strict=True))
    for inner in list(block.operations)[:-1]:
        inner.operation.move_before(op)


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
        for number, operand in enumerate(op.operands):
            if is_token(operand) and (isinstance(operand.owner, ir.Block) or operand.owner.name in CARRIERS):
                op.operands[number] = nothing.results[0]
    passmanager.PassManager.parse("func.func(canonicalize)").run(function)


def has_tokens(op: Op) -> bool:
    """Returns whether an operation takes or returns an async token."""
    return any(map(is_token, [*op.operands, *op.results]))


class StreamCalls:
    """Adds streams as last arguments to a function, and creates runtime calls for streams and events.

    The functions are those of MLIR's CUDA runtime wrappers; calls are created at the insertion point.
        func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
        func.func @main(%a: memref<4xf32>, %stream: !llvm.ptr) {
          %event = call @mgpuEventCreate() : () -> !llvm.ptr
          call @mgpuEventRecord(%event, %stream) : (!llvm.ptr, !llvm.ptr) -> ()
    """

    def __init__(self, function: Op, count: int) -> None:
        self._module = function.parent
        block = function.regions[0].blocks[0]
        pointer = ir.Type.parse(POINTER)
        kind = function_type(function)
        longer = ir.FunctionType.get([*kind.inputs, *[pointer] * count], kind.results)
        function.attributes["function_type"] = ir.TypeAttr.get(longer)
        if "arg_attrs" in function.attributes:
            known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
            every = [*known, *[ir.DictAttr.get({})] * count]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(every)
        self._streams = [block.add_argument(pointer, function.location) for _ in range(count)]
        with function.location, ir.InsertionPoint.at_block_begin(block):
            self.tokens = list(map(self.token, self._streams))

    def pointer(self, stream: Stream) -> Value:
        """Returns a stream, given by its number or as a value, as the pointer that runtime functions take."""
        if isinstance(stream, int):
            return self._streams[stream]
        return stream

    def token(self, stream: Stream) -> Value:
        """Returns a stream, given by its number or as a value, as a token, which GPU operations take."""
        if isinstance(stream, int):
            return self.tokens[stream]
        return create("builtin.unrealized_conversion_cast", [ir.Type.parse(ASYNC)], [stream]).results[0]

    def record(self, stream: Stream) -> Value:
        """Creates calls that record a new event on a stream; returns the event.

        The event is complete when all work before it on the stream is done.
        """
        event = self._call("mgpuEventCreate")
        self._call("mgpuEventRecord", event, self.pointer(stream))
        return event

    def wait(self, stream: Stream, event: Value) -> None:
        self._call("mgpuStreamWaitEvent", self.pointer(stream), event)

    def destroy(self, event: Value) -> None:
        """Creates a call that destroys an event; waits that are already enqueued stay valid."""
        self._call("mgpuEventDestroy", event)

    def synchronize_event(self, event: Value) -> None:
        self._call("mgpuEventSynchronize", event)

    def synchronize_stream(self, stream: Stream) -> None:
        self._call("mgpuStreamSynchronize", self.pointer(stream))

    def _call(self, name: str, *operands: Value) -> Value | None:
        pointer = ir.Type.parse(POINTER)
        (takes, returns) = SIGNATURES[name]
        results = [pointer] * returns
        block = self._module.regions[0].blocks[0]
        symbol = ir.StringAttr.get(name)
        if not any(
            operation.operation.attributes.get("sym_name") == symbol for operation in block.operations
        ):
            with self._module.location, ir.InsertionPoint.at_block_begin(block):
                private_function(name, ir.FunctionType.get([pointer] * takes, results))
        op = create("func.call", results, operands, callee=ir.FlatSymbolRefAttr.get(name))
        if results:
            return op.results[0]
        return None


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


def drop_argument(function: Op, number: int) -> None:
    """Removes argument ``number``, which must be unused, from a function's type, attributes and body."""
    kind = function_type(function)
    inputs = [input_ for index, input_ in enumerate(kind.inputs) if index != number]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results))
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(known[:number] + known[number + 1 :])
    function.regions[0].blocks[0].erase_argument(number)
