"""The GPUX dialect, device work on named streams: parses, checks, inlines and writes its operations.

``parse_with_gpux`` reads text, ``checked_gpux_ops`` checks what MLIR cannot, ``write_as_gpux`` writes the
dialect.
"""

from tuner.gpu.streams.async_ops import has_tokens, is_filled_by_runtime
from tuner.gpu.streams.gpux_syntax import STREAM_TYPE, to_generic
from tuner.gpu.streams.stream_calls import POINTER, SIGNATURES, drop_argument
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.effects.accesses import inside
from tuner.mlir.effects.aliases import is_token, last_of
from tuner.mlir.effects.launches import ARGUMENTS, CLUSTER, SEGMENTS, SHARED_BYTES
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import (
    ancestor_in_block,
    attributes_of,
    callee_of,
    inline_call,
    name_of,
    ops_in,
    parents_of,
    unsupported,
    walk,
)
from tuner.mlir.transform import parse

PREFIX = "gpux."
CREATE = "gpux.create_stream"
DESTROY = "gpux.destroy_stream"
WAIT = "gpux.wait"
ALLOC = "gpux.alloc"
GPUX_LAUNCH = "gpux.launch_func"
MEMSET = "gpux.memset"
# Device work -> number of operand segments without tokens and stream; None where operands have no segments.
WORK: dict[str, int | None] = {
    ALLOC: 2,
    "gpux.dealloc": None,
    GPUX_LAUNCH: 8,
    "gpux.memcpy": None,
    MEMSET: None,
}
OPERANDS = {"gpux.dealloc": 1, "gpux.memcpy": 2, MEMSET: 2}  # number of operands, without the stream
# Operations on the device and the context, which are always the program's.
IGNORED = frozenset(f"gpux.{verb}_{what}" for verb in ("create", "destroy") for what in ("device", "context"))
IGNORED_TYPES = ("!gpux.DeviceType", "!gpux.ContextType")
# What tokens are lowered to: a value that is an event, a stream's wait for an event, a stream's wait for all
# work of another stream.
RECORD_EVENT = "gpux.record_event"
DESTROY_EVENT = "gpux.destroy_event"
WAIT_EVENT = "gpux.wait_event"
WAIT_STREAM = "gpux.wait_stream"
ORDERING = frozenset({RECORD_EVENT, DESTROY_EVENT, WAIT_EVENT, WAIT_STREAM})
CALLERS = "tuner.caller"  # marks the stream that was an argument, or that represents such a stream
KNOWN = frozenset({CREATE, DESTROY, WAIT, *WORK, *IGNORED})
CHOOSING = frozenset(
    {"arith.select", "scf.if", "scf.for", "scf.while", "scf.index_switch", "scf.execute_region"}
)
LAUNCH = "gpu.launch_func"
HOST_WAITS = frozenset({"mgpuStreamSynchronize", "mgpuEventSynchronize"})


def parse_with_gpux(text: str, what: str) -> ir.Module:
    """Parses MLIR text that may contain GPUX, a dialect that MLIR does not know; ``what`` names it in errors.

    GPUX is Intel's, see <https://github.com/intel/mlir-extensions/blob/main/docs/rfcs/GPUXDialect.md>:
    operations of the GPU dialect with a stream first. IRDL cannot define the stream type, whose name has
    upper case letters, so the context allows unregistered dialects until GPUX is lowered, and this module
    makes the checks that a registered dialect would make. Raises CandidateError(BIND) for invalid text.

        %s = "gpux.create_stream"() : () -> !gpux.StreamType
        "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
        "gpux.wait"(%s) : (!gpux.StreamType) -> ()
        "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
    """
    if PREFIX not in text:
        return parse(text, what)
    ir.Context.current.allow_unregistered_dialects = True
    return parse(to_generic(text), what)


def uses_gpux(function: Op) -> bool:
    """Returns whether a function contains GPUX operations or takes a GPUX stream."""
    return bool(_gpux_ops(function)) or any(map(is_stream, function.regions[0].blocks[0].arguments))


