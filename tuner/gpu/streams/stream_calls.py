"""Streams as arguments of a host function, and calls of MLIR's GPU runtime for streams and events."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import ASYNC
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import function_type, private_function

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
    """Adds ``count`` streams as last arguments to a function, and creates calls for streams and events.

    The called functions are those of MLIR's CUDA runtime wrappers; calls are created at the insertion point.
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
        """Returns a stream, an index or a value, as the pointer that runtime functions take."""
        if isinstance(stream, int):
            return self._streams[stream]
        return stream

    def token(self, stream: Stream) -> Value:
        """Returns a stream, an index or a value, as the async token that GPU operations take."""
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
        """Creates a call that makes later work on a stream wait for an event; the host does not wait."""
        self._call("mgpuStreamWaitEvent", self.pointer(stream), event)

    def destroy(self, event: Value) -> None:
        """Creates a call that destroys an event; waits that are already enqueued stay valid."""
        self._call("mgpuEventDestroy", event)

    def synchronize_event(self, event: Value) -> None:
        """Creates a call that makes the host wait for an event."""
        self._call("mgpuEventSynchronize", event)

    def synchronize_stream(self, stream: Stream) -> None:
        """Creates a call that makes the host wait for all work on a stream."""
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


def drop_argument(function: Op, number: int) -> None:
    """Removes argument ``number``, which must be unused, from a function's type, attributes and body."""
    kind = function_type(function)
    inputs = [input_ for index, input_ in enumerate(kind.inputs) if index != number]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results))
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(known[:number] + known[number + 1 :])
    function.regions[0].blocks[0].erase_argument(number)
