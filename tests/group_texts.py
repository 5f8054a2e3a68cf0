"""Texts of fusions, as ``tuner.core.fusions`` describes them."""

from dataclasses import dataclass

from tests.texts import text_beside

EPILOGUES = ("none", "bias", "bias_relu", "gelu", "silu", "residual", "scale")
PARALLEL, REDUCTION = '"parallel"', '"reduction"'
ROWS = "affine_map<(i, j) -> (i, j)>"
OF_ROW, OF_COLUMN = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (j)>"


@dataclass(frozen=True)
class Argument:
    """An argument of a fusion's function."""

    name: str
    shape: tuple[int, ...]
    element: str = "f32"
    is_weight: bool = False

    @property
    def memref(self) -> str:
        return tensor(self.shape, self.element).replace("tensor", "memref")


def tensor(shape: tuple[int, ...], element: str = "f32") -> str:
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
    lead = (batch,) if batch else ()
    a, b, c = (*lead, m, k), (*lead, k, n), (*lead, m, n)
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


def _epilogue(
    epilogue: str, c: tuple[int, ...], types: tuple[str, str], extra: tuple[int, ...] | None, pairs: bool
) -> str:
    element, sums = types
    names = [f"d{number}" for number in range(len(c))]
    loops = ", ".join(names)
    whole, columns = f"affine_map<({loops}) -> ({loops})>", f"affine_map<({loops}) -> ({names[-1]})>"
    kind = tensor(c, sums)
    operands, maps = [("%p", kind)], [whole]
    if extra:
        operands.append(("%e_t", tensor(extra, element if extra == c else sums)))
        maps.append(whole if extra == c else columns)
    body = (
        f"%cz = arith.constant 0.0 : {sums}\n      " + text_beside(__file__, epilogue).format(e=sums).rstrip()
    )
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


def softmax(rows: int, columns: int) -> str:
    """Returns the softmax of each row: the maximum subtracted, exp, divided by the sum."""
    whole, each = tensor((rows, columns)), tensor((rows,))
    lines = ["%least = arith.constant 0xFF800000 : f32", "%z = arith.constant 0.0 : f32"]
    lines += [f"%e1 = tensor.empty() : {each}", f"%e2 = tensor.empty() : {whole}"]
    lines.append(f"%f1 = linalg.fill ins(%least : f32) outs(%e1 : {each}) -> {each}")
    lines.append(f"%f2 = linalg.fill ins(%z : f32) outs(%e1 : {each}) -> {each}")
    reduce, map_ = [PARALLEL, REDUCTION], [PARALLEL, PARALLEL]
    most = "%m = arith.maximumf %x0, %o : f32\n linalg.yield %m : f32"
    lines.append(generic("%most", [ROWS, OF_ROW], reduce, [("%a_t", whole)], ("%f1", each), most))
    power = "%d = arith.subf %x0, %x1 : f32\n %e = math.exp %d : f32\n linalg.yield %e : f32"
    operands = [("%a_t", whole), ("%most", each)]
    lines.append(generic("%powers", [ROWS, OF_ROW, ROWS], map_, operands, ("%e2", whole), power))
    add = "%s = arith.addf %x0, %o : f32\n linalg.yield %s : f32"
    lines.append(generic("%sum", [ROWS, OF_ROW], reduce, [("%powers", whole)], ("%f2", each), add))
    divide = "%q = arith.divf %x0, %x1 : f32\n linalg.yield %q : f32"
    operands = [("%powers", whole), ("%sum", each)]
    lines.append(generic("%r", [ROWS, OF_ROW, ROWS], map_, operands, ("%out_t", whole), divide, "root"))
    return fusion([Argument("a", (rows, columns))], Argument("out", (rows, columns)), "\n".join(lines))