def checked_gpux_ops(function: Op) -> list[Op]:
    """Returns a function's GPUX operations in pre-order.

    Raises CandidateError(COMPILE) for an invalid operation, and for a stream that is used after its
    destruction.
    """
    ops = _gpux_ops(function)
    for op in ops:
        _check(op)
    for index, op in enumerate(ops):
        if op.name != DESTROY:
            continue
        for later in ops[index + 1 :]:  # nothing would wait for this use
            if op.operands[0] in list(later.operands) and ancestor_in_block(later, op.block) is not None:
                raise unsupported(later, "a stream that is destroyed before", "one that is still there")
    return ops


def is_stream(value: Value) -> bool:
    """Returns whether a value has the type ``!gpux.StreamType``, a stream of Intel's GPUX dialect."""
    return str(value.type) == STREAM_TYPE


def segment_sizes(op: Op) -> list[int]:
    """Returns the sizes of a GPUX operation's operand segments, except those of tokens and of the stream.

    Raises CandidateError(COMPILE) for an attribute that does not fit, and for a launch without the attribute.
    """
    expected = WORK.get(op.name)
    if expected is None:
        return [len(op.operands) - 1]
    for name in (SEGMENTS, "operand_segment_sizes"):  # the second was the name until 2023
        if name in op.attributes:
            sizes = list(ir.DenseI32ArrayAttr(op.attributes[name]))
            if len(sizes) != 2 + expected or sizes[:2] != [0, 1]:
                raise unsupported(op, f"{name} = {sizes}", f"0, 1 and {expected} more")
            return sizes[2:]
    if op.name == ALLOC:
        return [len(op.operands) - 1, 0]
    raise unsupported(op, f"no {SEGMENTS}", f"0, 1 and {expected} more")


def gpu_attributes(op: Op, tokens: int) -> dict[str, Attribute]:
    """Returns the attributes of a GPUX operation for the same operation of the GPU dialect.

    They are the kernel and the segment sizes, with ``tokens`` tokens as first operands; ``hostShared`` is
    left to the caller. Raises CandidateError(COMPILE) for segment sizes that do not fit the operation.
    """
    attributes = {"kernel": op.attributes["kernel"]} if "kernel" in op.attributes else {}
    if op.name == ALLOC:
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([tokens, *segment_sizes(op)])
    elif op.name == GPUX_LAUNCH:
        sizes = segment_sizes(op)
        # GPUX has no clusters
        grid_and_block = sizes[:6]
        no_clusters = [0, 0, 0]
        others = sizes[6:]
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([tokens, *grid_and_block, *no_clusters, *others, 0])
    return attributes


def _gpux_ops(function: Op) -> list[Op]:
    return [op for op in inside(function) if op.name.startswith(PREFIX)]


def _check(op: Op) -> None:
    if op.name in ORDERING:
        return
    if op.name not in KNOWN:
        raise unsupported(op, op.name, ", ".join(sorted(KNOWN)))
    if has_tokens(op):
        raise unsupported(op, "async tokens", "the order of a stream")
    if op.name == CREATE or op.name in IGNORED:
        for operand in op.operands:
            if str(operand.type) not in IGNORED_TYPES:
                raise unsupported(op, f"an operand of type {operand.type}", f"{' and '.join(IGNORED_TYPES)}")
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


def inline_stream_functions(module: ir.Module) -> None:
    """Inlines all calls of functions that contain GPUX or take its streams, in place; the functions stay.

    Upstream's inliner crashes on unregistered dialects. The module must be without recursion. Raises
    CandidateError(COMPILE) if such a function has several blocks.
        func.func private @work(%s: !gpux.StreamType, %a: memref<4xf32>) {
          "gpux.dealloc"(%s, %a) : (!gpux.StreamType, memref<4xf32>) -> ()
          return
        call @work(%t, %d) : (!gpux.StreamType, memref<4xf32>) -> ()
      becomes
        "gpux.dealloc"(%t, %d) : (!gpux.StreamType, memref<4xf32>) -> ()
    """
    functions = [op for op in walk(module, "func.func") if list(op.regions[0].blocks)]
    holders = {name_of(function): function for function in functions if uses_gpux(function)}
    while calls := [call for call in walk(module, "func.call") if callee_of(call) in holders]:
        call = calls[0]
        function = holders[callee_of(calls[0])]
        *_, caller = parents_of(call)
        if len(function.regions[0].blocks) != 1:
            raise unsupported(call, f"@{name_of(function)} with several blocks and streams", "one block")
        inline_call(call, function)
        holders[name_of(caller)] = caller


