"""Compiles matrix products of tensors, each of one shape: their MLIR text, and the code that is kept."""

from dataclasses import dataclass
from functools import lru_cache

import torch

from tuner.core.candidate import TargetName
from tuner.core.dtypes import number_type
from tuner.core.errors import UsageError
from tuner.programs.compile import compile_in_child
from tuner.programs.request import ProgramRequest
from tuner.programs.run.fused_code import FusedImage

ELEMENTS = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16"}
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
{extended}    %r = arith.addf %x, %{addend} : {sum}
    linalg.yield %r : {sum}
  }} -> {sums}
"""
ROUNDED = """  %place = tensor.empty() : {c}
  %rounded = linalg.map {{ arith.truncf }} ins(%{before} : {sums}) outs(%place : {c})
"""
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
        lead = (self.batch,) if self.batch else ()
        a = _tensor(element, *lead, self.m, self.k)
        b = _tensor(element, *lead, self.k, self.n)
        c = _tensor(element, *lead, self.m, self.n)
        sums = _tensor(sum_, *lead, self.m, self.n)
        row = _tensor(element, self.n)
        arguments = [f"%a: {a}"]
        weight = f"  %b = arith.constant dense_resource<weight> : {b}\n"
        steps = ""
        result = "product"
        if not self.is_weight:
            arguments.append(f"%b: {b}")
        if self.has_bias:
            arguments.append(f"%bias: {row}")
            extended = f"    %wide = arith.extf %y : {element} to {sum_}\n" if element != sum_ else ""
            addend = "wide" if extended else "y"
            steps += BIAS.format(
                sums=sums, sum=sum_, row=row, element=element, extended=extended, addend=addend
            )
            result = "sum"
        if element != sum_:
            steps += ROUNDED.format(before=result, sums=sums, c=c)
            result = "rounded"
        body = PRODUCT.format(
            arguments=", ".join(arguments),
            weight=weight if self.is_weight else "",
            sum=sum_,
            sums=sums,
            a=a,
            b=b,
            c=c,
            op="linalg.batch_matmul" if self.batch else "linalg.matmul",
            steps=steps,
            result=result,
        )
        digits = "00" * (self.k * self.n * number_type(element).bytes)
        return body + (RESOURCES.format(digits=digits) if self.is_weight else "")


@lru_cache(maxsize=SHAPES_LIMIT)
def compiled_product(product: Product) -> FusedImage:
    """Returns the code of a product; raises UsageError where it cannot be compiled."""
    compiled = compile_in_child(ProgramRequest(product.text, TargetName("cpu")))
    if compiled.image is None:
        raise UsageError(f"the product cannot be compiled: {compiled.why_no_fusions}")
    return compiled.image


def _tensor(element: str, *sizes: int) -> str:
    return f"tensor<{'x'.join(map(str, (*sizes, element)))}>"
