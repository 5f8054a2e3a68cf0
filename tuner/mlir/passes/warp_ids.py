"""Computes ``gpu.subgroup_id`` and ``gpu.num_subgroups``, which upstream does not lower to NVVM.

Warps are 32 threads in the order x, y, z. The hardware's own register for it may change while a block runs.
"""

from typing import Any

from tuner.chips import WARP_THREADS
from tuner.mlir.bindings import ir
from tuner.mlir.building import index, value
from tuner.mlir.ops.dialect import walk


def expand_warp_ids(module: ir.Module) -> int:
    """Replaces every such operation; returns how many."""
    ids, counts = walk(module, "gpu.subgroup_id"), walk(module, "gpu.num_subgroups")
    for op in ids:
        _replace(op, lambda: _arith("divui", linear_thread(), index(WARP_THREADS)))
    for op in counts:
        _replace(op, _warps_of_block)
    return len(ids) + len(counts)


def linear_thread() -> Any:
    """Computes the number of the thread in its block, x running fastest."""
    plane = _arith("addi", _thread("y"), _arith("muli", _thread("z"), _threads("y")))
    return _arith("addi", _thread("x"), _arith("muli", plane, _threads("x")))


def _replace(op: Any, build: Any) -> None:
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(build())
    op.erase()


def _warps_of_block() -> Any:
    plane = _arith("muli", _threads("x"), _threads("y"))
    threads = _arith("muli", plane, _threads("z"))
    return _arith("ceildivui", threads, index(WARP_THREADS))


def _thread(axis: str) -> Any:
    return _along("gpu.thread_id", axis)


def _threads(axis: str) -> Any:
    return _along("gpu.block_dim", axis)


def _along(name: str, axis: str) -> Any:
    return value(name, ir.IndexType.get(), dimension=ir.Attribute.parse(f"#gpu<dim {axis}>"))


def _arith(name: str, left: Any, right: Any) -> Any:
    return value(f"arith.{name}", ir.IndexType.get(), left, right)
