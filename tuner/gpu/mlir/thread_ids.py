"""Numbers of threads and warps in a block, as arithmetic on the ids that the hardware has."""

from tuner.core.gpu import WARP_THREADS
from tuner.gpu.ir.launches import index_along
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import index, value
from tuner.mlir.ir.reading import walk


def expand_warp_ids(module: ir.Module) -> int:
    """Replaces ``gpu.subgroup_id``, ``num_subgroups`` and ``subgroup_size`` by arithmetic, in place.

    Returns how many ops; upstream does not lower them. The hardware's register %warpid may change while a
    block runs (PTX ISA), so it is not used.

        %id = gpu.subgroup_id : index
      becomes
        %row = arith.muli %row_of_thread, %block_dim_x : index
        %thread = arith.addi %thread_id_x, %row : index
        %id = arith.divui %thread, %c32 : index
    """
    ids = walk(module, "gpu.subgroup_id")
    counts = walk(module, "gpu.num_subgroups")
    for op in ids:
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_arith("divui", linear_thread(), index(WARP_THREADS)))
        op.erase()
    for op in counts:
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_arith("ceildivui", threads_of_block(), index(WARP_THREADS)))
        op.erase()
    sizes = walk(module, "gpu.subgroup_size")
    for op in sizes:
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(index(WARP_THREADS))
        op.erase()
    return len(ids) + len(counts) + len(sizes)


def linear_thread() -> Value:
    """Creates the ops for the linear index of a thread in its block, x fastest; returns the index value."""
    plane = _arith("addi", _thread("y"), _arith("muli", _thread("z"), _threads("y")))
    return _arith("addi", _thread("x"), _arith("muli", plane, _threads("x")))


def threads_of_block() -> Value:
    """Creates the ops for the number of threads per block; returns its index value."""
    plane = _arith("muli", _threads("x"), _threads("y"))
    return _arith("muli", plane, _threads("z"))


def _thread(axis: str) -> Value:
    return index_along("gpu.thread_id", axis)


def _threads(axis: str) -> Value:
    return index_along("gpu.block_dim", axis)


def _arith(name: str, left: Value, right: Value) -> Value:
    return value(f"arith.{name}", ir.IndexType.get(), left, right)
