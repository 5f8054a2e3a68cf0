"""Adds streams as trailing arguments to a function, and creates runtime calls for streams and events.

Streams and events are ``!llvm.ptr``; the functions are those of MLIR's CUDA runtime wrappers, declared on
first use.

    func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
    func.func @main(%a: memref<4xf32>, %stream: !llvm.ptr) {
      %event = call @mgpuEventCreate() : () -> !llvm.ptr
      call @mgpuEventRecord(%event, %stream) : (!llvm.ptr, !llvm.ptr) -> ()
"""

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.address_flow import ASYNC
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.symbols import function_type, private_function

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


class StreamCalls:
    """Adds streams to a function's arguments, and creates calls of MLIR's GPU runtime on them.

    The streams are pointer arguments that are added to the function; ``token`` gives a stream as the
    !gpu.async.token that upstream's operations take. Calls are created at the current insertion point, and
    the runtime functions declared at first use.
    """

    def __init__(self, function: Op, count: int) -> None:
        """Adds ``count`` streams after the arguments of the function."""
        self._module = function.parent
        block = function.regions[0].blocks[0]
        pointer = ir.Type.parse(POINTER)
        _extend_type(function, [pointer] * count)
        self._streams = [block.add_argument(pointer, function.location) for _ in range(count)]
        with function.location, ir.InsertionPoint.at_block_begin(block):
            token = ir.Type.parse(ASYNC)
            self.tokens = [
                create("builtin.unrealized_conversion_cast", [token], [stream]).results[0]
                for stream in self._streams
            ]

    def pointer(self, stream: Stream) -> Value:
        """Returns a stream, given by number or value, as the pointer that runtime functions take."""
        return self._streams[stream] if isinstance(stream, int) else stream

    def token(self, stream: Stream) -> Value:
        """Returns a stream, given by number or value, as a ``!gpu.async.token``, which GPU operations take.

        For a stream that control flow selects, creates the cast at the current insertion point.
        """
        if isinstance(stream, int):
            return self.tokens[stream]
        return create("builtin.unrealized_conversion_cast", [ir.Type.parse(ASYNC)], [stream]).results[0]

    def record(self, stream: Stream) -> Value:
        """Creates calls that create an event and record it on a stream; returns the event.

        The event completes when all work that was enqueued on the stream before is complete.
        """
        event = self._call("mgpuEventCreate")
        self._call("mgpuEventRecord", event, self.pointer(stream))
        return event

    def wait(self, stream: Stream, event: Value) -> None:
        """Creates a call that makes a stream wait for an event (mgpuStreamWaitEvent)."""
        self._call("mgpuStreamWaitEvent", self.pointer(stream), event)

    def destroy(self, event: Value) -> None:
        """Creates a call that destroys an event; waits that are already enqueued stay valid."""
        self._call("mgpuEventDestroy", event)

    def synchronize_event(self, event: Value) -> None:
        """Creates a call that makes the host wait for an event (mgpuEventSynchronize)."""
        self._call("mgpuEventSynchronize", event)

    def synchronize_stream(self, stream: Stream) -> None:
        """Creates a call that makes the host wait for all work on a stream (mgpuStreamSynchronize)."""
        self._call("mgpuStreamSynchronize", self.pointer(stream))

    def _call(self, name: str, *operands: Value) -> Value | None:
        self._declare(name)
        results = [ir.Type.parse(POINTER)] if SIGNATURES[name][1] else []
        op = create("func.call", results, operands, callee=ir.FlatSymbolRefAttr.get(name))
        return op.results[0] if results else None

    def _declare(self, name: str) -> None:
        block = self._module.regions[0].blocks[0]
        if any(_symbol(op) == name for op in block.operations):
            return
        pointer = ir.Type.parse(POINTER)
        takes, returns = SIGNATURES[name]
        kind = ir.FunctionType.get([pointer] * takes, [pointer] * returns)
        with self._module.location, ir.InsertionPoint.at_block_begin(block):
            private_function(name, kind)


def _symbol(op: Op) -> str | None:
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else None


def _extend_type(function: Op, kinds: list[Type]) -> None:
    kind = function_type(function)
    longer = ir.FunctionType.get([*kind.inputs, *kinds], kind.results)
    function.attributes["function_type"] = ir.TypeAttr.get(longer)
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, *[ir.DictAttr.get({})] * len(kinds)])
