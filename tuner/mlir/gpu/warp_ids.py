"""Expands ``gpu.subgroup_id`` and ``gpu.num_subgroups``, which upstream does not lower to NVVM.

Takes kernels before the lowering to LLVM; gives arithmetic on thread ids. Warps are 32 threads in the order
x, y, z. The hardware's register %warpid may change while a block runs (PTX ISA), so it is not used.

    %id = gpu.subgroup_id : index
  becomes
    %row = arith.muli %row_of_thread, %block_dim_x : index
    %thread = arith.addi %thread_id_x, %row : index
    %id = arith.divui %thread, %c32 : index
"""

from collections.abc import Callable

from tuner.core.chips import WARP_THREADS
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import index, value
from tuner.mlir.rewrite.gpu_indices import index_along
from tuner.mlir.rewrite.walking import walk


def expand_warp_ids(module: ir.Module) -> int:
    """Replaces ``gpu.subgroup_id`` and ``gpu.num_subgroups`` by arithmetic on thread ids, in place.

    Returns how many ops were replaced. A subgroup is a warp of 32 threads.
    """
    ids, counts = walk(module, "gpu.subgroup_id"), walk(module, "gpu.num_subgroups")
    for op in ids:
        _replace(op, lambda: _arith("divui", linear_thread(), index(WARP_THREADS)))
    for op in counts:
        _replace(op, _warps_of_block)
    return len(ids) + len(counts)


def linear_thread() -> Value:
    """Creates the ops for the linear index of a thread in its block, x fastest; returns the index."""
    plane = _arith("addi", _thread("y"), _arith("muli", _thread("z"), _threads("y")))
    return _arith("addi", _thread("x"), _arith("muli", plane, _threads("x")))


def threads_of_block() -> Value:
    """Creates the ops for the number of threads per block; returns the number."""
    plane = _arith("muli", _threads("x"), _threads("y"))
    return _arith("muli", plane, _threads("z"))


def _replace(op: Op, build: Callable[[], Value]) -> None:
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(build())
    op.erase()


def _warps_of_block() -> Value:
    return _arith("ceildivui", threads_of_block(), index(WARP_THREADS))


def _thread(axis: str) -> Value:
    return index_along("gpu.thread_id", axis)


def _threads(axis: str) -> Value:
    return index_along("gpu.block_dim", axis)


def _arith(name: str, left: Value, right: Value) -> Value:
    return value(f"arith.{name}", ir.IndexType.get(), left, right)
