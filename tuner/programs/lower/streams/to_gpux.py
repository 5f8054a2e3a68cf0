"""Writes the device work of a function as GPUX, on one stream that the function creates.

Takes asynchronous work on one stream that is the last argument, as ``async_streams.py`` produces with a limit
of one; produces GPUX in generic form (``gpux_ops.py``), which ``gpux.py`` can read. A host wait for an event
becomes a wait for the stream. Rejected: clusters, which GPUX does not have.

    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %s0: !llvm.ptr) {
      %t0 = builtin.unrealized_conversion_cast %s0 : !llvm.ptr to !gpu.async.token
      %0 = gpu.memcpy async [%t0] %b, %a : memref<4xf32>, memref<4xf32>
      call @mgpuStreamSynchronize(%s0) : (!llvm.ptr) -> ()
      return
    }
  becomes
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      %s = "gpux.create_stream"() : () -> !gpux.StreamType
      "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
      "gpux.wait"(%s) : (!gpux.StreamType) -> ()
      "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
      return
    }
"""

from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.effects.address_flow import is_token
from tuner.mlir.effects.buffer_accesses import inside
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, CLUSTER, SEGMENTS, SHARED_BYTES
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.symbols import callee_of, name_of
from tuner.programs.lower.streams.gpux import drop_argument
from tuner.programs.lower.streams.gpux_ops import CREATE, DESTROY, PREFIX, WAIT
from tuner.programs.lower.streams.gpux_syntax import STREAM_TYPE
from tuner.programs.lower.streams.stream_calls import SIGNATURES

LAUNCH = "gpu.launch_func"
HOST_WAITS = frozenset({"mgpuStreamSynchronize", "mgpuEventSynchronize"})


def write_as_gpux(function: Op) -> None:
    """Rewrites a function's asynchronous work as GPUX operations on one new stream, in place.

    GPUX is Intel's MLIR dialect of GPU work on named streams. The work must be on one stream that is the last
    argument, which is removed. The context then allows unregistered dialects. Raises CandidateError(COMPILE)
    for a launch with clusters.
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
    _drop_declarations(function.parent)


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
        results = [each.type for each in op.results if not is_token(each)]
        operands = [each for each in op.operands if not is_token(each)]
        made = create(op.name.replace("gpu.", PREFIX), results, [stream, *operands], **_attributes(op))
    for old, new in zip(op.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    return True


def _attributes(op: Op) -> dict[str, Attribute]:
    """Returns the attributes of the GPUX operation; its first two segments are no token and one stream."""
    attributes = {name: op.attributes[name] for name in op.attributes if name != SEGMENTS}
    if SEGMENTS not in op.attributes:
        return attributes
    sizes = list(ir.DenseI32ArrayAttr(op.attributes[SEGMENTS]))
    own = sizes[1:]
    if op.name == LAUNCH:
        if any(sizes[CLUSTER]):
            raise unsupported(op, "clusters", "launches without, in GPUX")
        own = [*sizes[1 : CLUSTER.start], *sizes[SHARED_BYTES : ARGUMENTS + 1]]
    return attributes | {SEGMENTS: ir.DenseI32ArrayAttr.get([0, 1, *own])}


def _drop_declarations(module: Op) -> None:
    """Erases the declarations of runtime functions that are no longer called."""
    declared = [op.operation for op in module.regions[0].blocks[0].operations]
    for op in declared:
        if op.name == "func.func" and name_of(op) in SIGNATURES:
            op.erase()
