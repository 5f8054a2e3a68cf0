"""The GPUX dialect: its operations, and the checks that a registered dialect would make.

GPUX is Intel's, see <https://github.com/intel/mlir-extensions/blob/main/docs/rfcs/GPUXDialect.md>. Its
operations are those of the GPU dialect with a stream as first operand, in printed form (``gpux_syntax``) or
in generic form. IRDL cannot define the stream type, whose name has upper case letters. Therefore the context
allows unregistered dialects until GPUX is lowered, and all checks are here.

    %s = "gpux.create_stream"() : () -> !gpux.StreamType
    "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
    "gpux.wait"(%s) : (!gpux.StreamType) -> ()
    "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
"""

from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.effects.address_flow import is_token
from tuner.mlir.effects.buffer_accesses import inside
from tuner.mlir.interpreter import parse
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.walking import ancestor_in_block
from tuner.programs.lower.streams.async_ops import is_filled_by_runtime
from tuner.programs.lower.streams.gpux_syntax import STREAM_TYPE, to_generic

PREFIX = "gpux."
CREATE, DESTROY, WAIT = "gpux.create_stream", "gpux.destroy_stream", "gpux.wait"
ALLOC, LAUNCH, MEMSET = "gpux.alloc", "gpux.launch_func", "gpux.memset"
# Device work -> number of operand segments without tokens and stream; None where operands have no segments.
WORK: dict[str, int | None] = {
    ALLOC: 2,
    "gpux.dealloc": None,
    LAUNCH: 8,
    "gpux.memcpy": None,
    MEMSET: None,
}
OPERANDS = {"gpux.dealloc": 1, "gpux.memcpy": 2, MEMSET: 2}  # number of operands, without the stream
# Operations on the device and the context, which are always the program's.
IGNORED = frozenset(f"gpux.{verb}_{what}" for verb in ("create", "destroy") for what in ("device", "context"))
IGNORED_TYPES = ("!gpux.DeviceType", "!gpux.ContextType")
# What tokens are lowered to: a value that is an event, a stream's wait for an event, a stream's wait for all
# work of another stream.
RECORD_EVENT, DESTROY_EVENT = "gpux.record_event", "gpux.destroy_event"
WAIT_EVENT, WAIT_STREAM = "gpux.wait_event", "gpux.wait_stream"
ORDERING = frozenset({RECORD_EVENT, DESTROY_EVENT, WAIT_EVENT, WAIT_STREAM})
CALLERS = "tuner.caller"  # marks the stream that was an argument, or that represents such a stream
KNOWN = frozenset({CREATE, DESTROY, WAIT, *WORK, *IGNORED})


def parse_with_gpux(text: str, what: str) -> ir.Module:
    """Parses MLIR text that may contain GPUX, a dialect that MLIR does not know; ``what`` names it in errors.

    If it does, the context allows unregistered dialects. Raises CandidateError(BIND) for invalid text.
    """
    if PREFIX not in text:
        return parse(text, what)
    ir.Context.current.allow_unregistered_dialects = True
    return parse(to_generic(text), what)


def uses_gpux(function: Op) -> bool:
    """Returns whether a function contains GPUX operations or takes a GPUX stream.

    GPUX is Intel's MLIR dialect of GPU work on named streams.
    """
    return bool(_gpux_ops(function)) or any(map(is_stream, function.regions[0].blocks[0].arguments))


def checked_gpux_ops(function: Op) -> list[Op]:
    """Returns the GPUX operations of a function in pre-order, after checking their operands and order.

    GPUX is Intel's MLIR dialect of GPU work on named streams. Raises CandidateError(COMPILE) for invalid
    GPUX.
    """
    ops = _gpux_ops(function)
    for op in ops:
        _check(op)
    _check_destroyed(ops)
    return ops


def is_stream(value: Value) -> bool:
    """Returns whether a value has the type ``!gpux.StreamType``, a stream of Intel's GPUX dialect."""
    return str(value.type) == STREAM_TYPE


