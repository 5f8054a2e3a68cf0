"""Lowers the GPUX dialect: device work on streams that the program itself names.

GPUX is Intel's, see <https://github.com/intel/mlir-extensions/blob/main/docs/rfcs/GPUX.md>. Its operations
are those of the GPU dialect with a stream as operand, written in generic form. IRDL cannot define its types,
whose names have upper case; so the context lets unknown dialects pass until this pass has run, and all checks
are here.
"""

from dataclasses import dataclass
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.interpreter import parse
from tuner.mlir.passes.async_ops import ASYNC, is_token
from tuner.mlir.passes.buffer_accesses import inside
from tuner.mlir.passes.carried_values import last_of
from tuner.mlir.passes.launch_operands import SEGMENTS
from tuner.mlir.passes.stream_calls import StreamCalls
from tuner.mlir.symbols import function_type
from tuner.mlir.unfit import unfit

PREFIX, STREAM = "gpux.", "!gpux.StreamType"
CREATE, DESTROY, WAIT = "gpux.create_stream", "gpux.destroy_stream", "gpux.wait"
CALLERS = "tuner.caller"  # marks the stream that was an argument
# Operation -> segments of its operands, less tokens and stream; none where they are not told apart.
WORK: dict[str, int | None] = {
    "gpux.alloc": 2,
    "gpux.dealloc": None,
    "gpux.launch_func": 8,
    "gpux.memcpy": None,
    "gpux.memset": None,
}
OPERANDS = {"gpux.dealloc": 1, "gpux.memcpy": 2, "gpux.memset": 2}
KNOWN = frozenset({CREATE, DESTROY, WAIT, *WORK})


def parse_with_gpux(text: str, what: str) -> ir.Module:
    """Parses MLIR that may hold GPUX; the context then lets unknown dialects pass until ``lower_gpux``."""
    if PREFIX in text:
        ir.Context.current.allow_unregistered_dialects = True
    return parse(text, what)


def uses_gpux(function: Any) -> bool:
    """Tells whether a function names streams."""
    arguments = function.regions[0].blocks[0].arguments
    return any(op.name.startswith(PREFIX) for op in inside(function)) or any(map(_is_stream, arguments))


def take_stream_from_caller(function: Any) -> None:
    """Removes a stream among the arguments; it becomes a marked ``gpux.create_stream``.

    Raises CandidateError(COMPILE) for more than one.
    """
    block = function.regions[0].blocks[0]
    streams = [argument for argument in block.arguments if _is_stream(argument)]
    if len(streams) > 1:
        raise unfit(function, f"{len(streams)} streams as arguments", "one: that of the caller")
    for stream in streams:
        with function.location, ir.InsertionPoint.at_block_begin(block):
            made = create(CREATE, [stream.type], **{CALLERS: ir.UnitAttr.get()})
        stream.replace_all_uses_with(made.results[0])
        _drop_argument(function, stream.arg_number)


def lower_gpux(function: Any) -> int:
    """Rewrites a function; returns how many streams it takes as its last arguments.

    The first is the caller's. Each ``create_stream`` is one more, forked from it there and joined to it by
    ``destroy_stream``; whoever calls creates them once. Raises CandidateError(COMPILE) for what is no GPUX.
    """
    ops = [op for op in inside(function) if op.name.startswith(PREFIX)]
    for op in ops:
        _check(op)
    _check_destroyed(ops)
    made = [op for op in ops if op.name == CREATE and CALLERS not in op.attributes and _has_work(op)]
    slots = {op.results[0]: number for number, op in enumerate(made, start=1)}
    lowering = _Lowering(StreamCalls(function, 1 + len(made)), slots)
    for op in ops:
        with op.location, ir.InsertionPoint(op):
            lowering.lower(op)
    lowering.join_the_rest(made)
    for op in reversed(ops):
        op.erase()
    ir.Context.current.allow_unregistered_dialects = False
    return 1 + len(made)


def launch_segments(tokens: int, sizes: list[int]) -> Any:
    """Returns the segments of ``gpu.launch_func`` for those of GPUX, which knows no clusters."""
    return ir.DenseI32ArrayAttr.get([tokens, *sizes[:6], 0, 0, 0, *sizes[6:], 0])


