"""Texts of fusions, as ``tuner.core.fusions`` describes them."""

from collections.abc import Iterable
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
    zero_planes: tuple[int, int] = (0, 0)  # of a volume, marked as zeros at its start and at its end

    @property
    def attributes(self) -> str:
        """Returns the attributes in braces, or ""."""
        first, last = self.zero_planes
        marks = ["tuner.weight"] * self.is_weight
        marks += [f"tuner.zero_planes = array<i64: {first}, {last}>"] * (first + last > 0)
        return f" {{{', '.join(marks)}}}" if marks else ""

    @property
    def memref(self) -> str:
        return tensor(self.shape, self.element).replace("tensor", "memref")


def tensor(shape: Shape, element: str = "f32") -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def fusion(inputs: list[Argument], output: Argument, body: str, result: str = "%r") -> str:
    """Returns a module with a function ``fusion`` whose body computes ``result``; inputs are %a_t for %a."""
    every = [*inputs, output]
    listed = [f"%{each.name}: {each.memref}{each.attributes}" for each in every]
    lines = [f"func.func @fusion({', '.join(listed)}) {{"]
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


def affine_map(rank: int, read: Iterable[int] | None = None) -> str:
    """Returns a map from ``rank`` loops to some of them, by their numbers, else to all."""
    loops = [f"d{number}" for number in range(rank)]
    results = loops if read is None else [loops[number] for number in read]
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(results)})>"


def contraction(
    sizes: Shape, types: tuple[str, str, str], extra: list[Argument], body: str, *, pairs: bool = False
) -> str:
    """Returns a product, or two of one A, with ``body`` as its epilogue, "" for none.

    ``sizes``: (batch, m, n, k), batch 0: a matmul, whose B is a weight; ``types``: of operands, sums, result.
    """
    (batch, m, n, k), (element, sums, output) = sizes, types
    lead = (batch,) if batch else ()
    a, b, c = (*lead, m, k), (*lead, k, n), (*lead, m, n)
    name, kind = "linalg.batch_matmul" if batch else "linalg.matmul", tensor(c, sums)
    inputs = [Argument("a", a, element), Argument("b", b, element, not batch)]
    inputs += [Argument("d", b, element, not batch)] * pairs
    zero = "0" if sums.startswith("i") else "0.0"
    lines = [f"%z = arith.constant {zero} : {sums}", f"%empty = tensor.empty() : {kind}"]
    lines.append(f"%f = linalg.fill ins(%z : {sums}) outs(%empty : {kind}) -> {kind}")
    marks = "{contraction}" if body else "{contraction, root}"
    kinds = f"{tensor(a, element)}, {tensor(b, element)}"
    for result, right in [("%p", "%b_t"), ("%q", "%d_t")][: 1 + pairs]:
        lines.append(f"{result} = {name} {marks} ins(%a_t, {right} : {kinds}) outs(%f : {kind}) -> {kind}")
    if body:
        whole, columns = affine_map(len(c)), affine_map(len(c), [len(c) - 1])
        maps = [whole, *(columns if each.is_weight else whole for each in extra), *[whole] * (1 + pairs)]
        read = [(f"%{each.name}_t", tensor(each.shape, each.element)) for each in extra]
        operands, start = [("%p", kind), *read, *[("%q", kind)] * pairs], ("%out_t", tensor(c, output))
        lines.append(generic("%r", maps, [PARALLEL] * len(c), operands, start, body, "root"))
    return fusion([*inputs, *extra], Argument("out", c, output), "\n".join(lines), "%r" if body else "%p")


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
    if epilogue == "none" and not pairs:
        return contraction((batch, m, n, k), (element, sums, sums), [], "")
    extra = [Argument("e", (n,), sums, is_weight=True)] if epilogue in ("bias", "bias_relu", "gelu") else []
    body = f"%cz = arith.constant 0.0 : {sums}\n      {filled(__file__, epilogue, e=sums).rstrip()}"
    if epilogue == "residual":
        extra = [Argument("e", (batch, m, n) if batch else (m, n), element)]
        if element != sums:
            body = f"%wide = arith.extf %x1 : {element} to {sums}\n      " + body.replace("%x1", "%wide")
    last = "%r"
    if pairs:
        body += f"\n      %gated = arith.mulf %r, %x{1 + len(extra)} : {sums}"
        last = "%gated"
    if element != sums:
        body += f"\n      %rounded = arith.truncf {last} : {sums} to {element}"
        last = "%rounded"
    body += f"\n      linalg.yield {last} : {element}"
    return contraction((batch, m, n, k), (element, sums, element), extra, body, pairs=pairs)


def of_rows(part: str, rows: int, columns: int, output: Shape, element: str = "f32") -> str:
    """Returns a fusion of one matrix, whose body is a part of fusion_texts.mlir."""
    shape = (rows, columns)
    body = filled(__file__, part, whole=tensor(shape, element), each=tensor((rows,)))
    return fusion([Argument("a", shape, element)], Argument("out", output, element), body)


# Rows as columns: of ``outer`` matrices, reduced over their first dimension.
COLUMNS = {
    "(i, j) -> (i, j)": "(b, j, i) -> (b, j, i)",
    "(i, j) -> (i)": "(b, j, i) -> (b, i)",
    "(i) -> (i)": "(b, i) -> (b, i)",
    '["parallel", "reduction"]': '["parallel", "reduction", "parallel"]',
    '["parallel", "parallel"]': '["parallel", "parallel", "parallel"]',
    '["parallel"]': '["parallel", "parallel"]',
}


def of_columns(part: str, outer: int, rows: int, columns: int) -> str:
    """Returns a part that ``of_rows`` takes, for each column of matrices."""
    element = "bf16" if part == "narrow_rows" else "f32"
    shape, each = (outer, rows, columns), (outer, columns)
    body = filled(__file__, part, whole=tensor(shape, element), each=tensor(each))
    for row, column in COLUMNS.items():
        body = body.replace(row, column)
    output = Argument("out", each if part in ("row_sums", "row_means") else shape, element)
    return fusion([Argument("a", shape, element)], output, body)


def softmax(rows: int, columns: int) -> str:
    """Returns the softmax of each row: the maximum subtracted, exp, divided by the sum."""
    return of_rows("softmax", rows, columns, (rows, columns))


def row_sums(rows: int, columns: int) -> str:
    """Returns the sum of each row: the root is the reduction."""
    return of_rows("row_sums", rows, columns, (rows,))


def row_means(rows: int, columns: int) -> str:
    """Returns a third of the sum of each row: the root has a number for each row."""
    return of_rows("row_means", rows, columns, (rows,))


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
    rank, result = len(shape), tuple(shape[each] for each in order)
    maps = [affine_map(rank, [order.index(number) for number in range(rank)]), affine_map(rank)]
    operands, start = [("%a_t", tensor(shape, element))], ("%out_t", tensor(result, element))
    kinds, last = [PARALLEL] * rank, f"linalg.yield %x0 : {element}"
    body = generic("%r", maps, kinds, operands, start, last, "root")
    return fusion([Argument("a", shape, element)], Argument("out", result, element), body)


def elementwise(shape: Shape, op: str = "math.tanh %x0", element: str = "f32") -> str:
    """Returns one function of each element."""
    kind, body = tensor(shape, element), f"%y = {op} : {element}\n linalg.yield %y : {element}"
    maps, kinds = [affine_map(len(shape))] * 2, [PARALLEL] * len(shape)
    text = generic("%r", maps, kinds, [("%a_t", kind)], ("%out_t", kind), body, "root")
    return fusion([Argument("a", shape, element)], Argument("out", shape, element), text)
