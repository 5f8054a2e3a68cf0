"""Texts of fusions, as ``tuner.core.fusions`` describes them."""

from dataclasses import dataclass

from tests.texts import filled

EPILOGUES = ("none", "bias", "bias_relu", "gelu", "silu", "residual", "scale")
Shape = tuple[int, ...]
PARALLEL, REDUCTION = '"parallel"', '"reduction"'


@dataclass(frozen=True)
class Argument:
    """An argument of a fusion's function."""

    name: str
    shape: Shape
    element: str = "f32"
    is_weight: bool = False

    @property
    def memref(self) -> str:
        return tensor(self.shape, self.element).replace("tensor", "memref")


def tensor(shape: Shape, element: str = "f32") -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def fusion(inputs: list[Argument], output: Argument, body: str, result: str = "%r") -> str:
    """Returns a module with a function ``group`` whose body computes ``result``; inputs are %a_t for %a."""
    every = [*inputs, output]
    listed = [f"%{each.name}: {each.memref}{' {tuner.weight}' * each.is_weight}" for each in every]
    lines = [f"func.func @group({', '.join(listed)}) {{"]
    for each in every:
        writable = " writable" * (each is output)
        kind = tensor(each.shape, each.element)
        lines.append(f"%{each.name}_t = bufferization.to_tensor %{each.name} restrict{writable}")
        lines.append(f"  : {each.memref} to {kind}")
    kind = tensor(output.shape, output.element)
    lines += [body, f"bufferization.materialize_in_destination {result} in restrict writable %{output.name}"]
    lines += [f"  : ({kind}, {output.memref}) -> ()", "return", "}"]
    return "\n".join(lines)


def generic(
    result: str,
    maps: list[str],
    loops: list[str],
    operands: list[tuple[str, str]],
    start: tuple[str, str],
    body: str,
    attributes: str = "",
) -> str:
    """Returns a linalg.generic with block arguments %x0, %x1, ... of its operands, and %o."""
    names, kinds = zip(*operands, strict=True)
    elements = [kind.removesuffix(">").rpartition("x")[2].removeprefix("tensor<") for kind in kinds]
    element = start[1].removesuffix(">").rpartition("x")[2].removeprefix("tensor<")
    listed = ", ".join(f"%x{number}: {each}" for number, each in enumerate(elements))
    return f"""{result} = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = [{", ".join(loops)}]}} ins({", ".join(names)} : {", ".join(kinds)})
      outs({start[0]} : {start[1]}){f" attrs = {{{attributes}}}" if attributes else ""} {{
    ^bb0({listed}, %o: {element}):
      {body}
    }} -> {start[1]}"""


def shapes(m: int, n: int, k: int, batch: int) -> tuple[Shape, Shape, Shape]:
    """Returns the shapes of A, B and C."""
    lead = (batch,) if batch else ()
    return (*lead, m, k), (*lead, k, n), (*lead, m, n)


def product(
    m: int,
    n: int,
    k: int,
    epilogue: str = "none",
    *,
    batch: int = 0,
    pairs: bool = False,
    element: str = "f32",
    sums: str = "",
) -> str:
    """Returns a contraction with an epilogue; a matmul's B is a weight, a batch_matmul's is not.

    ``pairs``: two products of one A, of which the second is multiplied by the first after its epilogue.
    ``sums``: the type of the sums and of a bias, where it is not ``element``; the epilogue is computed in it,
    and its result is rounded to ``element``.
    """
    sums = sums or element
    a, b, c = shapes(m, n, k, batch)
    name = "linalg.batch_matmul" if batch else "linalg.matmul"
    kind = tensor(c, sums)
    inputs = [Argument("a", a, element), Argument("b", b, element, not batch)]
    inputs += [Argument("d", b, element, not batch)] * pairs
    extra = {"bias": (n,), "bias_relu": (n,), "gelu": (n,), "residual": c}.get(epilogue)
    is_residual = epilogue == "residual"
    inputs += [Argument("e", extra, element if is_residual else sums, not is_residual)] if extra else []
    lines = [f"%z = arith.constant 0.0 : {sums}", f"%empty = tensor.empty() : {kind}"]
    lines.append(f"%f = linalg.fill ins(%z : {sums}) outs(%empty : {kind}) -> {kind}")
    only = epilogue == "none" and not pairs
    marks = "{contraction, root}" if only else "{contraction}"
    for result, right in [("%p", "%b_t"), ("%q", "%d_t")][: 1 + pairs]:
        kinds = f"{tensor(a, element)}, {tensor(b, element)}"
        lines.append(f"{result} = {name} {marks} ins(%a_t, {right} : {kinds}) outs(%f : {kind}) -> {kind}")
    if not only:
        lines.append(_epilogue(epilogue, c, (element, sums), extra, pairs))
    output = Argument("out", c, sums if only else element)
    return fusion(inputs, output, "\n".join(lines), "%p" if only else "%r")


