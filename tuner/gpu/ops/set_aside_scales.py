"""The transform op ``tuner.set_aside_scales``."""

from tuner.core.errors import Refusal
from tuner.core.problem import SCALED_COLUMNS, SCALED_DEPTH
from tuner.gpu.ir.scaled_sums import OPERANDS, SCALE, is_sum_of_scaled_products
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import create
from tuner.mlir.ir.memrefs import set_argument_attribute
from tuner.mlir.ir.reading import maps_in, op_of, types_of

READ = "bufferization.to_tensor"
GENERIC = "linalg.generic"
INPUTS = 4  # A, B, and the scales of each


class SetAsideScalesOp(InPlaceOp, name="set_aside_scales"):
    """``tuner.set_aside_scales``: a matmul with scales of blocks becomes one without, for a later step.

    Takes a ``linalg.generic`` on tensors that adds up products of A and B, with k innermost in both, times a
    scale of each for 128 of k: rows of A and groups of 128 rows of B have scales of their own. Gives a
    ``linalg.matmul`` of A and B alone; the function's arguments with the scales stay, each marked
    ``tuner.scale`` by the operand that it is of. ``tuner.wgmma_pipeline`` applies them; C is wrong after any
    other step.

        %sums = linalg.generic {indexing_maps = ...} ins(%A, %B, %SCALE_A, %SCALE_B : ...) outs(%c : ...) {
      becomes
        %sums = linalg.matmul ... ins(%A, %B : ...) outs(%cleared : tensor<64x128xf32>) -> tensor<64x128xf32>

    The handle (a linalg.generic) is consumed. Silenceable failure, with nothing changed: another op; scales
    that are not arguments of its function.
    """

    consumes_handle = True  # the generic is replaced

    def change(self, generic: Op) -> Refusal | None:
        if not _is_scaled(generic):
            allowed = "allowed a linalg.generic that adds up scaled products"
            return Refusal(f"found another {generic.name}, {allowed}")
        reads = [op_of(scales, READ) for scales in list(generic.operands)[2:INPUTS]]
        for name, read in zip(OPERANDS, reads, strict=True):
            if read is None or not isinstance(read.operands[0].owner, ir.Block):
                return Refusal(f"scales of {name}: found a tensor that is computed, allowed an argument")
        _make_matmul(generic)
        for name, read in zip(OPERANDS, reads, strict=True):
            assert read is not None
            argument = ir.BlockArgument(read.operands[0])
            owner = argument.owner.owner.operation
            set_argument_attribute(owner, argument.arg_number, SCALE, ir.StringAttr.get(name))
            if not list(read.results[0].uses):
                read.erase()
        return None


def _is_scaled(generic: Op) -> bool:
    if generic.name != GENERIC or len(generic.operands) != INPUTS + 1 or len(generic.results) != 1:
        return False
    return maps_in(generic) == _scaled_maps() and is_sum_of_scaled_products(generic)


def _scaled_maps() -> list[ir.AffineMap]:
    """Returns the indexing maps of A, B, scales of A, scales of B and C."""
    m, n, k = map(ir.AffineExpr.get_dim, range(3))
    rows_b = ir.AffineExpr.get_floor_div(n, SCALED_COLUMNS)
    steps = ir.AffineExpr.get_floor_div(k, SCALED_DEPTH)
    results = [[m, k], [n, k], [m, steps], [rows_b, steps], [m, n]]
    return [ir.AffineMap.get(3, 0, pair) for pair in results]


def _make_matmul(generic: Op) -> None:
    """Replaces the generic by a ``linalg.matmul`` of its first two operands."""
    a, b, _, _, cleared = generic.operands
    of_a, of_b, _, _, of_c = maps_in(generic)
    with generic.location, ir.InsertionPoint(generic):
        matmul = ir.Operation.create(
            "linalg.matmul",
            results=types_of(generic.results),
            operands=[a, b, cleared],
            attributes={
                "indexing_maps": ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, (of_a, of_b, of_c)))),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
            },
            regions=1,
        )
        _fill_body(matmul, [a, b, cleared])
    generic.results[0].replace_all_uses_with(matmul.results[0])
    generic.erase()


def _fill_body(matmul: Op, operands: list[Value]) -> None:
    elements = [ir.RankedTensorType(operand.type).element_type for operand in operands]
    block = matmul.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        *factors, so_far = block.arguments
        wide = [create("arith.extf", [so_far.type], [factor]).results[0] for factor in factors]
        product = create("arith.mulf", [so_far.type], wide).results[0]
        total = create("arith.addf", [so_far.type], [so_far, product]).results[0]
        create("linalg.yield", [], [total])
