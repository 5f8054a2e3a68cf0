"""``tuner.wgmma_pipeline``: a block's matmul becomes a warp-specialized pipeline of TMA and wgmma (sm_90a).

Takes a function on buffers with one ``gpu.launch`` that holds a ``linalg.fill`` and a ``linalg.matmul`` of
subviews of arguments, a tile of C per block. Gives tensor maps on the host, and in the kernel a ring of
stages in shared memory: one elected thread of the last warpgroup copies tiles of A and B ahead by TMA, which
reads zeros beyond the true sizes; the other warpgroups multiply by wgmma, one group in flight, and store
pairs of sums by ``vector.store`` for ``tuner.finish_stores``. Parts: ``wgmma/``. Not handled: k not innermost
in elements of 1 or 4 bytes, rows of no multiple of 16 bytes; they are silenceable failures.

    gpu.launch blocks(...) in (...) threads(...) in (...) {
      %y = memref.subview %b[0, %j] [192, 64] [1, 1] : memref<192x128xf16> to ...
      linalg.fill ins(%zero : f32) outs(%z : ...)
      linalg.matmul ins(%a, %y : ...) outs(%z : ...)
  becomes
    %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> ...
    gpu.launch blocks(...) in (...) threads(...) in (...) {
      nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
      scf.if %consumes {
        %sums = scf.for %tile = %c1 to %c3 step %c1 iter_args(...) -> (...) : i32 {
          nvvm.mbarrier.try_wait.parity %full, %parity, %ns : !llvm.ptr<3>, i32, i32
          %more = nvvm.wgmma.mma_async %a_tile, %b_tile, %so_far, <m = 64, n = 64, k = 16>, ...
          nvvm.wgmma.wait.group.sync.aligned 1
            %state = nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64
        vector.store %pair, %c[%row, %column] : memref<64x128xf32>, vector<2xf32>
      } else {
        %elected = nvvm.elect.sync -> i1
            nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
            nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%column, %k] : ...
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.ops.wgmma.consumer import Consumer
from tuner.mlir.ops.wgmma.epilogue import create_stores
from tuner.mlir.ops.wgmma.launch import (
    block_rank,
    create_shared_memory,
    create_tensor_map,
    set_cluster,
    set_threads,
    split_roles,
    synchronise,
    thread_number,
    warp_number,
)
from tuner.mlir.ops.wgmma.operand_tile import OperandTile
from tuner.mlir.ops.wgmma.plan import WARPGROUP, PipelinePlan
from tuner.mlir.ops.wgmma.producer import Source, create_producer
from tuner.mlir.ops.wgmma.ring import Ring
from tuner.mlir.ops.wgmma.words import as_word, calculate, compare
from tuner.mlir.rewrite.building import branch, create, index
from tuner.mlir.rewrite.type_sizes import element_bytes
from tuner.mlir.rewrite.walking import walk

# Of elements, as wgmma spells them; sums are f32 but of integers
KINDS = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8"}
ROW_BYTES = 16  # of which a row of a matrix is a multiple; cuTensorMapEncodeTiled, globalStrides


class WgmmaPipelineOp(InPlaceOp, name="wgmma_pipeline"):
    """Builds the pipeline of every ``gpu.launch`` in the function.

    Attributes (i64): ``block_k`` (64), ``stages`` (4), ``consumers`` (2), ``cluster_m``, ``cluster_n`` (1),
    one of which may be 2: blocks along m share tiles of B, along n of A; the grid must be whole clusters.
    The handle (a func.func) stays valid; handles to the launch's linalg ops do not. Silenceable failure: no
    such launch, tiles that TMA or wgmma do not take, too many sums for the registers of a thread.
    """

    def change(self, function: Op) -> str | None:
        """Changes one function."""
        block_k, stages = attribute(self, "block_k", 64), attribute(self, "stages", 4)
        found = [_read(launch) for launch in walk(function, "gpu.launch")]
        if not found:
            return "found no gpu.launch, allowed one with a linalg.matmul"
        for each in found:
            if isinstance(each, str):
                return each
            cluster = attribute(self, "cluster_m", 1), attribute(self, "cluster_n", 1)
            plan = each.plan(block_k, stages, attribute(self, "consumers", 2), cluster)
            reason = plan if isinstance(plan, str) else plan.why_not()
            if reason is not None:
                return reason
            assert isinstance(plan, PipelinePlan)
            _rewrite(each, plan)
        return None


@dataclass(frozen=True)
class _BlockMatmul:
    """The matmul of one block: C's tile at ``origin`` = A's rows times B's columns."""

    launch: Op
    fill: Op
    product: Op
    matrices: tuple[Value, Value, Value]  # A, B, C: arguments of the function
    origin: tuple[Value | int, Value | int]  # row and column of C
    tile: tuple[int, int]  # rows and columns
    k: int
    k_is_last: tuple[bool, bool]  # whether k is innermost, of A and B

    def plan(self, block_k: int, stages: int, consumers: int, cluster: tuple[int, int]) -> PipelinePlan | str:
        """Returns the plan by the knobs, or why the matrices allow none."""
        element, result = (ir.MemRefType(self.matrices[number].type).element_type for number in (0, 2))
        if str(element) not in KINDS or str(result) != ("i32" if str(element) == "i8" else "f32"):
            allowed = f"{', '.join(KINDS)} summed in f32, i8 in i32"
            return f"matmul: found elements {element} summed in {result}, allowed {allowed}"
        item_bytes = element_bytes(element)
        for name, matrix in zip("AB", self.matrices, strict=False):
            pitch = ir.MemRefType(matrix.type).get_strides_and_offset()[0][0] * item_bytes
            if pitch % ROW_BYTES:
                return f"{name}: found rows of {pitch} bytes, allowed multiples of {ROW_BYTES}"
        if consumers < 1 or self.tile[0] % consumers:
            return f"consumers: found {consumers}, allowed some that divide {self.tile[0]} rows"
        a, b = (
            OperandTile(rows, block_k, item_bytes, is_last, parts)
            for rows, is_last, parts in zip(self.tile, self.k_is_last, cluster[::-1], strict=True)
        )
        return PipelinePlan(a, b, self.k, stages, consumers, KINDS[str(element)], cluster)


