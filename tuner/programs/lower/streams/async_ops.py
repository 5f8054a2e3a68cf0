"""Builds the asynchronous forms of device work: an op with a token that it waits for, and one for its end.

All of ``DEVICE_OPS`` take tokens as their first operands and return one as their last result.

    gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
  becomes
    %1 = gpu.memcpy async [%0] %b, %a : memref<4xf32>, memref<4xf32>
"""

from collections.abc import Sequence

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.contiguity import is_contiguous
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.type_sizes import element_bytes

ASYNC = "!gpu.async.token"
FILLED_BYTES = (2, 4)  # of an element


def is_token(value: Value) -> bool:
    """Tells whether a value is a token."""
    return str(value.type) == ASYNC


def is_filled_by_runtime(memref: Type) -> bool:
    """Tells whether MLIR's runtime has a call that fills such memory: mgpuMemset16, mgpuMemset32."""
    return is_contiguous(memref) and element_bytes(memref.element_type) in FILLED_BYTES


def make_async(op: Op, dependency: Value) -> Value:
    """Builds the asynchronous op in front of ``op``, which loses its users to it; returns the new token.

    The caller erases ``op``: insertion points may still name it.
    """
    attributes = attributes_of(op)
    if SEGMENTS in attributes:
        sizes = list(ir.DenseI32ArrayAttr(attributes[SEGMENTS]))
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([1, *sizes[1:]])
    results = [*(result.type for result in op.results), ir.Type.parse(ASYNC)]
    with op.location, ir.InsertionPoint(op):
        made = create(op.name, results, [dependency, *op.operands], **attributes)
    for index, result in enumerate(op.results):
        result.replace_all_uses_with(made.results[index])
    return made.results[len(results) - 1]


def wait_async(tokens: Sequence[Value]) -> Value:
    """Builds, here, the begin of a new stream behind the tokens; returns its token."""
    return create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]


def wait_on_host(tokens: Sequence[Value]) -> None:
    """Builds, here, a wait of the host, which ends the streams of the tokens."""
    create("gpu.wait", [], tokens)