def segment_sizes(op: Op) -> list[int]:
    """Returns the sizes of a GPUX operation's operand segments, without those of tokens and of the stream.

    For an operation without segments: the number of operands after the stream. GPUX is Intel's MLIR dialect
    of GPU work on named streams. Raises CandidateError(COMPILE) for an attribute of segment sizes that does
    not fit, or that a launch lacks; an allocation may lack it.
    """
    expected = WORK.get(op.name)
    if expected is None:
        return [len(op.operands) - 1]
    for name in (SEGMENTS, "operand_segment_sizes"):  # the second is the name until 2023
        if name in op.attributes:
            sizes = list(ir.DenseI32ArrayAttr(op.attributes[name]))
            if len(sizes) != 2 + expected or sizes[:2] != [0, 1]:
                raise unsupported(op, f"{name} = {sizes}", f"0, 1 and {expected} more")
            return sizes[2:]
    if op.name == ALLOC:
        return [len(op.operands) - 1, 0]
    raise unsupported(op, f"no {SEGMENTS}", f"0, 1 and {expected} more")


def gpu_attributes(op: Op, tokens: int) -> dict[str, Attribute]:
    """Returns the kernel and the operand segment sizes that a GPUX operation has as one of the GPU dialect.

    Each only where that operation has the attribute; ``hostShared`` of an allocation is left to the caller.
    GPUX is Intel's MLIR dialect of GPU work on named streams. Raises CandidateError(COMPILE) for segment
    sizes that do not fit, or that a launch lacks.

    Args:
        op: the GPUX operation.
        tokens: number of tokens that the GPU dialect operation takes.
    """
    attributes = {name: op.attributes[name] for name in ("kernel",) if name in op.attributes}
    if op.name == ALLOC:
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([tokens, *segment_sizes(op)])
    elif op.name == LAUNCH:
        sizes = segment_sizes(op)
        no_clusters = [0, 0, 0]  # GPUX has no clusters
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([tokens, *sizes[:6], *no_clusters, *sizes[6:], 0])
    return attributes


def _gpux_ops(function: Op) -> list[Op]:
    return [op for op in inside(function) if op.name.startswith(PREFIX)]


def _check(op: Op) -> None:
    if op.name in ORDERING:
        return
    if op.name not in KNOWN:
        raise unsupported(op, op.name, ", ".join(sorted(KNOWN)))
    if any(is_token(value) for value in [*op.operands, *op.results]):
        raise unsupported(op, "async tokens", "the order of a stream")
    if op.name == CREATE or op.name in IGNORED:
        for each in op.operands:
            if str(each.type) not in IGNORED_TYPES:
                raise unsupported(op, f"an operand of type {each.type}", f"{' and '.join(IGNORED_TYPES)}")
        return
    if not list(op.operands) or not is_stream(op.operands[0]):
        raise unsupported(op, "no stream as first operand", STREAM_TYPE)
    count = len(op.operands) - 1
    if sum(segment_sizes(op)) != count or count != OPERANDS.get(op.name, count if op.name in WORK else 0):
        raise unsupported(
            op, f"{count} operands after the stream", f"those of gpu.{op.name.removeprefix(PREFIX)}"
        )
    if op.name == MEMSET and not is_filled_by_runtime(op.operands[1].type):
        raise unsupported(op, f"a fill of {op.operands[1].type}", "whole memory of 16 or 32 bits an element")


def _check_destroyed(ops: list[Op]) -> None:
    """Raises CandidateError for a use of a stream after its destruction, which nothing would wait for."""
    for number, op in enumerate(ops):
        if op.name == DESTROY:
            for later in ops[number + 1 :]:
                if op.operands[0] in list(later.operands) and ancestor_in_block(later, op.block) is not None:
                    raise unsupported(later, "a stream that is destroyed before", "one that is still there")