@dataclass(frozen=True)
class _Lowering:
    """Builds what stands for each operation, at the current insertion point."""

    calls: StreamCalls
    slots: dict[Any, int]  # created streams; any other is the caller's

    def lower(self, op: Any) -> None:
        """Builds for one operation; what used its result uses the new one's."""
        if op.name == CREATE:
            self._order(0, self.slots.get(op.results[0], 0))
        elif op.name == DESTROY:
            self._join(op)
        elif op.name == WAIT:
            self.calls.synchronize_stream(self._slot(op))
        else:
            self._lower_work(op)

    def join_the_rest(self, made: list[Any]) -> None:
        """Joins streams that are never destroyed, where their block ends."""
        for op in made:
            if not _users_named(op, DESTROY):
                end = last_of(op.block)
                with end.location, ir.InsertionPoint(end):
                    self._order(self.slots[op.results[0]], 0)

    def _join(self, op: Any) -> None:
        if not _is_idle(op):
            self._order(self._slot(op), 0)

    def _order(self, first: int, then: int) -> None:
        """Lets one stream wait for what is on another by now."""
        if first != then:
            event = self.calls.record(first)
            self.calls.wait(then, event)
            self.calls.destroy(event)

    def _lower_work(self, op: Any) -> None:
        attributes = {name: op.attributes[name] for name in ("kernel", "hostShared") if name in op.attributes}
        is_shared = attributes.pop("hostShared", None) is not None
        tokens = [] if is_shared else [self.calls.tokens[self._slot(op)]]
        results = [result.type for result in op.results]
        sizes = _sizes(op)
        if op.name == "gpux.alloc":
            attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([len(tokens), *sizes])
            if is_shared:
                attributes["hostShared"] = ir.UnitAttr.get()
        elif op.name == "gpux.launch_func":
            attributes[SEGMENTS] = launch_segments(1, sizes)
        new = create(
            op.name.replace(PREFIX, "gpu."),
            [*results, *[ir.Type.parse(ASYNC)] * len(tokens)],
            [*tokens, *list(op.operands)[1:]],
            **attributes,
        )
        for index in range(len(results)):
            op.results[index].replace_all_uses_with(new.results[index])

    def _slot(self, op: Any) -> int:
        return self.slots.get(op.operands[0], 0)


def _check(op: Any) -> None:
    if op.name not in KNOWN:
        raise unfit(op, op.name, ", ".join(sorted(KNOWN)))
    if any(is_token(value) for value in [*op.operands, *op.results]):
        raise unfit(op, "async tokens", "the order of a stream")
    if op.name == CREATE:
        if list(op.operands):
            raise unfit(op, "a device or context", "none: the program's own")
        return
    if not list(op.operands) or not _is_stream(op.operands[0]):
        raise unfit(op, "no stream as first operand", STREAM)
    owner = op.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != CREATE:
        raise unfit(
            op, "a stream that control flow chooses", f"one of {CREATE}, or an argument of the function"
        )
    count = len(op.operands) - 1
    if sum(_sizes(op)) != count or count != OPERANDS.get(op.name, count if op.name in WORK else 0):
        raise unfit(op, f"{count} operands behind the stream", f"those of gpu.{op.name.removeprefix(PREFIX)}")


def _check_destroyed(ops: list[Any]) -> None:
    """Raises CandidateError for what uses a stream behind its end: nothing would wait for it."""
    for place, op in enumerate(ops):
        if op.name == DESTROY:
            for later in ops[place + 1 :]:
                if op.operands[0] in list(later.operands) and _is_below(later, op.block):
                    raise unfit(later, "a stream that is destroyed before", "one that is still there")


def _is_below(op: Any, block: Any) -> bool:
    while op.parent is not None:
        if op.block == block:
            return True
        op = op.parent
    return False


def _sizes(op: Any) -> list[int]:
    """Returns how many operands each segment has, less tokens and stream."""
    expected = WORK.get(op.name)
    if expected is None:
        return [len(op.operands) - 1]
    for name in (SEGMENTS, "operand_segment_sizes"):  # the second is how it was spelt until 2023
        if name in op.attributes:
            sizes = list(ir.DenseI32ArrayAttr(op.attributes[name]))
            if len(sizes) != 2 + expected or sizes[:2] != [0, 1]:
                raise unfit(op, f"{name} = {sizes}", f"0, 1 and {expected} more")
            return sizes[2:]
    if op.name == "gpux.alloc":
        return [len(op.operands) - 1, 0]
    raise unfit(op, f"no {SEGMENTS}", f"0, 1 and {expected} more")


def _is_idle(destroy: Any) -> bool:
    """Tells whether the host has waited for the stream, in the block, and nothing came behind."""
    stream = destroy.operands[0]
    used = [
        op.operation
        for op in destroy.block.operations
        if any(stream in list(inner.operands) for inner in inside(op.operation))
    ]
    place = used.index(destroy)
    return place > 0 and used[place - 1].name == WAIT


def _users_named(op: Any, name: str) -> list[Any]:
    """Returns the users of an op's result that have a name."""
    return [user for user in _users(op) if user.name == name]


def _has_work(made: Any) -> bool:
    return any(user.name != DESTROY for user in _users(made))


def _users(op: Any) -> list[Any]:
    return [use.owner.operation for use in op.results[0].uses]


def _drop_argument(function: Any, number: int) -> None:
    kind = function_type(function)
    inputs = [each for place, each in enumerate(kind.inputs) if place != number]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results))
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(known[:number] + known[number + 1 :])
    function.regions[0].blocks[0].erase_argument(number)


def _is_stream(value: Any) -> bool:
    return str(value.type) == STREAM
