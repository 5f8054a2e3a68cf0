"""Creates the asynchronous forms of device work, and ``gpu.wait`` for forks, joins and host waits.

All operations of ``DEVICE_OPS`` take tokens as their first operands and return a token as their last result.

    gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
  becomes
    %1 = gpu.memcpy async [%0] %b, %a : memref<4xf32>, memref<4xf32>
"""

from collections.abc import Sequence

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.address_flow import ASYNC
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.contiguity import is_contiguous
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.type_sizes import element_bytes

FILLED_BYTES = (2, 4)  # element sizes that mgpuMemset16 and mgpuMemset32 fill


def is_filled_by_runtime(memref: Type) -> bool:
    """Returns whether MLIR's GPU runtime can fill memory of this memref type with one number.

    True for contiguous memory of 16-bit or 32-bit elements (mgpuMemset16, mgpuMemset32).
    """
    return is_contiguous(memref) and element_bytes(memref.element_type) in FILLED_BYTES


def make_async(op: Op, dependency: Value) -> Value:
    """Creates the asynchronous form of a synchronous GPU operation before it; returns its token.

    The new operation waits for the token ``dependency``, and replaces ``op`` in its users. The caller erases
    ``op``, because insertion points may still refer to it.
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
    """Creates ``gpu.wait async`` at the insertion point: a new stream that begins after ``tokens``.

    Returns the token of the new stream.
    """
    return create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]


def wait_on_host(tokens: Sequence[Value]) -> None:
    """Creates ``gpu.wait`` at the insertion point: the host waits for ``tokens``, whose streams end there."""
    create("gpu.wait", [], tokens)
