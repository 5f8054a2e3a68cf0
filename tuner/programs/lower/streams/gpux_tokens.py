"""Lowers tokens of GPUX work to an order between streams: events, or a wait for all work of a stream.

Takes GPUX whose work returns and takes ``!gpu.async.token``, which scf may forward; removes the tokens. A
token that is used in its own block becomes an event after the work that returned it. A token that control
flow forwards becomes the stream of that work: its user waits for all work that is on that stream by then. A
token whose user is on the same stream orders nothing more. Rejected: tokens of other operations, and other
users of tokens.

    %t = "gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, M, M) -> !gpu.async.token
    "gpux.memcpy"(%t, %r, %b, %d) : (!gpu.async.token, !gpux.StreamType, M, M) -> ()
  becomes
    "gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, M, M) -> ()
    %e = "gpux.record_event"(%s) : (!gpux.StreamType) -> !llvm.ptr
    "gpux.wait_event"(%r, %e) : (!gpux.StreamType, !llvm.ptr) -> ()
    "gpux.memcpy"(%r, %b, %d) : (!gpux.StreamType, M, M) -> ()
    "gpux.destroy_event"(%e) : (!llvm.ptr) -> ()
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Attribute, Block, Op, Value, ir, passmanager
from tuner.mlir.effects.address_flow import is_token
from tuner.mlir.effects.buffer_accesses import inside
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.lower.streams.gpux_ops import (
    CALLERS,
    CREATE,
    DESTROY_EVENT,
    RECORD_EVENT,
    WAIT,
    WAIT_EVENT,
    WAIT_STREAM,
    WORK,
    is_stream,
)
from tuner.programs.lower.streams.gpux_syntax import STREAM_TYPE
from tuner.programs.lower.streams.stream_calls import POINTER

TOKENS_WAIT = "gpu.wait"
CARRIERS = frozenset(
    {"scf.for", "scf.while", "scf.if", "scf.index_switch", "scf.execute_region", "arith.select"}
)
YIELDS = frozenset({"scf.yield", "scf.condition"})


def lower_tokens(function: Op) -> None:
    """Replaces async tokens of GPUX operations by events, and by waits of one stream for another, in place.

    GPUX is Intel's MLIR dialect of GPU work on named streams. Raises CandidateError(COMPILE) for tokens of
    other operations, and for other users of tokens.
    """
    ops = list(inside(function))
    if not any(_has_tokens(op) for op in ops if op.name in {*WORK, WAIT}):
        return
    _refuse_others(function, ops)
    lowering = _Lowering(function.regions[0].blocks[0])
    if lowering.carry([op for op in ops if op.name in CARRIERS | YIELDS]):
        passmanager.PassManager.parse("func.func(canonicalize)").run(
            function
        )  # a loop's one stream is no choice
    lowering.lower(list(inside(function)))


@dataclass(frozen=True)
class _Source:
    """What a token represents: an event of a stream, or all work on the stream."""

    stream: Value
    event: Value | None = None


class _Lowering:
    """Creates the order between streams that tokens express."""

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._events: dict[Op, Value] = {}  # work whose token is lowered -> the event after the work
        self._last_users: dict[Op, Op] = {}

    def carry(self, ops: list[Op]) -> bool:
        """Replaces tokens that control flow forwards by streams; returns whether there are any."""
        for op in ops:
            for number, operand in enumerate(op.operands):
                if is_token(operand) and not _is_carried(operand):
                    with op.location, ir.InsertionPoint(op):
                        op.operands[number] = self._stream_for(operand)
        carried = [each for op in ops for each in _defined(op) if is_token(each)]
        for each in carried:
            each.set_type(ir.Type.parse(STREAM_TYPE))
        return bool(carried)

    def lower(self, ops: list[Op]) -> None:
        """Lowers the work with tokens, and the waits for tokens, among the operations of a function."""
        lowered = [op for op in ops if op.name == TOKENS_WAIT or _has_tokens(op) or _token_count(op)]
        for op in lowered:
            with op.location, ir.InsertionPoint(op):
                self._lower_wait(op) if op.name == TOKENS_WAIT else self._lower_work(op)
        for op, event in self._events.items():
            last = self._last_users[op]
            with last.location, ir.InsertionPoint.after(last):
                create(DESTROY_EVENT, [], [event])
        for op in reversed(lowered):
            op.erase()

    def _lower_work(self, op: Op) -> None:
        """Creates an operation without its tokens, after the waits that the tokens express."""
        count = _token_count(op)
        tokens, operands = list(op.operands)[:count], list(op.operands)[count:]
        for source in [each for token in tokens for each in self._sources(token, op)]:
            self._order(operands[0], source)
        kinds = [each.type for each in op.results if not is_token(each)]
        if op.name == WAIT and list(op.results):
            return  # the host does not wait
        made = create(op.name, kinds, operands, **_attributes(op, count))
        for number in range(len(kinds)):
            op.results[number].replace_all_uses_with(made.results[number])

    def _lower_wait(self, op: Op) -> None:
        """Makes the host wait for the streams of tokens, unless the wait is asynchronous."""
        if not list(op.results):
            streams = dict.fromkeys(source.stream for each in op.operands for source in self._sources(each))
            for stream in streams:
                create(WAIT, [], [stream])

    def _order(self, stream: Value, source: _Source) -> None:
        """Makes a stream wait for the work that a token represents."""
        if source.event is not None:
            create(WAIT_EVENT, [], [stream, source.event])
        elif source.stream != stream:
            create(WAIT_STREAM, [], [stream, source.stream])

    def _sources(self, token: Value, user: Op | None = None) -> list[_Source]:
        """Returns what a token represents; an event only for a user in the same block on another stream."""
        if is_stream(token):
            return [_Source(token)]
        work = token.owner.operation
        if work.name == TOKENS_WAIT:
            return [source for each in work.operands for source in self._sources(each, user)]
        stream = _stream_operand(work)
        if user is None or user.block != work.block or stream == _stream_operand(user):
            return [_Source(stream)]
        self._last_users[work] = user
        return [_Source(stream, self._event(work, stream))]

    def _event(self, work: Op, stream: Value) -> Value:
        if work not in self._events:
            with work.location, ir.InsertionPoint.after(work):
                self._events[work] = value(RECORD_EVENT, ir.Type.parse(POINTER), stream)
        return self._events[work]

    def _stream_for(self, token: Value) -> Value:
        """Returns a stream that represents a token: one of its streams, waiting for the others."""
        streams = list(dict.fromkeys(source.stream for source in self._sources(token)))
        if not streams:
            with ir.InsertionPoint.at_block_begin(self._entry):
                return value(CREATE, ir.Type.parse(STREAM_TYPE), **{CALLERS: ir.UnitAttr.get()})
        for other in streams[1:]:
            create(WAIT_STREAM, [], [streams[0], other])
        return streams[0]


def _refuse_others(function: Op, ops: list[Op]) -> None:
    """Raises CandidateError for tokens, and users of tokens, that are neither GPUX nor control flow."""
    allowed = "those of gpux operations and of gpu.wait, also through scf"
    if any(map(is_token, function.regions[0].blocks[0].arguments)):
        raise unsupported(function, "a token as argument", allowed)
    known = {*WORK, WAIT, TOKENS_WAIT} | CARRIERS | YIELDS
    for op in ops:
        if op.name not in known and any(map(is_token, [*op.operands, *_defined(op)])):
            raise unsupported(op, "a token next to GPUX", allowed)


def _token_count(op: Op) -> int:
    """Returns how many operands of GPUX work precede its stream: tokens, or streams in place of tokens."""
    if op.name not in {*WORK, WAIT}:
        return 0
    return max((number for number, each in enumerate(op.operands) if is_stream(each)), default=0)


def _stream_operand(op: Op) -> Value:
    return op.operands[_token_count(op)]


def _attributes(op: Op, tokens: int) -> dict[str, Attribute]:
    """Returns an operation's attributes, with 0 as the number of its tokens."""
    attributes = attributes_of(op)
    for name in {SEGMENTS, "operand_segment_sizes"} & attributes.keys():
        sizes = list(ir.DenseI32ArrayAttr(attributes[name]))
        if sizes[0] == tokens:
            attributes[name] = ir.DenseI32ArrayAttr.get([0, *sizes[1:]])
    return attributes


def _has_tokens(op: Op) -> bool:
    return any(map(is_token, [*op.operands, *op.results]))


def _is_carried(token: Value) -> bool:
    return isinstance(token.owner, ir.Block) or token.owner.name in CARRIERS


def _defined(op: Op) -> list[Value]:
    """Returns the results of an operation and the arguments of its blocks."""
    arguments = [each for region in op.regions for block in region.blocks for each in block.arguments]
    return [*op.results, *arguments]
