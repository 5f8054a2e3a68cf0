"""The launch around the pipeline: tensor maps, threads, clusters, shared memory, and roles of warpgroups."""

from collections.abc import Callable

from tuner.gpu.ir.launches import CLUSTER_SIZE, index_along
from tuner.gpu.ir.warps import ALL_LANES, i32, word
from tuner.gpu.wgmma.integers import as_i32, calculate, compare
from tuner.gpu.wgmma.plan import WARPGROUP, PipelinePlan
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import branch, create, index, value

# numbers of operands of gpu.launch: blocks along z, threads along x
GRID_Z = 2
BLOCK_X = 3
LAST_LANE = 31
MAP = (
    "!nvgpu.tensormap.descriptor<tensor = memref<{0}x{1}x{2}, 3>, swizzle = swizzle_128b, "
    "l2promo = l2promo_256b, oob = zero, interleave = none>"
)


def create_tensor_map(matrix: Value, box: tuple[int, int], *, is_tf32: bool) -> Value:
    """Creates the CUDA tensor map of a memref, on the host; returns an LLVM pointer to it for the kernel.

    ``box``: elements per TMA copy, as (slower, innermost dimension). ``is_tf32``: copies round f32 to tf32.
    """
    element = ir.MemRefType(matrix.type).element_type
    unranked = value("memref.cast", ir.UnrankedMemRefType.get(element, None), matrix)
    type_ = ir.Type.parse(MAP.format(*box, element))
    sizes = list(map(index, box))
    rounding = {"tuner.tf32": ir.UnitAttr.get()} if is_tf32 else {}
    descriptor = value("nvgpu.tma.create.descriptor", type_, unranked, *sizes, **rounding)
    return value("builtin.unrealized_conversion_cast", ir.Type.parse("!llvm.ptr"), descriptor)


def set_threads(launch: Op, threads: int) -> None:
    """Sets the number of threads per block of a ``gpu.launch`` along x."""
    with launch.location, ir.InsertionPoint(launch):
        launch.operands[BLOCK_X] = index(threads)


def set_cluster(launch: Op, plan: PipelinePlan) -> None:
    """Sets the cluster size of a launch, if above 1: blocks along M differ in y, those along N in x."""
    if plan.cluster_blocks > 1:
        rows, columns = plan.cluster
        launch.attributes[CLUSTER_SIZE] = ir.DenseI32ArrayAttr.get([columns, rows, 1])


def set_splits(launch: Op, plan: PipelinePlan) -> None:
    """Sets the blocks along z of a launch to ``plan.splits``, if above 1, each of which sums a part of k."""
    if plan.splits > 1:
        with launch.location, ir.InsertionPoint(launch):
            launch.operands[GRID_Z] = index(plan.splits)


def block_id(dimension: str) -> Value:
    """Creates ``gpu.block_id`` along ``dimension`` ("x", "y" or "z"); returns its index value."""
    return index_along("gpu.block_id", dimension)


def block_rank() -> Value:
    """Creates the read of the block's rank in its cluster; returns the i32 value."""
    return value("nvvm.read.ptx.sreg.cluster.ctarank", i32())


def synchronise(plan: PipelinePlan) -> None:
    """Creates a barrier of all threads of a block, or of its cluster where that has several blocks."""
    if plan.cluster_blocks == 1:
        create("gpu.barrier")
        return
    create("nvvm.cluster.arrive")
    create("nvvm.cluster.wait")


def create_shared_memory(size_bytes: int) -> Value:
    """Creates an allocation of the block's shared memory, aligned to 1024 bytes; returns its i32 address."""
    type_ = ir.Type.parse(f"memref<{size_bytes}xi8, #gpu.address_space<workgroup>>")
    long = ir.IntegerType.get_signless(64)
    empty = ir.DenseI32ArrayAttr.get([0, 0])
    buffer = value("memref.alloc", type_, alignment=ir.IntegerAttr.get(long, 1024), operandSegmentSizes=empty)
    return as_i32(value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer))


def thread_number() -> Value:
    """Creates the read of the thread's number in its block, along x; returns the i32 value."""
    return as_i32(index_along("gpu.thread_id", "x"))


def warp_number(thread: Value) -> Value:
    """Creates the number of a thread's warp, i32, by a shuffle: ptxas then knows that it is uniform."""
    warp = calculate("shrui", thread, 5)
    type_ = ir.Attribute.parse("#nvvm<shfl_kind idx>")
    return value("nvvm.shfl.sync", i32(), word(ALL_LANES), warp, word(0), word(LAST_LANE), kind=type_)


def split_roles(
    plan: PipelinePlan, warp: Value, produce: Callable[[], None], consume: Callable[[], None]
) -> None:
    """Creates the branch by warpgroup: the last warpgroup runs the producer, all others run the consumer.

    ``produce`` creates the code of one elected thread of the last warpgroup, ``consume`` the code of all
    threads of the other warpgroups. Where ``plan.registers`` is set, registers move from the producer to the
    consumers.
    """
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
