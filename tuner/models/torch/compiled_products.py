"""Compiles matrix products of tensors, each of one shape: their MLIR text, and the code that is kept."""

from dataclasses import dataclass
from functools import lru_cache

from tuner.core.candidate import TargetName
from tuner.core.dtypes import FLOATS, number_type
from tuner.core.errors import UsageError
from tuner.models.compile import compile_in_child
from tuner.models.request import ProgramRequest
from tuner.models.run.fused_code import FusedImage
from tuner.models.torch.program import torch_type

ELEMENTS = {torch_type(name): name for name in FLOATS}
DTYPES = ", ".join(str(dtype).removeprefix("torch.") for dtype in ELEMENTS)  # as torch writes them
SHAPES_LIMIT = 256  # that are kept compiled
PRODUCT = """func.func @main({arguments}) -> {c} {{
{weight}  %zero = arith.constant 0.0 : {sum}
  %empty = tensor.empty() : {sums}
  %zeros = linalg.fill ins(%zero : {sum}) outs(%empty : {sums}) -> {sums}
  %product = {op} ins(%a, %b : {a}, {b}) outs(%zeros : {sums}) -> {sums}
{steps}  return %{result} : {c}
}}
"""
BIAS = """  %sum = linalg.generic
    {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}}
    ins(%product, %bias : {sums}, {row}) outs(%empty : {sums}) {{
  ^bb0(%x: {sum}, %y: {element}, %z: {sum}):
{body}
    linalg.yield %r : {sum}
  }} -> {sums}
"""
ADDED_BIAS = "    %r = arith.addf %x, %y : {1}"
WIDENED_BIAS = "    %wide = arith.extf %y : {0} to {1}\n    %r = arith.addf %x, %wide : {1}"
ROUNDED = """  %place = tensor.empty() : {c}
  %rounded = linalg.map {{ arith.truncf }} ins(%{before} : {sums}) outs(%place : {c})
"""
WEIGHT = "  %b = arith.constant dense_resource<weight> : {b}\n"
# 0x04000000: the alignment of the data, 4 as a little-endian 32-bit integer, as a dense_resource begins
RESOURCES = (
    '{{-#\n  dialect_resources: {{\n    builtin: {{\n      weight: "0x04000000{digits}"\n    }}\n  }}\n#-}}\n'
)


@dataclass(frozen=True)
class Product:
    """A matrix product to compile, C = A @ B (+ bias): element type, sizes, and which operands it has.

    Sums of bf16 and f16 are of f32, and rounded once.
    """

    element: str
    m: int
    n: int
    k: int
    batch: int = 0  # 0: of plain matrices
    has_bias: bool = False  # of n elements
    is_weight: bool = False  # B is packed

    @property
    def text(self) -> str:
        """Returns the MLIR text of the product: a function of A, of B unless B is a weight, and of a bias."""
        element = self.element
        sum_ = number_type(element).sums
        lead = (self.batch,) * bool(self.batch)
        a = _tensor(element, *lead, self.m, self.k)
        b = _tensor(element, *lead, self.k, self.n)
        c = _tensor(element, *lead, self.m, self.n)
        row = _tensor(element, self.n)
        sums = _tensor(sum_, *lead, self.m, self.n)
        arguments = [f"%a: {a}"]
        weight = resources = steps = ""
        result = "product"
        if self.is_weight:
            weight = WEIGHT.format(b=b)
            resources = RESOURCES.format(digits="00" * (self.k * self.n * number_type(element).bytes))
        else:
            arguments.append(f"%b: {b}")
        if self.has_bias:
            arguments.append(f"%bias: {row}")
            body = WIDENED_BIAS
            if element == sum_:
                body = ADDED_BIAS
            steps += BIAS.format(
                sums=sums, row=row, element=element, sum=sum_, body=body.format(element, sum_)
            )
            result = "sum"
        if element != sum_:
            steps += ROUNDED.format(before=result, sums=sums, c=c)
            result = "rounded"
        op = "linalg.matmul"
        if self.batch:
            op = "linalg.batch_matmul"
        body = PRODUCT.format(
            arguments=", ".join(arguments),
            weight=weight,
            sum=sum_,
            sums=sums,
            a=a,
            b=b,
            c=c,
            op=op,
            steps=steps,
            result=result,
        )
        return body + resources


@lru_cache(maxsize=SHAPES_LIMIT)
def compiled_product(product: Product) -> FusedImage:
    """Returns the code of a product; raises UsageError where it cannot be compiled."""
    compiled = compile_in_child(ProgramRequest(product.text, TargetName("cpu")))
    if compiled.image is None:
        raise UsageError(f"the product cannot be compiled: {compiled.why_no_fusions}")
    return compiled.image


def _tensor(element: str, *sizes: int) -> str:
    return f"tensor<{'x'.join(map(str, (*sizes, element)))}>"
