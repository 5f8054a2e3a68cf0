"""Lowers GPUX, device work on streams that the program names: to stream arguments, or synchronous.

Tokens of GPUX operations are lowered first, to events and waits of one stream for another.
"""

from dataclasses import dataclass
from itertools import chain

from tuner.gpu.streams import gpux_ops
from tuner.gpu.streams.async_ops import has_tokens
from tuner.gpu.streams.gpux_syntax import STREAM_TYPE
from tuner.gpu.streams.stream_calls import POINTER, Stream, StreamCalls, drop_argument
from tuner.mlir.bindings import Attribute, Block, Op, Value, ir, passmanager
from tuner.mlir.effects.accesses import SHARED, inside
from tuner.mlir.effects.aliases import ASYNC, is_token, last_of
from tuner.mlir.effects.launches import SEGMENTS
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import attributes_of, replace_results, types_of, unsupported

TOKENS_WAIT = "gpu.wait"
YIELDS = frozenset({"scf.yield", "scf.condition"})


def lower_tokens(function: Op) -> None:
    """Replaces async tokens of GPUX operations by events, and by waits of one stream for another, in place.

    A token that control flow forwards becomes the stream of its work: the user of the token waits for all
    work that was put on that stream before. A user on the same stream needs no wait. Raises
    CandidateError(COMPILE) for tokens of other operations, and for other users of tokens.
        %t = "gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, M, M) -> !gpu.async.token
        "gpux.memcpy"(%t, %r, %b, %d) : (!gpu.async.token, !gpux.StreamType, M, M) -> ()
      becomes
        "gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, M, M) -> ()
        %e = "gpux.record_event"(%s) : (!gpux.StreamType) -> !llvm.ptr
        "gpux.wait_event"(%r, %e) : (!gpux.StreamType, !llvm.ptr) -> ()
        "gpux.memcpy"(%r, %b, %d) : (!gpux.StreamType, M, M) -> ()
        "gpux.destroy_event"(%e) : (!llvm.ptr) -> ()
    """
    ops = list(inside(function))
    if not any(has_tokens(op) for op in ops if op.name in {*gpux_ops.WORK, gpux_ops.WAIT}):
        return
    _refuse_others(function, ops)
    lowering = _TokenLowering(function.regions[0].blocks[0])
    if lowering.carry([op for op in ops if op.name in gpux_ops.CHOOSING | YIELDS]):
        # removes iter_args that are the same stream in each iteration, so not selected at run time
        passmanager.PassManager.parse("func.func(canonicalize)").run(function)
    lowering.lower(list(inside(function)))


@dataclass(frozen=True)
class _Source:
    """What a token represents: an event of a stream, or all work on the stream."""

    stream: Value
    event: Value | None = None


