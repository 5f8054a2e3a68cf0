"""The block around the pipeline: tensor maps on the host, threads of the launch, roles of warpgroups."""

from collections.abc import Callable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.wgmma.integers import as_i32, calculate, compare, i32, word
from tuner.mlir.ops.wgmma.plan import WARPGROUP, PipelinePlan
from tuner.mlir.rewrite.building import branch, create, index, value
from tuner.mlir.rewrite.gpu_indices import index_along
from tuner.mlir.rewrite.launch_operands import CLUSTER_SIZE

GRID_Z, BLOCK_X = 2, 3  # numbers of operands of gpu.launch: blocks along z, threads along x
ALL_LANES, LAST_LANE = -1, 31
MAP = (
    "!nvgpu.tensormap.descriptor<tensor = memref<{0}x{1}x{2}, 3>, swizzle = swizzle_128b, "
    "l2promo = l2promo_256b, oob = zero, interleave = none>"
)


def create_tensor_map(matrix: Value, box: tuple[int, int], *, is_tf32: bool) -> Value:
    """Creates, on the host, the tensor map of a matrix; returns the pointer that the kernel uses.

    ``box``: elements per copy, (slower dimension, innermost dimension).
    """
    element = ir.MemRefType(matrix.type).element_type
    unranked = value("memref.cast", ir.UnrankedMemRefType.get(element, None), matrix)
    kind = ir.Type.parse(MAP.format(*box, element))
    sizes = [index(size) for size in box]
    rounding = {"tuner.tf32": ir.UnitAttr.get()} if is_tf32 else {}
    made = value("nvgpu.tma.create.descriptor", kind, unranked, *sizes, **rounding)
    return value("builtin.unrealized_conversion_cast", ir.Type.parse("!llvm.ptr"), made)


def set_threads(launch: Op, threads: int) -> None:
    """Sets the number of threads per block of a launch."""
    with launch.location, ir.InsertionPoint(launch):
        launch.operands[BLOCK_X] = index(threads)


def set_cluster(launch: Op, plan: PipelinePlan) -> None:
    """Sets the cluster size of a launch: rows of C along y, columns of C along x."""
    if plan.cluster_blocks > 1:
        rows, columns = plan.cluster
        launch.attributes[CLUSTER_SIZE] = ir.DenseI32ArrayAttr.get([columns, rows, 1])


def set_splits(launch: Op, plan: PipelinePlan) -> None:
    """Sets the number of blocks of a launch along z, each of which sums a part of k."""
    if plan.splits > 1:
        with launch.location, ir.InsertionPoint(launch):
            launch.operands[GRID_Z] = index(plan.splits)


def block_id(dimension: str) -> Value:
    """Creates the block's number in the grid along one dimension, an index."""
    return index_along("gpu.block_id", dimension)


def block_rank() -> Value:
    """Creates the rank of the block in its cluster, an i32."""
    return value("nvvm.read.ptx.sreg.cluster.ctarank", i32())


def synchronise(plan: PipelinePlan) -> None:
    """Creates the barrier of all threads of a block, or of its cluster if the plan has clusters."""
    if plan.cluster_blocks == 1:
        create("gpu.barrier")
        return
    create("nvvm.cluster.arrive")
    create("nvvm.cluster.wait")


def create_shared_memory(size_bytes: int) -> Value:
    """Creates the block's shared memory, aligned for the swizzle; returns its address, an i32."""
    kind = ir.Type.parse(f"memref<{size_bytes}xi8, #gpu.address_space<workgroup>>")
    long = ir.IntegerType.get_signless(64)
    empty = ir.DenseI32ArrayAttr.get([0, 0])
    buffer = value("memref.alloc", kind, alignment=ir.IntegerAttr.get(long, 1024), operandSegmentSizes=empty)
    return as_i32(value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer))


def thread_number() -> Value:
    """Creates the thread's number in its block, an i32."""
    return as_i32(index_along("gpu.thread_id", "x"))


def warp_number(thread: Value) -> Value:
    """Creates the number of the thread's warp by a shuffle, so that ptxas knows that it is warp-uniform."""
    warp = calculate("shrui", thread, 5)
    kind = ir.Attribute.parse("#nvvm<shfl_kind idx>")
    return value("nvvm.shfl.sync", i32(), word(ALL_LANES), warp, word(0), word(LAST_LANE), kind=kind)


def split_roles(
    plan: PipelinePlan, warp: Value, produce: Callable[[], None], consume: Callable[[], None]
) -> None:
    """Creates the branch by warpgroup: one thread of the last warpgroup produces, the others consume."""
    warps = WARPGROUP // 32
    first = plan.consumers * warps

    def producer() -> None:
        if plan.registers is not None:
            _set_registers("decrease", plan.registers[0])
        branch(compare("eq", warp, first), elected)

    def elected() -> None:
        branch(value("nvvm.elect.sync", ir.IntegerType.get_signless(1)), produce)

    def consumer() -> None:
        if plan.registers is not None:
            _set_registers("increase", plan.registers[1])
        consume()

    branch(compare("ult", warp, first), consumer, producer)


def _set_registers(action: str, registers: int) -> None:
    create(
        "nvvm.setmaxregister",
        action=ir.Attribute.parse(f"#nvvm<action {action}>"),
        regCount=ir.IntegerAttr.get(i32(), registers),
    )
