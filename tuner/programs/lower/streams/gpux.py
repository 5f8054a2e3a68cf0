"""Lowers GPUX, device work on streams that the program itself names, to streams as trailing arguments.

Takes GPUX (``gpux_ops.py``); produces asynchronous GPU dialect on streams that are arguments, as
``async_streams.py`` does. The first stream is the caller's. Each ``create_stream`` adds a stream, forked from
the caller's stream there and joined to it at ``destroy_stream``, by events; the caller creates the streams
once. The program's order is kept: no dependences are computed. Of several stream arguments the first is the
caller's stream; the others are handled as if the program created them at its beginning. A stream that control
flow selects becomes a pointer that control flow selects.

    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      %s = "gpux.create_stream"() : () -> !gpux.StreamType
      "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
      "gpux.wait"(%s) : (!gpux.StreamType) -> ()
      "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
      return
    }
  becomes
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %s0: !llvm.ptr, %s1: !llvm.ptr) {
      %t0 = builtin.unrealized_conversion_cast %s0 : !llvm.ptr to !gpu.async.token
      %t1 = builtin.unrealized_conversion_cast %s1 : !llvm.ptr to !gpu.async.token
      %begin = call @mgpuEventCreate() : () -> !llvm.ptr
      call @mgpuEventRecord(%begin, %s0) : (!llvm.ptr, !llvm.ptr) -> ()
      call @mgpuStreamWaitEvent(%s1, %begin) : (!llvm.ptr, !llvm.ptr) -> ()
      call @mgpuEventDestroy(%begin) : (!llvm.ptr) -> ()
      %0 = gpu.memcpy async [%t1] %b, %a : memref<4xf32>, memref<4xf32>
      call @mgpuStreamSynchronize(%s1) : (!llvm.ptr) -> ()
      return
    }
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.address_flow import ASYNC
from tuner.mlir.effects.buffer_accesses import SHARED, inside
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.symbols import function_type
from tuner.programs.lower.streams.gpux_ops import (
    CALLERS,
    CREATE,
    DESTROY,
    DESTROY_EVENT,
    IGNORED,
    ORDERING,
    PREFIX,
    RECORD_EVENT,
    WAIT,
    WAIT_EVENT,
    checked_gpux_ops,
    gpu_attributes,
    is_stream,
)
from tuner.programs.lower.streams.gpux_tokens import lower_tokens
from tuner.programs.lower.streams.stream_calls import Stream, StreamCalls
from tuner.programs.lower.streams.stream_values import make_pointers, selected_streams


def take_stream_from_caller(function: Op) -> None:
    """Replaces the GPUX stream arguments of a function by ``gpux.create_stream`` operations, in place.

    The first one is marked as the caller's stream. GPUX is Intel's MLIR dialect of GPU work on named streams.
    """
    block = function.regions[0].blocks[0]
    for number, stream in enumerate([argument for argument in block.arguments if is_stream(argument)]):
        mark = {} if number else {CALLERS: ir.UnitAttr.get()}
        with function.location, ir.InsertionPoint.at_block_begin(block):
            made = create(CREATE, [stream.type], **mark)
        stream.replace_all_uses_with(made.results[0])
        drop_argument(function, stream.arg_number)


def lower_gpux(function: Op) -> int:
    """Lowers a function's GPUX operations, in place, to asynchronous GPU dialect on stream arguments.

    GPUX is Intel's MLIR dialect of GPU work on named streams. Returns how many streams the function takes as
    its last arguments, at least one. The context then rejects unregistered dialects. Raises
    CandidateError(COMPILE) for invalid GPUX.
    """
    lower_tokens(function)
    ops = checked_gpux_ops(function)
    chosen = selected_streams(function)
    creates = [op for op in ops if op.name == CREATE]
    made = [op for op in creates if CALLERS not in op.attributes and _has_work(op)]
    open_ended = {op: bool(chosen) for op in made if chosen or not _users_named(op, DESTROY)}
    numbers = {op: number for number, op in enumerate(made, start=1)}
    calls = StreamCalls(function, 1 + len(made))
    for op in creates:
        op.results[0].replace_all_uses_with(calls.pointer(numbers.get(op, 0)))
    make_pointers(chosen)
    lowering = _Lowering(calls, numbers, {calls.pointer(number): number for number in range(1 + len(made))})
    for op in ops:
        with op.location, ir.InsertionPoint(op):
            lowering.lower(op)
    for op, is_chosen in open_ended.items():
        lowering.join_at_end(op, function.regions[0].blocks[0] if is_chosen else op.block)
    for op in reversed(ops):
        op.erase()
    ir.Context.current.allow_unregistered_dialects = False
    return 1 + len(made)


@dataclass(frozen=True)
class _Lowering:
    """Creates the lowered form of GPUX operations at the current insertion point."""

    calls: StreamCalls
    # create_stream -> its number; a create_stream that is missing here stands for the caller's stream, number
    # 0
    numbers: dict[Op, int]
    slots: dict[Value, int]  # stream as a pointer -> its number; a missing stream is selected by control flow

    def lower(self, op: Op) -> None:
        """Lowers one operation; replaces the uses of its results. The caller erases the operation."""
        if op.name == CREATE:
            self._order(0, self.numbers.get(op, 0))
        elif op.name in IGNORED:
            return
        elif op.name == DESTROY:
            self._join(op)
        elif op.name in ORDERING:
            self._lower_order(op)
        elif op.name == WAIT:
            self.calls.synchronize_stream(self._slot(op))
        else:
            self._lower_work(op)

    def join_at_end(self, made: Op, block: Block) -> None:
        """Joins a stream to the caller's stream at the end of a block."""
        end = last_of(block)
        with end.location, ir.InsertionPoint(end):
            self._order(self.numbers[made], 0)

    def _join(self, op: Op) -> None:
        if not _is_idle(op):
            self._order(self._slot(op), 0)

    def _lower_order(self, op: Op) -> None:
        if op.name == RECORD_EVENT:
            op.results[0].replace_all_uses_with(self.calls.record(self._slot(op)))
        elif op.name == WAIT_EVENT:
            self.calls.wait(self._slot(op), op.operands[1])
        elif op.name == DESTROY_EVENT:
            self.calls.destroy(op.operands[0])
        else:
            self._order(self._slot(op, 1), self._slot(op))

    def _order(self, first: Stream, then: int) -> None:
        """Makes stream ``then`` wait for the work that is on stream ``first`` at this point."""
        if not (isinstance(first, int) and first == then):
            event = self.calls.record(first)
            self.calls.wait(then, event)
            self.calls.destroy(event)

    def _lower_work(self, op: Op) -> None:
        is_shared = SHARED in op.attributes  # the host allocates host_shared memory immediately
        tokens = [] if is_shared else [self.calls.token(self._slot(op))]
        attributes = gpu_attributes(op, len(tokens))
        if is_shared:
            attributes[SHARED] = ir.UnitAttr.get()
        results = [result.type for result in op.results]
        new = create(
            op.name.replace(PREFIX, "gpu."),
            [*results, *[ir.Type.parse(ASYNC)] * len(tokens)],
            [*tokens, *list(op.operands)[1:]],
            **attributes,
        )
        for index in range(len(results)):
            op.results[index].replace_all_uses_with(new.results[index])

    def _slot(self, op: Op, operand: int = 0) -> Stream:
        return self.slots.get(op.operands[operand], op.operands[operand])


def drop_argument(function: Op, number: int) -> None:
    """Removes argument ``number`` of a function, which must be unused, from its type, attributes and body."""
    kind = function_type(function)
    inputs = [each for index, each in enumerate(kind.inputs) if index != number]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results))
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(known[:number] + known[number + 1 :])
    function.regions[0].blocks[0].erase_argument(number)


def _is_idle(destroy: Op) -> bool:
    """True if the host has waited for the stream, in the same block, and no work was enqueued since."""
    stream = destroy.operands[0]
    used = [
        op.operation
        for op in destroy.block.operations
        if any(stream in list(inner.operands) for inner in inside(op.operation))
    ]
    number = used.index(destroy)
    return number > 0 and used[number - 1].name == WAIT


def _users_named(op: Op, name: str) -> list[Op]:
    """Returns the users of an operation's result with the given operation name."""
    return [user for user in _users(op) if user.name == name]


def _has_work(made: Op) -> bool:
    return any(user.name != DESTROY for user in _users(made))


def _users(op: Op) -> list[Op]:
    return [use.owner.operation for use in op.results[0].uses]