def _epilogue(epilogue: str, c: Shape, types: tuple[str, str], extra: Shape | None, pairs: bool) -> str:
    element, sums = types
    names = [f"d{number}" for number in range(len(c))]
    loops = ", ".join(names)
    whole, columns = f"affine_map<({loops}) -> ({loops})>", f"affine_map<({loops}) -> ({names[-1]})>"
    kind = tensor(c, sums)
    operands, maps = [("%p", kind)], [whole]
    if extra:
        operands.append(("%e_t", tensor(extra, element if extra == c else sums)))
        maps.append(whole if extra == c else columns)
    body = f"%cz = arith.constant 0.0 : {sums}\n      {filled(__file__, epilogue, e=sums).rstrip()}"
    if extra == c and element != sums:
        body = f"%wide = arith.extf %x1 : {element} to {sums}\n      " + body.replace("%x1", "%wide")
    last = "%r"
    if pairs:
        operands.append(("%q", kind))
        maps.append(whole)
        body += f"\n      %gated = arith.mulf %r, %x{len(operands) - 1} : {sums}"
        last = "%gated"
    if element != sums:
        body += f"\n      %rounded = arith.truncf {last} : {sums} to {element}"
        last = "%rounded"
    body += f"\n      linalg.yield {last} : {element}"
    start = ("%out_t", tensor(c, element))
    return generic("%r", [*maps, whole], [PARALLEL] * len(c), operands, start, body, "root")


def of_rows(part: str, rows: int, columns: int, output: Shape, element: str = "f32") -> str:
    """Returns a fusion of one matrix, whose body is a part of group_texts.mlir."""
    shape = (rows, columns)
    body = filled(__file__, part, whole=tensor(shape, element), each=tensor((rows,)))
    return fusion([Argument("a", shape, element)], Argument("out", output, element), body)


def softmax(rows: int, columns: int) -> str:
    """Returns the softmax of each row: the maximum subtracted, exp, divided by the sum."""
    return of_rows("softmax", rows, columns, (rows, columns))


def row_sums(rows: int, columns: int) -> str:
    """Returns the sum of each row: the root is the reduction."""
    return of_rows("row_sums", rows, columns, (rows,))


def narrow_rows(rows: int, columns: int) -> str:
    """Returns rows of bf16, divided by one more than the sum of their squares, which is of f32."""
    return of_rows("narrow_rows", rows, columns, (rows, columns), "bf16")


def layer_norm(rows: int, columns: int, statistics: str = "f64", *, has_mean: bool = True) -> str:
    """Returns a layer norm with scale and shift, without the mean an RMS norm; sums are of ``statistics``."""
    whole, line, is_wide = (rows, columns), (columns,), statistics != "f32"
    kinds = {"whole": tensor(whole), "each": tensor((rows,)), "scale": tensor(line), "s": statistics}
    kinds |= {"wide": tensor(whole, statistics), "sums": tensor((rows,), statistics)}
    body = filled(
        __file__,
        "layer_norm",
        extend=f"arith.extf %x0 : f32 to {statistics}" if is_wide else "arith.addf %x0, %cz : f32",
        subtract=f"%d = arith.subf %w, %x1 : {statistics}" if has_mean else "",
        centred="%d" if has_mean else "%w",
        narrow_mean=f"arith.truncf %v : {statistics} to f32" if is_wide else "arith.addf %v, %v : f32",
        narrow=f"arith.truncf %x0 : {statistics} to f32" if is_wide else "arith.mulf %x0, %x2 : f32",
        n=float(columns),
        **kinds,
    )
    weights = [Argument(name, line, is_weight=True) for name in ("g", "b")]
    return fusion([Argument("a", whole), *weights], Argument("out", whole), body)


def transpose(shape: Shape, order: Shape, element: str = "f32") -> str:
    """Returns a transpose; dimension i of the result is dimension ``order[i]`` of the operand."""
    loops = ", ".join(f"d{number}" for number in range(len(shape)))
    read = ", ".join(f"d{order.index(number)}" for number in range(len(shape)))
    maps = [f"affine_map<({loops}) -> ({read})>", f"affine_map<({loops}) -> ({loops})>"]
    result = tuple(shape[each] for each in order)
    operands = [("%a_t", tensor(shape, element))]
    start = ("%out_t", tensor(result, element))
    kinds, last = [PARALLEL] * len(shape), f"linalg.yield %x0 : {element}"
    body = generic("%r", maps, kinds, operands, start, last, "root")
    return fusion([Argument("a", shape, element)], Argument("out", result, element), body)


def elementwise(shape: Shape, op: str = "math.tanh %x0", element: str = "f32") -> str:
    """Returns one function of each element."""
    loops = ", ".join(f"d{number}" for number in range(len(shape)))
    identity = f"affine_map<({loops}) -> ({loops})>"
    kind = tensor(shape, element)
    body = f"%y = {op} : {element}\n linalg.yield %y : {element}"
    maps, kinds = [identity, identity], [PARALLEL] * len(shape)
    text = generic("%r", maps, kinds, [("%a_t", kind)], ("%out_t", kind), body, "root")
    return fusion([Argument("a", shape, element)], Argument("out", shape, element), text)
