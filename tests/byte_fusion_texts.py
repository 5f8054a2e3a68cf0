"""Texts of fusions whose contraction multiplies i8 into i32, with the epilogues of quantized layers."""

from dataclasses import dataclass

from tests.fusion_texts import PARALLEL, Argument, affine_map, contraction, fusion, generic, tensor
from tests.texts import text_beside


@dataclass(frozen=True)
class Epilogue:
    """What follows the sums %x0: operands and result; the body is a part of byte_fusion_texts.mlir."""

    output: str  # element type of the result
    columns: tuple[str, ...] = ()  # element types of operands with one number per column, weights
    whole: tuple[str, ...] = ()  # element types of operands of the result's shape, after those


EPILOGUES = {
    "bias": Epilogue("i32", ("i32",)),
    "relu": Epilogue("i32"),
    "scale": Epilogue("f32"),
    "columns": Epilogue("f32", ("f32", "f32")),
    "residual": Epilogue("f32", ("f32",), ("f32",)),
    "requantized": Epilogue("i8"),
}
NAMES = ("none", *EPILOGUES)


def product(m: int, n: int, k: int, epilogue: str = "none", *, batch: int = 0, pairs: bool = False) -> str:
    """Returns a contraction of i8 with an epilogue; a matmul's B is a weight, a batch_matmul's is not.

    ``pairs``: two products of one A, of which the second, in f32, is the factor of the first's scaled sums.
    """
    sizes, shape = (batch, m, n, k), (batch, m, n) if batch else (m, n)
    if epilogue == "none" and not pairs:
        return contraction(sizes, ("i8", "i32", "i32"), [], "")
    name = "scale" if pairs else epilogue
    asked = EPILOGUES[name]
    extra = [Argument(f"e{at}", (n,), each, is_weight=True) for at, each in enumerate(asked.columns)]
    extra += [Argument(f"r{at}", shape, each) for at, each in enumerate(asked.whole)]
    body, last = text_beside(__file__, name), "%r"
    if pairs:
        body += f"\n      %other = arith.sitofp %x{1 + len(extra)} : i32 to f32"
        body += f"\n      %gated = arith.mulf %r, %other : {asked.output}"
        last = "%gated"
    body += f"\n      linalg.yield {last} : {asked.output}"
    return contraction(sizes, ("i8", "i32", asked.output), extra, body, pairs=pairs)


def quantized(shape: tuple[int, ...]) -> str:
    """Returns numbers of f32 rounded to i8: divided, rounded to even, clamped as PyTorch does it."""
    start, kinds = ("%out_t", tensor(shape, "i8")), [PARALLEL] * len(shape)
    maps, body = [affine_map(len(shape))] * 2, text_beside(__file__, "quantized")
    text = generic("%r", maps, kinds, [("%a_t", tensor(shape))], start, body, "root")
    return fusion([Argument("a", shape)], Argument("out", shape, "i8"), text)