def selected_streams(function: Op) -> list[Value]:
    """Returns the GPUX streams that arith.select and scf operations define.

    Raises CandidateError(COMPILE) for a stream that any operation other than these and create_stream defines.
    """
    selected = []
    for op in inside(function):
        streams = [] if op.name == CREATE else list(filter(is_stream, defined_values(op)))
        if streams and op.name not in CHOOSING:
            raise unsupported(op, "a stream that it gives", f"streams of {CREATE}, arith.select and scf")
        selected += streams
    return selected


def make_pointers(streams: list[Value]) -> None:
    """Changes the type of GPUX streams to ``!llvm.ptr``, in place; their sources must have it already."""
    for stream in streams:
        stream.set_type(ir.Type.parse(POINTER))


def defined_values(op: Op) -> list[Value]:
    """Returns the results of an operation and the arguments of its blocks."""
    values = list(op.results)
    for region in op.regions:
        for block in region.blocks:
            values += block.arguments
    return values


def write_as_gpux(function: Op) -> None:
    """Rewrites a function's asynchronous work as GPUX operations on one new stream, in place.

    All work must be on the stream that is the last argument, as after ``use_streams``; the argument is
    removed. A wait for an event becomes a wait for the stream. The context then allows unregistered dialects.
    Raises CandidateError(COMPILE) for a launch with clusters, which GPUX does not have.
        func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %s0: !llvm.ptr) {
          %t0 = builtin.unrealized_conversion_cast %s0 : !llvm.ptr to !gpu.async.token
          %0 = gpu.memcpy async [%t0] %b, %a : memref<4xf32>, memref<4xf32>
          call @mgpuStreamSynchronize(%s0) : (!llvm.ptr) -> ()
      becomes
        func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
          %s = "gpux.create_stream"() : () -> !gpux.StreamType
          "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
          "gpux.wait"(%s) : (!gpux.StreamType) -> ()
          "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
    """
    ir.Context.current.allow_unregistered_dialects = True
    block = function.regions[0].blocks[0]
    argument = block.arguments[len(block.arguments) - 1]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        stream = value(CREATE, ir.Type.parse(STREAM_TYPE))
    dead = [op for op in inside(function) if _rewrite(op, stream, argument)]
    end = last_of(block)
    with end.location, ir.InsertionPoint(end):
        create(WAIT, [], [stream])
        create(DESTROY, [], [stream])
    for op in reversed(dead):
        op.erase()
    drop_argument(function, argument.arg_number)
    for op in ops_in(function.parent.regions[0].blocks[0]):
        if op.name == "func.func" and name_of(op) in SIGNATURES:  # a declaration that nothing calls any more
            op.erase()


def _rewrite(op: Op, stream: Value, argument: Value) -> bool:
    """Creates the GPUX form of an operation before it; returns whether the operation is to be erased."""
    if op.name == "func.call" and callee_of(op) in SIGNATURES:
        if callee_of(op) in HOST_WAITS:
            with op.location, ir.InsertionPoint(op):
                create(WAIT, [], [stream])
        return True
    if argument in list(op.operands):
        return True  # the cast to a token
    if not any(map(is_token, op.operands)):
        return False
    with op.location, ir.InsertionPoint(op):
        results = [result.type for result in op.results if not is_token(result)]
        operands = [operand for operand in op.operands if not is_token(operand)]
        gpux_op = create(op.name.replace("gpu.", PREFIX), results, [stream, *operands], **_attributes(op))
    for old, new in zip(op.results, gpux_op.results, strict=False):
        old.replace_all_uses_with(new)
    return True


def _attributes(op: Op) -> dict[str, Attribute]:
    """Returns the attributes of the GPUX operation; its first two segments: zero tokens and one stream."""
    attributes = attributes_of(op)
    if SEGMENTS not in attributes:
        return attributes
    sizes = list(ir.DenseI32ArrayAttr(attributes[SEGMENTS]))
    own = sizes[1:]
    if op.name == LAUNCH:
        if any(sizes[CLUSTER]):
            raise unsupported(op, "clusters", "launches without, in GPUX")
        own = [*sizes[1 : CLUSTER.start], *sizes[SHARED_BYTES : ARGUMENTS + 1]]
    return attributes | {SEGMENTS: ir.DenseI32ArrayAttr.get([0, 1, *own])}
