"""The matmul of a block, as a script leaves it in a ``gpu.launch``: a fill and a product of subviews."""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.wgmma.operand_tile import OperandTile
from tuner.mlir.ops.wgmma.plan import PipelinePlan
from tuner.mlir.rewrite.definitions import source_of
from tuner.mlir.rewrite.epilogues import find_epilogue, output_type
from tuner.mlir.rewrite.padded_views import retype_argument, sync_function_type
from tuner.mlir.rewrite.type_sizes import element_bytes
from tuner.mlir.rewrite.walking import walk

# Element type -> wgmma's spelling; sums are f32, of integers i32
KINDS = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8"}
STAGED_RESULTS, STAGED_BYTES = ("f16", "bf16"), 2  # elements of C that are stored through shared memory
ROW_BYTES = 16  # a matrix row must be a multiple of this; cuTensorMapEncodeTiled, globalStrides


@dataclass(frozen=True)
class Knobs:
    """The values of the attributes of a ``tuner.wgmma_pipeline`` op, such as tile size along k and stages."""

    block_k: int
    stages: int
    consumers: int
    cluster: tuple[int, int]  # blocks along m and n
    tiles: int  # tiles of C that a block computes, one after another
    stores: str  # "direct" or "tma"
    splits: int  # parts of k, each summed by other blocks


@dataclass(frozen=True)
class BlockMatmul:
    """The matmul that each thread block of a ``gpu.launch`` computes: its ops, matrices and tile of C.

    The tile of C at ``origin`` is ``tile[0]`` rows of A times ``tile[1]`` columns of B, summed over ``k``.
    """

    function: Op
    launch: Op
    fill: Op
    product: Op
    matrices: tuple[Value, Value, Value]  # A, B, C: arguments of the function
    origin: tuple[Value | int, Value | int]  # row and column in C
    tile: tuple[int, int]  # rows and columns of C
    k: int
    k_is_last: tuple[bool, bool]  # whether k is the innermost dimension of A, of B

    def plan(self, knobs: Knobs) -> PipelinePlan | str:
        """Returns the sizes of the pipeline for ``knobs``, or a message on why it cannot be built."""
        element, result = (ir.MemRefType(self.matrices[number].type).element_type for number in (0, 2))
        if str(element) not in KINDS or str(result) != ("i32" if str(element) == "i8" else "f32"):
            allowed = f"{', '.join(KINDS)} summed in f32, i8 in i32"
            return f"matmul: found elements {element} summed in {result}, allowed {allowed}"
        item_bytes = element_bytes(element)
        for name, matrix in zip("AB", self.matrices, strict=False):
            pitch = ir.MemRefType(matrix.type).get_strides_and_offset()[0][0] * item_bytes
            if pitch % ROW_BYTES:
                return f"{name}: found rows of {pitch} bytes, allowed multiples of {ROW_BYTES}"
        if knobs.consumers < 1 or self.tile[0] % knobs.consumers:
            return f"consumers: found {knobs.consumers}, allowed some that divide {self.tile[0]} rows"
        a, b = (
            OperandTile(rows, knobs.block_k, item_bytes, is_last, parts)
            for rows, is_last, parts in zip(self.tile, self.k_is_last, knobs.cluster[::-1], strict=True)
        )
        kind = KINDS[str(element)]
        plan = PipelinePlan(
            a,
            b,
            self.k,
            knobs.stages,
            knobs.consumers,
            kind,
            knobs.cluster,
            knobs.tiles,
            knobs.stores,
            knobs.splits,
        )
        return plan.why_not() or (self._why_not_staged() if plan.stores == "tma" else None) or plan

    def _why_not_staged(self) -> str | None:
        """Returns why results cannot be stored by TMA, else None."""
        result = "sums" if self.epilogue is None else output_type(self.epilogue)
        if str(result) not in STAGED_RESULTS:
            return f"stores: found tma for {result}, allowed an epilogue to {' or '.join(STAGED_RESULTS)}"
        pitch = ir.MemRefType(self.matrices[2].type).get_strides_and_offset()[0][0] * STAGED_BYTES
        if pitch % ROW_BYTES:
            return f"stores: found tma for rows of {pitch} bytes, allowed multiples of {ROW_BYTES}"
        return None

    @property
    def epilogue(self) -> Op | None:
        """Returns the scalar function that ``tuner.set_aside_epilogue`` made for this kernel, or None."""
        return find_epilogue(self.function)

    def retype_output(self, epilogue: Op) -> None:
        """Changes the element type of argument C to the result type of ``epilogue``, in place.

        ``epilogue`` is the scalar function that will be applied to the sums. The function type changes too.
        """
        retype_argument(self.matrices[2], output_type(epilogue))
        sync_function_type(self.function)


def read_matmul(function: Op, launch: Op) -> BlockMatmul | str:
    """Returns the matmul of a ``gpu.launch`` in a func.func, or a message if it is not of the expected form.

    Expected are one ``linalg.fill`` and one ``linalg.matmul`` of subviews or casts of arguments. Changes
    nothing.
    """
    fills, products = walk(launch, "linalg.fill"), walk(launch, "linalg.matmul")
    if len(fills) != 1 or len(products) != 1:
        return (
            f"launch: found {len(products)} linalg.matmul and {len(fills)} linalg.fill, allowed one of each"
        )
    views = list(products[0].operands)
    bases = [source_of(view, ("memref.subview", "memref.cast")) for view in views]
    if any(not isinstance(base.owner, ir.Block) for base in bases):
        return "matmul: found operands computed before, allowed subviews of arguments"
    rows, columns = ir.MemRefType(views[2].type).shape
    maps = [str(each) for each in ir.ArrayAttr(products[0].attributes["indexing_maps"])]
    k_is_last = ["d2)>" in text.replace(" ", "") for text in maps[:2]]
    sizes = ir.MemRefType(views[0].type).shape
    return BlockMatmul(
        function,
        launch,
        fills[0],
        products[0],
        (bases[0], bases[1], bases[2]),
        _origin(views[2]),
        (rows, columns),
        sizes[1 if k_is_last[0] else 0],
        (k_is_last[0], k_is_last[1]),
    )


def _origin(view: Value) -> tuple[Value | int, Value | int]:
    """Returns the (row, column) offset of a subview; zeros for a whole matrix."""
    if isinstance(view.owner, ir.Block):
        return 0, 0
    dynamic = iter(list(view.owner.operands)[1:])
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    static = list(ir.DenseI64ArrayAttr(view.owner.attributes["static_offsets"]))
    row, column = (next(dynamic) if offset == marker else offset for offset in static)
    return row, column