class _TokenLowering:
    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._events: dict[Op, Value] = {}  # work whose token is lowered -> the event after the work
        self._last_users: dict[Op, Op] = {}

    def carry(self, ops: list[Op]) -> bool:
        """Replaces tokens that control flow forwards by streams; returns whether there are any."""
        for op in ops:
            for index, operand in enumerate(op.operands):
                is_carried = isinstance(operand.owner, ir.Block) or operand.owner.name in gpux_ops.CHOOSING
                if is_token(operand) and not is_carried:
                    with op.location, ir.InsertionPoint(op):
                        op.operands[index] = self._stream_for(operand)
        carried = list(filter(is_token, chain.from_iterable(map(gpux_ops.defined_values, ops))))
        for token in carried:
            token.set_type(ir.Type.parse(STREAM_TYPE))
        return bool(carried)

    def lower(self, ops: list[Op]) -> None:
        """Replaces tokens of the GPUX operations ``ops`` by events, and waits for tokens by stream waits.

        Changes the function in place.
        """
        lowered = [op for op in ops if op.name == TOKENS_WAIT or has_tokens(op) or _token_count(op)]
        for op in lowered:
            with op.location, ir.InsertionPoint(op):
                if op.name != TOKENS_WAIT:
                    self._lower_work(op)
                elif not list(op.results):  # the host waits
                    sources = list(chain.from_iterable(map(self._sources, op.operands)))
                    for stream in dict.fromkeys(source.stream for source in sources):
                        create(gpux_ops.WAIT, [], [stream])
        for op, event in self._events.items():
            last = self._last_users[op]
            with last.location, ir.InsertionPoint.after(last):
                create(gpux_ops.DESTROY_EVENT, [], [event])
        for op in reversed(lowered):
            op.erase()

    def _lower_work(self, op: Op) -> None:
        count = _token_count(op)
        tokens = list(op.operands)[:count]
        operands = list(op.operands)[count:]
        for source in list(chain.from_iterable(self._sources(token, op) for token in tokens)):
            self._order(operands[0], source)
        kinds = [result.type for result in op.results if not is_token(result)]
        if op.name == gpux_ops.WAIT and list(op.results):
            return  # the host does not wait
        created = create(op.name, kinds, operands, **_attributes(op, count))
        for number in range(len(kinds)):
            op.results[number].replace_all_uses_with(created.results[number])

    def _order(self, stream: Value, source: _Source) -> None:
        if source.event is not None:
            create(gpux_ops.WAIT_EVENT, [], [stream, source.event])
        elif source.stream != stream:
            create(gpux_ops.WAIT_STREAM, [], [stream, source.stream])

    def _sources(self, token: Value, user: Op | None = None) -> list[_Source]:
        """Returns the streams of a token, with an event if ``user`` is in its block on another stream."""
        if gpux_ops.is_stream(token):
            return [_Source(token)]
        work = token.owner.operation
        if work.name == TOKENS_WAIT:
            return list(chain.from_iterable(self._sources(operand, user) for operand in work.operands))
        stream = _stream_operand(work)
        if user is None or user.block != work.block or stream == _stream_operand(user):
            return [_Source(stream)]
        self._last_users[work] = user
        if work not in self._events:
            with work.location, ir.InsertionPoint.after(work):
                self._events[work] = value(gpux_ops.RECORD_EVENT, ir.Type.parse(POINTER), stream)
        return [_Source(stream, self._events[work])]

    def _stream_for(self, token: Value) -> Value:
        """Returns a stream that represents a token: one of its streams, waiting for the others."""
        streams = list(dict.fromkeys(source.stream for source in self._sources(token)))
        if not streams:
            with ir.InsertionPoint.at_block_begin(self._entry):
                return value(
                    gpux_ops.CREATE, ir.Type.parse(STREAM_TYPE), **{gpux_ops.CALLERS: ir.UnitAttr.get()}
                )
        for other in streams[1:]:
            create(gpux_ops.WAIT_STREAM, [], [streams[0], other])
        return streams[0]


def _refuse_others(function: Op, ops: list[Op]) -> None:
    allowed = "those of gpux operations and of gpu.wait, also through scf"
    if any(map(is_token, function.regions[0].blocks[0].arguments)):
        raise unsupported(function, "a token as argument", allowed)
    known = {*gpux_ops.WORK, gpux_ops.WAIT, TOKENS_WAIT} | gpux_ops.CHOOSING | YIELDS
    for op in ops:
        if op.name not in known and any(map(is_token, [*op.operands, *gpux_ops.defined_values(op)])):
            raise unsupported(op, "a token next to GPUX", allowed)


def _token_count(op: Op) -> int:
    """Returns how many operands of GPUX work precede its stream: tokens, or streams in place of tokens."""
    if op.name not in {*gpux_ops.WORK, gpux_ops.WAIT}:
        return 0
    return max((index for index, operand in enumerate(op.operands) if gpux_ops.is_stream(operand)), default=0)


def _stream_operand(op: Op) -> Value:
    return op.operands[_token_count(op)]


def _attributes(op: Op, tokens: int) -> dict[str, Attribute]:
    attributes = attributes_of(op)
    for name in {SEGMENTS, "operand_segment_sizes"} & attributes.keys():
        sizes = list(ir.DenseI32ArrayAttr(attributes[name]))
        if sizes[0] == tokens:
            attributes[name] = ir.DenseI32ArrayAttr.get([0, *sizes[1:]])
    return attributes


