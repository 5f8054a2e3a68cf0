"""Texts of fusions whose contraction multiplies i8 into i32, with the epilogues of quantized layers."""

from dataclasses import dataclass

from tests.group_texts import PARALLEL, Argument, fusion, generic, shapes, tensor
from tests.texts import text_beside


@dataclass(frozen=True)
class Epilogue:
    """What follows the sums %x0: operands and result; the body is a part of byte_group_texts.mlir."""

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
    a, b, c = shapes(m, n, k, batch)
    op, kind = "linalg.batch_matmul" if batch else "linalg.matmul", tensor(c, "i32")
    inputs = [Argument("a", a, "i8"), Argument("b", b, "i8", not batch)]
    inputs += [Argument("d", b, "i8", not batch)] * pairs
    is_alone = epilogue == "none" and not pairs
    lines = ["%z = arith.constant 0 : i32", f"%empty = tensor.empty() : {kind}"]
    lines.append(f"%f = linalg.fill ins(%z : i32) outs(%empty : {kind}) -> {kind}")
    marks = "{contraction, root}" if is_alone else "{contraction}"
    for result, right in [("%p", "%b_t"), ("%q", "%d_t")][: 1 + pairs]:
        kinds = f"{tensor(a, 'i8')}, {tensor(b, 'i8')}"
        lines.append(f"{result} = {op} {marks} ins(%a_t, {right} : {kinds}) outs(%f : {kind}) -> {kind}")
    if is_alone:
        return fusion(inputs, Argument("out", c, "i32"), "\n".join(lines), "%p")
    name = "scale" if pairs else epilogue
    asked = EPILOGUES[name]
    extra = [Argument(f"e{at}", (n,), each, is_weight=True) for at, each in enumerate(asked.columns)]
    extra += [Argument(f"r{at}", c, each) for at, each in enumerate(asked.whole)]
    lines.append(_epilogue(name, c, extra, pairs))
    return fusion([*inputs, *extra], Argument("out", c, asked.output), "\n".join(lines))


def _epilogue(name: str, c: tuple[int, ...], extra: list[Argument], pairs: bool) -> str:
    names = [f"d{number}" for number in range(len(c))]
    loops = ", ".join(names)
    whole, columns = f"affine_map<({loops}) -> ({loops})>", f"affine_map<({loops}) -> ({names[-1]})>"
    operands, maps = [("%p", tensor(c, "i32"))], [whole]
    for each in extra:
        operands.append((f"%{each.name}_t", tensor(each.shape, each.element)))
        maps.append(columns if each.is_weight else whole)
    body, last, output = text_beside(__file__, name), "%r", EPILOGUES[name].output
    if pairs:
        operands.append(("%q", tensor(c, "i32")))
        maps.append(whole)
        body += f"\n      %other = arith.sitofp %x{len(operands) - 1} : i32 to f32"
        body += f"\n      %gated = arith.mulf %r, %other : {output}"
        last = "%gated"
    body += f"\n      linalg.yield {last} : {output}"
    start = ("%out_t", tensor(c, output))
    return generic("%r", [*maps, whole], [PARALLEL] * len(c), operands, start, body, "root")


def quantized(shape: tuple[int, ...]) -> str:
    """Returns numbers of f32 rounded to i8: divided, rounded to even, clamped as PyTorch does it."""
    loops = ", ".join(f"d{number}" for number in range(len(shape)))
    identity = f"affine_map<({loops}) -> ({loops})>"
    start, kinds = ("%out_t", tensor(shape, "i8")), [PARALLEL] * len(shape)
    maps, body = [identity] * 2, text_beside(__file__, "quantized")
    text = generic("%r", maps, kinds, [("%a_t", tensor(shape))], start, body, "root")
    return fusion([Argument("a", shape)], Argument("out", shape, "i8"), text)
