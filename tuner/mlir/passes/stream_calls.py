"""Streams as the last arguments of a function, and the runtime's functions for them and their events."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.passes.async_ops import ASYNC
from tuner.mlir.symbols import function_type

POINTER = "!llvm.ptr"
# Name -> number of pointers that it takes, whether it returns one.
SIGNATURES = {
    "mgpuEventCreate": (0, True),
    "mgpuEventDestroy": (1, False),
    "mgpuEventRecord": (2, False),
    "mgpuEventSynchronize": (1, False),
    "mgpuStreamSynchronize": (1, False),
    "mgpuStreamWaitEvent": (2, False),
}


class StreamCalls:
    """Builds calls at the current insertion point, for the streams of one function."""

    def __init__(self, function: Any, count: int) -> None:
        """Adds ``count`` streams behind the arguments of the function."""
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

    def record(self, stream: int) -> Any:
        """Returns an event that stands for what is on the stream by now."""
        event = self._call("mgpuEventCreate")
        self._call("mgpuEventRecord", event, self._streams[stream])
        return event

    def wait(self, stream: int, event: Any) -> None:
        """Lets a stream wait for an event."""
        self._call("mgpuStreamWaitEvent", self._streams[stream], event)

    def destroy(self, event: Any) -> None:
        """Destroys an event that no later call names; waits for it still hold."""
        self._call("mgpuEventDestroy", event)

    def synchronize_event(self, event: Any) -> None:
        """Lets the host wait for an event."""
        self._call("mgpuEventSynchronize", event)

    def synchronize_stream(self, stream: int) -> None:
        """Lets the host wait for all that is on a stream."""
        self._call("mgpuStreamSynchronize", self._streams[stream])

    def _call(self, name: str, *operands: Any) -> Any:
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
            ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(kind),
                },
                regions=1,
            )


def _symbol(op: Any) -> str | None:
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else None


def _extend_type(function: Any, kinds: list[Any]) -> None:
    kind = function_type(function)
    longer = ir.FunctionType.get([*kind.inputs, *kinds], kind.results)
    function.attributes["function_type"] = ir.TypeAttr.get(longer)
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, *[ir.DictAttr.get({})] * len(kinds)])