def take_stream_from_caller(function: Op) -> None:
    """Replaces a function's arguments of GPUX stream type by ``create_stream`` operations, in place.

    The first stream argument becomes the caller's stream, to which all work is joined.
    """
    block = function.regions[0].blocks[0]
    for index, stream in enumerate(list(filter(gpux_ops.is_stream, block.arguments))):
        mark = {} if index else {gpux_ops.CALLERS: ir.UnitAttr.get()}
        with function.location, ir.InsertionPoint.at_block_begin(block):
            created = create(gpux_ops.CREATE, [stream.type], **mark)
        stream.replace_all_uses_with(created.results[0])
        drop_argument(function, stream.arg_number)


def lower_gpux(function: Op) -> int:
    """Lowers a function's GPUX operations, in place, to asynchronous GPU dialect on stream arguments.

    The first stream argument is the caller's stream. Each ``create_stream`` whose stream is used adds one
    argument. That stream is forked from the caller's stream there, and joined to it at ``destroy_stream``, by
    events. The caller creates the streams once. The program's order is kept. A stream that control flow
    selects becomes a pointer. Returns the number of streams, at least one. The context then rejects
    unregistered dialects. Raises CandidateError(COMPILE) for invalid GPUX.
        func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
          %s = "gpux.create_stream"() : () -> !gpux.StreamType
          "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
          "gpux.wait"(%s) : (!gpux.StreamType) -> ()
          "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
      becomes
        func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %s0: !llvm.ptr, %s1: !llvm.ptr) {
          %t1 = builtin.unrealized_conversion_cast %s1 : !llvm.ptr to !gpu.async.token
          %begin = call @mgpuEventCreate() : () -> !llvm.ptr
          call @mgpuEventRecord(%begin, %s0) : (!llvm.ptr, !llvm.ptr) -> ()
          call @mgpuStreamWaitEvent(%s1, %begin) : (!llvm.ptr, !llvm.ptr) -> ()
          call @mgpuEventDestroy(%begin) : (!llvm.ptr) -> ()
          %0 = gpu.memcpy async [%t1] %b, %a : memref<4xf32>, memref<4xf32>
          call @mgpuStreamSynchronize(%s1) : (!llvm.ptr) -> ()
    """
    lower_tokens(function)
    ops = gpux_ops.checked_gpux_ops(function)
    chosen = gpux_ops.selected_streams(function)
    creates = [op for op in ops if op.name == gpux_ops.CREATE]
    users = {op: {use.owner.operation.name for use in op.results[0].uses} for op in creates}
    created = [
        op for op in creates if gpux_ops.CALLERS not in op.attributes and users[op] - {gpux_ops.DESTROY}
    ]
    # streams to join at the end of the function (True) or of their block: not destroyed, or perhaps selected
    open_ended = {op: bool(chosen) for op in created if chosen or gpux_ops.DESTROY not in users[op]}
    numbers = {op: number for number, op in enumerate(created, start=1)}
    calls = StreamCalls(function, 1 + len(created))
    for op in creates:
        op.results[0].replace_all_uses_with(calls.pointer(numbers.get(op, 0)))
    gpux_ops.make_pointers(chosen)
    lowering = _Lowering(
        calls, numbers, {calls.pointer(number): number for number in range(1 + len(created))}
    )
    for op in ops:
        with op.location, ir.InsertionPoint(op):
            lowering.lower(op)
    for op, is_chosen in open_ended.items():
        lowering.join_at_end(op, function.regions[0].blocks[0] if is_chosen else op.block)
    for op in reversed(ops):
        op.erase()
    ir.Context.current.allow_unregistered_dialects = False
    return 1 + len(created)


