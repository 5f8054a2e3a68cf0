"""Computes ``gpu.subgroup_id`` and ``gpu.num_subgroups``, which upstream does not lower to NVVM.

Warps are 32 threads in the order x, y, z. The hardware's own register for it may change while a block runs.
"""

from typing import Any

from tuner.chips import WARP_THREADS
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk


def expand_warp_ids(module: ir.Module) -> int:
    """Replaces every such operation; returns how many."""
    ids, counts = walk(module, "gpu.subgroup_id"), walk(module, "gpu.num_subgroups")
    for op in ids:
        _replace(op, lambda: _create("arith.divui", _linear_thread(), _constant(WARP_THREADS)))
    for op in counts:
        _replace(op, _warps_of_block)
    return len(ids) + len(counts)


def _replace(op: Any, build: Any) -> None:
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(build())
    op.erase()


def _linear_thread() -> Any:
    plane = _create("arith.addi", _thread("y"), _create("arith.muli", _thread("z"), _threads("y")))
    return _create("arith.addi", _thread("x"), _create("arith.muli", plane, _threads("x")))


def _warps_of_block() -> Any:
    plane = _create("arith.muli", _threads("x"), _threads("y"))
    threads = _create("arith.muli", plane, _threads("z"))
    return _create("arith.ceildivui", threads, _constant(WARP_THREADS))


def _thread(axis: str) -> Any:
    return _create("gpu.thread_id", dimension=f"#gpu<dim {axis}>")


def _threads(axis: str) -> Any:
    return _create("gpu.block_dim", dimension=f"#gpu<dim {axis}>")


def _constant(number: int) -> Any:
    return _create("arith.constant", value=f"{number} : index")


def _create(name: str, *operands: Any, **attributes: str) -> Any:
    parsed = {key: ir.Attribute.parse(text) for key, text in attributes.items()}
    return ir.Operation.create(name, [ir.IndexType.get()], list(operands), parsed).results[0]