def layer_norm(rows: int, columns: int, statistics: str = "f64", *, has_mean: bool = True) -> str:
    """Returns a layer norm with scale and shift, without the mean an RMS norm; sums are of ``statistics``."""
    whole, each, scale = tensor((rows, columns)), tensor((rows,)), tensor((columns,))
    wide, sums = tensor((rows, columns), statistics), tensor((rows,), statistics)
    s, is_wide = statistics, statistics != "f32"
    extend = f"%w = arith.extf %x0 : f32 to {s}" if is_wide else "%w = arith.addf %x0, %cz : f32"
    zero = f"%cz = arith.constant 0.0 : {s}\n "
    lines = [f"%z = arith.constant 0.0 : {s}", f"%n = arith.constant {float(columns)} : {s}"]
    lines += [f"%e1 = tensor.empty() : {each}", f"%es = tensor.empty() : {sums}"]
    lines += [f"%ew = tensor.empty() : {wide}"]
    lines.append(f"%f = linalg.fill ins(%z : {s}) outs(%es : {sums}) -> {sums}")
    reduce, map_, line = [PARALLEL, REDUCTION], [PARALLEL, PARALLEL], ["affine_map<(i) -> (i)>"] * 2
    total = f"{zero}{extend}\n %t = arith.addf %w, %o : {s}\n linalg.yield %t : {s}"
    lines.append(generic("%sum", [ROWS, OF_ROW], reduce, [("%a_t", whole)], ("%f", sums), total))
    quotient = f"%q = arith.divf %x0, %n : {s}\n linalg.yield %q : {s}"
    lines.append(generic("%mean", line, [PARALLEL], [("%sum", sums)], ("%es", sums), quotient))
    subtract = f"{zero}{extend}\n %d = arith.subf %w, %x1 : {s}\n linalg.yield %d : {s}"
    if not has_mean:
        subtract = f"{zero}{extend}\n linalg.yield %w : {s}"
    operands = [("%a_t", whole), ("%mean", sums)]
    lines.append(generic("%c", [ROWS, OF_ROW, ROWS], map_, operands, ("%ew", wide), subtract))
    square = f"%q = arith.mulf %x0, %x0 : {s}\n %t = arith.addf %q, %o : {s}\n linalg.yield %t : {s}"
    lines.append(generic("%squares", [ROWS, OF_ROW], reduce, [("%c", wide)], ("%f", sums), square))
    narrow = f"arith.truncf %v : {s} to f32" if is_wide else "arith.addf %v, %v : f32"
    root = text_beside(__file__, "inverse_root").format(s=s, narrow=narrow)
    lines.append(generic("%root", line, [PARALLEL], [("%squares", sums)], ("%e1", each), root))
    narrow = f"arith.truncf %x0 : {s} to f32" if is_wide else "arith.mulf %x0, %x2 : f32"
    last = text_beside(__file__, "scale_and_shift").format(narrow=narrow)
    operands = [("%c", wide), ("%root", each), ("%g_t", scale), ("%b_t", scale)]
    maps = [ROWS, OF_ROW, OF_COLUMN, OF_COLUMN, ROWS]
    lines.append(generic("%r", maps, map_, operands, ("%out_t", whole), last, "root"))
    inputs = [Argument("a", (rows, columns)), Argument("g", (columns,), is_weight=True)]
    inputs.append(Argument("b", (columns,), is_weight=True))
    return fusion(inputs, Argument("out", (rows, columns)), "\n".join(lines))


def row_sums(rows: int, columns: int) -> str:
    """Returns the sum of each row: the root is the reduction."""
    whole, each = tensor((rows, columns)), tensor((rows,))
    add = "%s = arith.addf %x0, %o : f32\n linalg.yield %s : f32"
    lines = ["%z = arith.constant 0.0 : f32"]
    lines.append(f"%f = linalg.fill ins(%z : f32) outs(%out_t : {each}) -> {each}")
    loops = [PARALLEL, REDUCTION]
    lines.append(generic("%r", [ROWS, OF_ROW], loops, [("%a_t", whole)], ("%f", each), add, "root"))
    return fusion([Argument("a", (rows, columns))], Argument("out", (rows,)), "\n".join(lines))


def narrow_rows(rows: int, columns: int) -> str:
    """Returns rows of bf16, divided by one more than the sum of their squares, which is of f32."""
    whole, each = tensor((rows, columns), "bf16"), tensor((rows,))
    lines = ["%z = arith.constant 0.0 : f32", "%c1 = arith.constant 1.0 : f32"]
    lines.append(f"%e = tensor.empty() : {each}")
    lines.append(f"%f = linalg.fill ins(%z : f32) outs(%e : {each}) -> {each}")
    add, divide = (text_beside(__file__, name) for name in ("squares_narrow", "divide_narrow"))
    reduce, map_ = [PARALLEL, REDUCTION], [PARALLEL, PARALLEL]
    lines.append(generic("%sum", [ROWS, OF_ROW], reduce, [("%a_t", whole)], ("%f", each), add))
    operands = [("%a_t", whole), ("%sum", each)]
    lines.append(generic("%r", [ROWS, OF_ROW, ROWS], map_, operands, ("%out_t", whole), divide, "root"))
    shape = (rows, columns)
    return fusion([Argument("a", shape, "bf16")], Argument("out", shape, "bf16"), "\n".join(lines))


def transpose(shape: tuple[int, ...], order: tuple[int, ...], element: str = "f32") -> str:
    """Returns a transpose; dimension i of the result is dimension ``order[i]`` of the operand."""
    loops = ", ".join(f"d{number}" for number in range(len(shape)))
    read = ", ".join(f"d{order.index(number)}" for number in range(len(shape)))
    maps = [f"affine_map<({loops}) -> ({read})>", f"affine_map<({loops}) -> ({loops})>"]
    result = tuple(shape[each] for each in order)
    operands = [("%a_t", tensor(shape, element))]
    start = ("%out_t", tensor(result, element))
    body = generic(
        "%r", maps, [PARALLEL] * len(shape), operands, start, f"linalg.yield %x0 : {element}", "root"
    )
    return fusion([Argument("a", shape, element)], Argument("out", result, element), body)


def elementwise(shape: tuple[int, ...], op: str = "math.tanh %x0", element: str = "f32") -> str:
    """Returns one function of each element."""
    loops = ", ".join(f"d{number}" for number in range(len(shape)))
    identity = f"affine_map<({loops}) -> ({loops})>"
    kind = tensor(shape, element)
    body = f"%y = {op} : {element}\n linalg.yield %y : {element}"
    maps, kinds = [identity, identity], [PARALLEL] * len(shape)
    text = generic("%r", maps, kinds, [("%a_t", kind)], ("%out_t", kind), body, "root")
    return fusion([Argument("a", shape, element)], Argument("out", shape, element), text)
