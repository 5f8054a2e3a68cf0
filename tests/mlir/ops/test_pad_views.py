"""``tuner.pad_views``: which sizes become larger, which bounds are kept, and what is refused."""

from dataclasses import replace

from tests.texts import text_beside
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.payload.gpu import EpilogueOperand, gpu_payload_mlir, matmul_with_epilogue_mlir
from tuner.gpu.payload.scratch import Scratch

LINE = '"tuner.pad_views"(%func) {{sizes = array<i64: {0}>}} : (!transform.any_op) -> ()'
PADDED = LINE.format("64, 48, 96")
BIAS = Matmul(15, 31, 7, "f16", epilogue="bias_relu")
WINDOW = text_beside(__file__, "WINDOW")
PART_AND_PAD = text_beside(__file__, "PART_AND_PAD")


def payload(dtype: str, sizes: tuple[int, int, int], layout: str = "nn") -> str:
    """Returns a matmul of true sizes (m, n, k)."""
    return gpu_payload_mlir(Matmul(*sizes, dtype, layout), Scratch()).replace("@matmul", "@f")


def function(name: str, scratch: Scratch, problem: Problem = BIAS) -> str:
    """Returns a payload whose function ``name`` is @f."""
    return gpu_payload_mlir(problem, scratch).replace(f"@{name}(", "@f(")


RETURN, PRODUCT = "  return\n", "  %product = linalg.matmul"
COPY = "linalg.copy ins(%D : tensor<4x4xf32>) outs(%D : tensor<4x4xf32>) -> tensor<4x4xf32>"
APART = f"  %D = tensor.empty() : tensor<4x4xf32>\n  %d = {COPY}\n"
OPERAND = "(%product : tensor<4x4xf32>)"
TRANSPOSED = f"linalg.transpose ins{OPERAND} outs{OPERAND} permutation = [1, 0]"


def changed(changes: dict[str, str]) -> str:
    text = PART_AND_PAD
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


OTHER_MEMORY = "expected tensors of arguments or of their first elements, got other memory"
SHORTER = {"4x4xf32": "3x4xf32"}
EVERY_SECOND = {"[4, 6] [1, 1]": "[3, 6] [2, 1]", "4x6xf32": "3x6xf32", "[6, 1]>>": "[12, 1]>>"} | SHORTER
WIDE = "memref<5x4xf32, strided<[9, 1]>>"
GAPS = {"%b: memref<5x4xf32>": f"%b: {WIDE}", " : memref<5x4xf32> to": f" : {WIDE} to"}
CAST = {PRODUCT: f"  %cast = tensor.cast %B : tensor<5x4xf32> to tensor<?x?xf32>\n{PRODUCT}"}
TURNED = {RETURN: f"  %T = {TRANSPOSED}\n{RETURN}"}
OF_PARTS = [
    ({"%a[0, 0]": "%a[1, 0]", "strided<[6, 1]>": "strided<[6, 1], offset: 6>"}, OTHER_MEMORY),
    (EVERY_SECOND, OTHER_MEMORY),
    ({"low[0, 0] high[1, 0]": "low[1, 0] high[0, 0]"}, r"expected a tensor\.pad of an argument by zeros"),
    ({"yield %zero": "yield %one"}, r"expected a tensor\.pad of an argument by zeros at its ends"),
    (GAPS, "argument 1: expected rows without gaps, got memref<5x4xf32, strided<"),
    (CAST, r"expected linalg ops on tensors of arguments, got tensor\.cast"),
    ({RETURN: APART + RETURN}, r"expected linalg ops on one another's tensors, got linalg\.copy apart"),
    (TURNED, r"expected linalg ops with indexing maps, got linalg\.transpose"),
]
READ = enumerate([(0, 1), (1,), (0,)])  # a matrix, a row and a column
OPERANDS = tuple(EpilogueOperand(f"other{at}", dimensions, "f32") for at, dimensions in READ)
WITH_EPILOGUE = matmul_with_epilogue_mlir(replace(BIAS, epilogue="none"), OPERANDS, "f16")
MATMUL = payload("f32", (50, 40, 60))
BECOMES = {
    "pad_views_matmul": (PADDED, MATMUL),
    "pad_views_equal_sizes": (LINE.format("16, 32, 64"), payload("f16", (8, 8, 8), "tn")),
    "pad_views_rows_only": (LINE.format("64, 40, 60"), payload("f32", (50, 40, 60), "nt")),
    "pad_views_bias": (LINE.format("16, 32, 64"), function("matmul", Scratch())),
    "pad_views_epilogue": (LINE.format("16, 32, 64"), WITH_EPILOGUE.replace("@matmul", "@f")),
    "pad_views_packed": (LINE.format("16, 32, 64"), function("matmul", Scratch((4, 16, 32), ("a", "b")))),
    "pad_views_pack": (LINE.format("16, 64"), function("pack_a", Scratch(packed=("a",)))),
    "pad_views_part": (LINE.format("8, 8, 8"), PART_AND_PAD),  # has the bounds of its argument; the pad goes
    "pad_views_reduce": (LINE.format("4, 16, 32"), function("reduce", Scratch((4, 16, 32)))),
}
UNCHANGED = [(LINE.format("50, 40, 60"), MATMUL, "true sizes")]
SQUARED = payload("f32", (8, 8, 8)).replace("ins(%A, %B", "ins(%A, %A")
DYNAMIC = MATMUL.replace("50x60", "?x60").replace("50x40", "?x40")
NOTHING = "func.func @f(%a: memref<4xf32>) {\n  return\n}"
REFUSED = [
    (LINE.format("64, 48"), MATMUL, r"sizes: expected 3, one for each loop of linalg\.matmul, got 2"),
    (LINE.format("49, 48, 96"), MATMUL, r"sizes\[0\]: expected 50\.\.2147483647, got 49"),
    (LINE.format("64, 48, 59"), MATMUL, r"sizes\[2\]: expected 60\.\.2147483647, got 59"),
    (LINE.format("64, 99999999999, 96"), MATMUL, r"sizes\[1\]: expected 40\.\.2147483647, got 99999999999"),
    (LINE.replace(" {{sizes = array<i64: {0}>}}", ""), MATMUL, "sizes: expected 3, one for each loop"),
    (LINE.format("16, 32, 64"), SQUARED, r"tensor<8x8xf32>: expected one padded size, got \[16, 64\] and"),
    (PADDED, DYNAMIC, r"expected static sizes, got tensor<\?x60xf32>"),
    (LINE.format("8, 8"), WINDOW, r"expected loops as indices, got \(d0, d1\) -> \(d0 \+ d1\)"),
    (PADDED, NOTHING, r"expected a linalg op on tensors other than linalg\.fill, got none"),
    (f"{PADDED}\n    {PADDED}", MATMUL, r"expected true sizes, got tuner\.bounds of argument"),
    *((LINE.format("8, 8, 8"), changed(changes), reason) for changes, reason in OF_PARTS),
]
