"""Expands GPU dialect operations that are made of simpler ones, with upstream's patterns.

Upstream lets all threads that take part in the last step of ``gpu.all_reduce`` write the result to one place,
which one of them has just read: ordered by nothing but a shuffle. Here the first thread writes it alone.
"""

from typing import Any

from tuner.mlir.bindings import interpreter, ir
from tuner.mlir.building import branch, index, value
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.dynamic_shared_memory import attributions_of
from tuner.mlir.passes.warp_ids import linear_thread
from tuner.mlir.symbols import name_of

COMPOSED = ("gpu.all_reduce", "gpu.global_id", "gpu.shuffle")
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
EQUAL = 0  # arith's predicate eq


def expand_composed_ops(module: ir.Module) -> None:
    """Rewrites kernels; ``gpu.all_reduce`` adds a workgroup attribution, which has no place yet."""
    if not any(walk(module, name) for name in COMPOSED):
        return
    before = {name_of(function): len(attributions_of(function)) for function in walk(module, "gpu.func")}
    script = ir.Module.parse(EXPAND)
    interpreter.apply_named_sequence(module, script.body.operations[0], script)
    for function in walk(module, "gpu.func"):
        for buffer in attributions_of(function)[before[name_of(function)] :]:
            _let_one_thread_write(buffer)


def _let_one_thread_write(buffer: Any) -> None:
    """Guards stores of the result, which go to a constant index; each warp's part goes to one of its own."""
    stores = [use.owner.operation for use in buffer.uses if use.owner.operation.name == "memref.store"]
    for store in stores:
        if _is_constant(store.operands[2]):
            with store.location, ir.InsertionPoint(store):
                branch(_is_first_thread(), store.clone)
            store.erase()


def _is_first_thread() -> Any:
    bit = ir.IntegerType.get_signless(1)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), EQUAL)
    return value("arith.cmpi", bit, linear_thread(), index(0), predicate=predicate)


def _is_constant(number: Any) -> bool:
    return not isinstance(number.owner, ir.Block) and number.owner.name == "arith.constant"