def _read(launch: Op) -> _BlockMatmul | str:
    """Finds the matmul of a launch, or tells why there is none."""
    fills, products = walk(launch, "linalg.fill"), walk(launch, "linalg.matmul")
    if len(fills) != 1 or len(products) != 1:
        return (
            f"launch: found {len(products)} linalg.matmul and {len(fills)} linalg.fill, allowed one of each"
        )
    views = list(products[0].operands)
    bases = [_base(view) for view in views]
    if any(not isinstance(base.owner, ir.Block) for base in bases):
        return "matmul: found operands computed before, allowed subviews of arguments"
    rows, columns = ir.MemRefType(views[2].type).shape
    maps = [str(each) for each in ir.ArrayAttr(products[0].attributes["indexing_maps"])]
    k_is_last = ["d2)>" in text.replace(" ", "") for text in maps[:2]]
    sizes = ir.MemRefType(views[0].type).shape
    return _BlockMatmul(
        launch,
        fills[0],
        products[0],
        (bases[0], bases[1], bases[2]),
        _origin(views[2]),
        (rows, columns),
        sizes[1 if k_is_last[0] else 0],
        (k_is_last[0], k_is_last[1]),
    )


def _base(view: Value) -> Value:
    """Returns what a chain of subviews and casts begins with."""
    while not isinstance(view.owner, ir.Block) and view.owner.name in ("memref.subview", "memref.cast"):
        view = view.owner.operands[0]
    return view


def _origin(view: Value) -> tuple[Value | int, Value | int]:
    """Returns the offsets of a subview of a whole matrix; zeros for the matrix itself."""
    if isinstance(view.owner, ir.Block):
        return 0, 0
    dynamic = iter(list(view.owner.operands)[1:])
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    static = list(ir.DenseI64ArrayAttr(view.owner.attributes["static_offsets"]))
    row, column = (next(dynamic) if offset == marker else offset for offset in static)
    return row, column


def _rewrite(found: _BlockMatmul, plan: PipelinePlan) -> None:
    launch, product = found.launch, found.product
    with launch.location, ir.InsertionPoint(launch):
        is_tf32 = plan.kind == "tf32"
        maps = [
            create_tensor_map(matrix, tile, is_tf32=is_tf32)
            for matrix, tile in zip(found.matrices, (plan.a, plan.b), strict=False)
        ]
    set_threads(launch, plan.threads)
    set_cluster(launch, plan)
    with product.location, ir.InsertionPoint(product):
        _create_block(found, plan, maps)
    product.erase()
    found.fill.erase()


def _create_block(found: _BlockMatmul, plan: PipelinePlan, maps: list[Value]) -> None:
    """Creates what a block does in place of the matmul."""
    row, column = (index(each) if isinstance(each, int) else each for each in found.origin)
    thread = thread_number()
    warp = warp_number(thread)
    ring = Ring(plan, create_shared_memory(plan.shared_bytes))

    def begin() -> None:
        ring.create_mbarriers()
        for each in maps:
            create("nvvm.prefetch", [], [each], tensormap=ir.UnitAttr.get())

    def produce() -> None:
        rank = block_rank() if plan.cluster_blocks > 1 else None
        a = Source(plan.a, 0, maps[0], as_word(row), rank if plan.a.parts > 1 else None)
        b = Source(plan.b, plan.a.bytes, maps[1], as_word(column), rank if plan.b.parts > 1 else None)
        create_producer(ring, (a, b))

    def consume() -> None:
        number = calculate("shrui", warp, 2)
        within = calculate("andi", thread, WARPGROUP - 1)
        sums = Consumer(ring, number, within).create()
        create_stores(plan, sums, found.matrices[2], (row, column), number, within)

    branch(compare("eq", thread, 0), begin)
    synchronise(plan)
    split_roles(plan, warp, produce, consume)
    if plan.cluster_blocks > 1:
        synchronise(plan)  # others arrive at this block's mbarriers, which must not go before
