"""Texts of fusions whose contraction multiplies i8 into i32, with the epilogues of quantized layers."""

from dataclasses import dataclass

from tests.group_texts import PARALLEL, Argument, fusion, generic, tensor


@dataclass(frozen=True)
class Epilogue:
    """What follows the sums %x0 (and %last, those of a second product): operands, result, body."""

    output: str  # element type of the result
    body: str  # gives %r from %x0 and the operands %x1, %x2
    columns: tuple[str, ...] = ()  # element types of operands with one number per column, weights
    whole: tuple[str, ...] = ()  # element types of operands of the result's shape, after those


SCALED = "%w = arith.sitofp %x0 : i32 to f32\n      %s = arith.mulf %w, %x1 : f32\n      "
SCALED_ALIKE = """%w = arith.sitofp %x0 : i32 to f32
      %cs = arith.constant 0.0078125 : f32
      %s = arith.mulf %w, %cs : f32
      """
EPILOGUES = {
    "bias": Epilogue("i32", "%r = arith.addi %x0, %x1 : i32", ("i32",)),
    "relu": Epilogue("i32", "%c0 = arith.constant 0 : i32\n      %r = arith.maxsi %x0, %c0 : i32"),
    "scale": Epilogue("f32", SCALED_ALIKE + "%r = arith.addf %s, %s : f32"),
    "columns": Epilogue(
        "f32",
        SCALED
        + """%t = arith.addf %s, %x2 : f32
      %c0 = arith.constant 0.0 : f32
      %c = arith.cmpf ugt, %t, %c0 : f32
      %r = arith.select %c, %t, %c0 : f32""",
        ("f32", "f32"),
    ),
    "residual": Epilogue("f32", SCALED + "%r = arith.addf %s, %x2 : f32", ("f32",), ("f32",)),
    "requantized": Epilogue(
        "i8",
        SCALED_ALIKE
        + """%e = math.roundeven %s : f32
      %least = arith.constant -128.0 : f32
      %greatest = arith.constant 127.0 : f32
      %u = arith.maximumf %e, %least : f32
      %v = arith.minimumf %u, %greatest : f32
      %r = arith.fptosi %v : f32 to i8""",
    ),
}
NAMES = ("none", *EPILOGUES)


def product(m: int, n: int, k: int, epilogue: str = "none", *, batch: int = 0, pairs: bool = False) -> str:
    """Returns a contraction of i8 with an epilogue; a matmul's B is a weight, a batch_matmul's is not.

    ``pairs``: two products of one A, of which the second, in f32, is the factor of the first's scaled sums.
    """
    lead = (batch,) if batch else ()
    a, b, c = (*lead, m, k), (*lead, k, n), (*lead, m, n)
    name, kind = "linalg.batch_matmul" if batch else "linalg.matmul", tensor(c, "i32")
    inputs = [Argument("a", a, "i8"), Argument("b", b, "i8", not batch)]
    inputs += [Argument("d", b, "i8", not batch)] * pairs
    is_alone = epilogue == "none" and not pairs
    lines = ["%z = arith.constant 0 : i32", f"%empty = tensor.empty() : {kind}"]
    lines.append(f"%f = linalg.fill ins(%z : i32) outs(%empty : {kind}) -> {kind}")
    marks = "{contraction, root}" if is_alone else "{contraction}"
    for result, right in [("%p", "%b_t"), ("%q", "%d_t")][: 1 + pairs]:
        kinds = f"{tensor(a, 'i8')}, {tensor(b, 'i8')}"
        lines.append(f"{result} = {name} {marks} ins(%a_t, {right} : {kinds}) outs(%f : {kind}) -> {kind}")
    if is_alone:
        return fusion(inputs, Argument("out", c, "i32"), "\n".join(lines), "%p")
    asked = EPILOGUES["scale" if pairs else epilogue]
    extra = [Argument(f"e{at}", (n,), each, is_weight=True) for at, each in enumerate(asked.columns)]
    extra += [Argument(f"r{at}", c, each) for at, each in enumerate(asked.whole)]
    lines.append(_epilogue(asked, c, extra, pairs))
    return fusion([*inputs, *extra], Argument("out", c, asked.output), "\n".join(lines))


def _epilogue(asked: Epilogue, c: tuple[int, ...], extra: list[Argument], pairs: bool) -> str:
    names = [f"d{number}" for number in range(len(c))]
    loops = ", ".join(names)
    whole, columns = f"affine_map<({loops}) -> ({loops})>", f"affine_map<({loops}) -> ({names[-1]})>"
    operands, maps = [("%p", tensor(c, "i32"))], [whole]
    for each in extra:
        operands.append((f"%{each.name}_t", tensor(each.shape, each.element)))
        maps.append(columns if each.is_weight else whole)
    body, last = asked.body, "%r"
    if pairs:
        operands.append(("%q", tensor(c, "i32")))
        maps.append(whole)
        body += f"\n      %other = arith.sitofp %x{len(operands) - 1} : i32 to f32"
        body += f"\n      %gated = arith.mulf %r, %other : {asked.output}"
        last = "%gated"
    body += f"\n      linalg.yield {last} : {asked.output}"
    start = ("%out_t", tensor(c, asked.output))
    return generic("%r", [*maps, whole], [PARALLEL] * len(c), operands, start, body, "root")


def quantized(shape: tuple[int, ...]) -> str:
    """Returns numbers of f32 rounded to i8: divided, rounded to even, clamped as PyTorch does it."""
    loops = ", ".join(f"d{number}" for number in range(len(shape)))
    identity = f"affine_map<({loops}) -> ({loops})>"
    body = """%by = arith.constant 32.0 : f32
      %least = arith.constant -128.0 : f32
      %greatest = arith.constant 127.0 : f32
      %s = arith.mulf %x0, %by : f32
      %e = math.roundeven %s : f32
      %is_less = arith.cmpf olt, %e, %least : f32
      %t = arith.select %is_less, %least, %e : f32
      %is_more = arith.cmpf ogt, %t, %greatest : f32
      %u = arith.select %is_more, %greatest, %t : f32
      %q = arith.fptosi %u : f32 to i8
      linalg.yield %q : i8"""
    start, kinds = ("%out_t", tensor(shape, "i8")), [PARALLEL] * len(shape)
    text = generic("%r", [identity] * 2, kinds, [("%a_t", tensor(shape))], start, body, "root")
    return fusion([Argument("a", shape)], Argument("out", shape, "i8"), text)