@dataclass(frozen=True)
class _Lowering:
    calls: StreamCalls
    # create_stream -> the stream's number; 0, the caller's stream, where the operation is missing
    numbers: dict[Op, int]
    slots: dict[Value, int]  # stream as a pointer -> its number; a missing stream is selected by control flow

    def lower(self, op: Op) -> None:
        """Lowers one operation; replaces the uses of its results. The caller erases the operation."""
        if op.name == gpux_ops.CREATE:
            self._order(0, self.numbers.get(op, 0))
        elif op.name == gpux_ops.DESTROY:
            if not _is_idle(op):
                self._order(self._slot(op), 0)
        elif op.name == gpux_ops.RECORD_EVENT:
            op.results[0].replace_all_uses_with(self.calls.record(self._slot(op)))
        elif op.name == gpux_ops.WAIT_EVENT:
            self.calls.wait(self._slot(op), op.operands[1])
        elif op.name == gpux_ops.DESTROY_EVENT:
            self.calls.destroy(op.operands[0])
        elif op.name == gpux_ops.WAIT_STREAM:
            self._order(self._slot(op, 1), self._slot(op))
        elif op.name == gpux_ops.WAIT:
            self.calls.synchronize_stream(self._slot(op))
        elif op.name not in gpux_ops.IGNORED:
            self._lower_work(op)

    def join_at_end(self, created: Op, block: Block) -> None:
        """Joins a stream to the caller's stream at the end of a block."""
        end = last_of(block)
        with end.location, ir.InsertionPoint(end):
            self._order(self.numbers[created], 0)

    def _order(self, first: Stream, then: int) -> None:
        """Makes stream ``then`` wait for the work that is on stream ``first`` at this point."""
        if not (isinstance(first, int) and first == then):
            event = self.calls.record(first)
            self.calls.wait(then, event)
            self.calls.destroy(event)

    def _lower_work(self, op: Op) -> None:
        is_shared = SHARED in op.attributes  # the host allocates host_shared memory immediately
        tokens = [] if is_shared else [self.calls.token(self._slot(op))]
        attributes = gpux_ops.gpu_attributes(op, len(tokens))
        if is_shared:
            attributes[SHARED] = ir.UnitAttr.get()
        results = types_of(op.results)
        new = create(
            op.name.replace(gpux_ops.PREFIX, "gpu."),
            [*results, *[ir.Type.parse(ASYNC)] * len(tokens)],
            [*tokens, *list(op.operands)[1:]],
            **attributes,
        )
        for index in range(len(results)):
            op.results[index].replace_all_uses_with(new.results[index])

    def _slot(self, op: Op, operand: int = 0) -> Stream:
        return self.slots.get(op.operands[operand], op.operands[operand])


def _is_idle(destroy: Op) -> bool:
    """True if the host has waited for the stream, in the same block, and no work was enqueued since."""
    stream = destroy.operands[0]
    used = [
        op.operation
        for op in destroy.block.operations
        if any(stream in list(inner.operands) for inner in inside(op.operation))
    ]
    number = used.index(destroy)
    return number > 0 and used[number - 1].name == gpux_ops.WAIT


def drop_streams(function: Op) -> None:
    """Converts a function's GPUX operations to synchronous GPU dialect in place, in program order.

    Program order is one of the orders that streams allow. The context then rejects unregistered dialects.
    Raises CandidateError(COMPILE) for operations of the ``gpux`` prefix that are not valid GPUX.

        %s = "gpux.create_stream"() : () -> !gpux.StreamType
        "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
        "gpux.wait"(%s) : (!gpux.StreamType) -> ()
        "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
      becomes
        gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
    """
    lower_tokens(function)
    ops = gpux_ops.checked_gpux_ops(function)
    for op in ops:
        if op.name in gpux_ops.WORK:
            with op.location, ir.InsertionPoint(op):
                types = types_of(op.results)
                name = op.name.replace(gpux_ops.PREFIX, "gpu.")
                new = create(name, types, list(op.operands)[1:], **gpux_ops.gpu_attributes(op, tokens=0))
            replace_results(op, new.results)
    _forget_choices(function, ops)
    for op in reversed(ops):
        op.erase()
    ir.Context.current.allow_unregistered_dialects = False


def _forget_choices(function: Op, ops: list[Op]) -> None:
    """Replaces streams that control flow selects by null pointers."""
    chosen = gpux_ops.selected_streams(function)
    for op in ops if chosen else []:
        if op.name == gpux_ops.CREATE:
            with op.location, ir.InsertionPoint(op):
                null = value("llvm.mlir.zero", ir.Type.parse(POINTER))
            op.results[0].replace_all_uses_with(null)
    gpux_ops.make_pointers(chosen)
