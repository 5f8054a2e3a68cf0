"""Expands ``gpu.global_id``, and ``gpu.shuffle`` of 64 bits, by upstream's patterns.

Takes outlined kernels without reductions, whose patterns are in the same upstream set (``reductions.py``
expands reductions before); gives the same computation in simpler ops.

    %i = gpu.global_id x
  becomes, at its end
    %block = gpu.block_id x
    %size = gpu.block_dim x
"""

from tuner.mlir.bindings import interpreter, ir
from tuner.mlir.rewrite.walking import walk

COMPOSED = ("gpu.global_id", "gpu.shuffle")
EXPAND = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @expand(%root: !transform.any_op) {
    %holders = transform.structured.match ops{["gpu.module"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %holders {
      transform.apply_patterns.gpu.gpu_rewrite_patterns
    } : !transform.any_op
    transform.yield
  }
}
"""


def expand_composed_ops(module: ir.Module) -> None:
    """Replaces ``gpu.global_id`` and 64-bit ``gpu.shuffle`` of all kernels by simpler ops, in place."""
    if not walk(module, *COMPOSED):
        return
    script = ir.Module.parse(EXPAND)
    interpreter.apply_named_sequence(module, script.body.operations[0], script)
