"""The payload of a GPU: a problem's MLIR on padded views, with functions that pack before and reduce after.

Tiles divide the padded sizes; true sizes are an attribute of each argument, which
``tuner.mlir.rewrite.padded_views`` reads. The sizes depend on the tiles, so a script states them in
comments at its top::

    // padding: 256 128 96     sizes (m, n, k) of the views
    // workspace: 4            parts of K, each summed into a slice; @reduce adds the slices
    // packed: a b             operands copied first into rows of whole 16 bytes, by @pack_a and @pack_b
"""

import re
from dataclasses import dataclass, replace

from tuner.core.errors import UsageError
from tuner.core.problem import SIZE_LIMIT, Problem
from tuner.payload.cpu import ENTRY, MAPS, batch_comment, scalar_op, zero

COMMENT = re.compile(r"// (padding|workspace|packed): (.*)")
PACKED_BYTES = 16  # of which a packed row is a multiple: the widest copy
PACK_TILE = (4, 64)  # padded sizes of a packed operand are multiples: the blocks of its kernel
SLICES_LIMIT = 64


@dataclass(frozen=True)
class Views:
    """What a script requires of its GPU payload: padded matrix sizes, split-K slices and packed operands."""

    padding: tuple[int, int, int]  # (m, n, k), each at least the problem's
    slices: int = 1  # of the workspace (split-K); 1: no workspace
    packed: tuple[str, ...] = ()  # packed operands: "a", "b", both or none


def views_in(script: str, problem: Problem) -> Views:
    """Returns the padded sizes, the slices and the packed operands that comments of a script state.

    Without such comments, the result has the problem's sizes, one slice and no packed operand. Raises
    UsageError for a padding that is not three numbers, for padded sizes below the problem's or above
    2**31 - 1, for a number of slices (workspace) that is not 1 to 64 or does not divide the padded k, and for
    packed operands other than ``a``, ``b`` or ``a b``, in this order.
    """
    found = {match[1]: match[2].split() for match in map(COMMENT.match, script.splitlines()) if match}
    padding = _numbers("padding", found.get("padding", [str(size) for size in problem.sizes]), 3)
    slices = _numbers("workspace", found.get("workspace", ["1"]), 1)[0]
    packed = tuple(found.get("packed", ()))
    for name, size, padded in zip("mnk", problem.sizes, padding, strict=True):
        if not size <= padded <= SIZE_LIMIT:
            raise UsageError(f"script: padding {name}: found {padded}, allowed {size}..{SIZE_LIMIT}")
    if not 1 <= slices <= SLICES_LIMIT or padding[2] % slices:
        raise UsageError(
            f"script: workspace: found {slices}, allowed 1..{SLICES_LIMIT} that divide {padding[2]}"
        )
    if packed not in ((), ("a",), ("b",), ("a", "b")):
        raise UsageError(f"script: packed: found {' '.join(packed)}, allowed a, b")
    return Views((padding[0], padding[1], padding[2]), slices, packed)


def gpu_payload_mlir(problem: Problem, views: Views) -> str:
    """Returns an MLIR module with the functions of a matmul on a GPU, in the order in which they run.

    The functions are @pack_a and @pack_b for packed operands, @matmul, and @reduce for split K, which sums
    the slices of the workspace. Arguments of @matmul: A, B[, bias], C; for split K A, B, workspace, and
    @reduce writes C. For a batch, the functions take one pair of matrices: ``tuner.mlir.gpu.batches`` runs
    them for all pairs, along z of the grid.
    """
    return batch_comment(problem) + "module {\n" + "".join(_functions(problem, views)) + "}\n"


@dataclass(frozen=True)
class EpilogueOperand:
    """A matrix, row or column that an epilogue reads next to the sums."""

    name: str  # of its buffer
    dimensions: tuple[int, ...]  # of C that index it: (0, 1) for a matrix, (1,) for a row, (0,) for a column
    element: str


def matmul_with_epilogue_mlir(
    problem: Problem, views: Views, operands: tuple[EpilogueOperand, ...], result: str
) -> str:
    """Returns an MLIR module with @matmul whose epilogue reads further operands and has no operations yet.

    Arguments of @matmul: A, B, the operands, C. The body of the epilogue, the last ``linalg.generic``, yields
    what was in C before; whoever has the operations puts them in front of its ``linalg.yield``. ``views``
    must have one slice and no packed operand; ``result`` is the element type of C.
    """
    a, b = _operand(problem, views, "a"), _operand(problem, views, "b")
    c = replace(_output(problem, views), element=result)
    others = [_epilogue_view(problem, views, each) for each in operands]
    sums = problem.accumulator
    between = f"tensor<{_sizes(c.padded)}x{sums}>"
    maps = ["(m, n)", *(_indices(each) for each in operands), "(m, n)"]
    listed = ", ".join(f"affine_map<(m, n) -> {each}>" for each in maps)
    names = ", ".join(["%product", *(f"%{each.name.upper()}" for each in others)])
    kinds = ", ".join([between, *(each.tensor for each in others)])
    inputs = "".join(f"%in_{each.name}: {each.element}, " for each in others)
    body = f"    %between = tensor.empty() : {between}\n" + _product(problem, a, b, "%between", between)
    body += f"""    %result = linalg.generic {{indexing_maps = [{listed}],
      iterator_types = ["parallel", "parallel"]}}
      ins({names} : {kinds}) outs(%C : {c.tensor}) {{
    ^bb0(%sum: {sums}, {inputs}%old: {c.element}):
      linalg.yield %old : {c.element}
    }} -> {c.tensor}
"""
    function = _function(ENTRY, [a, b, *others], c, sums, body, "%result")
    return "module {\n" + function + "}\n"


def _indices(operand: EpilogueOperand) -> str:
    return "(" + ", ".join("mn"[each] for each in operand.dimensions) + ")"


@dataclass(frozen=True)
class _View:
    """A memref argument with padded sizes, and the tensor type that the memref is read as."""

    name: str
    true: tuple[int, ...]
    padded: tuple[int, ...]
    pitch: int  # elements from row to row
    element: str
    buffer: str = ""  # name, where it is not that of the argument's position

    @property
    def tensor(self) -> str:
        return f"tensor<{_sizes(self.padded)}x{self.element}>"

    @property
    def memref(self) -> str:
        is_plain = len(self.padded) != 2 or self.pitch == self.padded[1]
        layout = "" if is_plain else f", strided<[{self.pitch}, 1]>"
        return f"memref<{_sizes(self.padded)}x{self.element}{layout}>"

    @property
    def declaration(self) -> str:
        named = f', tuner.buffer = "{self.buffer}"' if self.buffer else ""
        bounds = ", ".join(map(str, self.true))
        return f"%{self.name}: {self.memref} {{tuner.bounds = array<i64: {bounds}>{named}}}"

    def as_tensor(self, options: str = "restrict") -> str:
        return (
            f"    %{self.name.upper()} = bufferization.to_tensor %{self.name} {options}"
            f" : {self.memref} to {self.tensor}\n"
        )


def _functions(problem: Problem, views: Views) -> list[str]:
    packing = [_pack(problem, views, name) for name in views.packed]
    if views.slices == 1:
        return [*packing, _matmul(problem, views)]
    return [*packing, _partial_matmul(problem, views), _reduce(problem, views)]


def _stored(problem: Problem, views: Views, name: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the true and the padded sizes of A or B as stored in memory."""
    letters = MAPS[problem.layout]["ab".index(name)]
    true, padded = (dict(zip("mnk", each, strict=True)) for each in (problem.sizes, views.padding))
    rows, columns = letters[1], letters[4]  # "(m, k)"
    return (true[rows], true[columns]), (padded[rows], padded[columns])


def packed_pitch(problem: Problem, columns: int) -> int:
    """Returns the elements from one packed row of an operand to the next.

    That is ``columns`` rounded up to a multiple of 16 bytes.
    """
    return _up(columns, PACKED_BYTES // problem.input_bytes)


def _operand(problem: Problem, views: Views, name: str) -> _View:
    true, padded = _stored(problem, views, name)
    element = problem.stored_dtype
    if name in views.packed:
        pitch = packed_pitch(problem, true[1])
        return _View(name, (true[0], pitch), padded, pitch, element, f"packed_{name}")
    return _View(name, true, padded, true[1], element, name)


def _output(problem: Problem, views: Views) -> _View:
    m, n, _ = problem.sizes
    return _View("c", (m, n), views.padding[:2], n, problem.result_dtype, "c")


def _bias(problem: Problem, views: Views) -> _View:
    """Returns the view of the bias, which has C's type in memory."""
    return _View("bias", (problem.sizes[1],), (views.padding[1],), 1, problem.result_dtype, "bias")


def _epilogue_view(problem: Problem, views: Views, operand: EpilogueOperand) -> _View:
    true = tuple(problem.sizes[each] for each in operand.dimensions)
    padded = tuple(views.padding[each] for each in operand.dimensions)
    return _View(operand.name, true, padded, true[-1], operand.element, operand.name)


def _matmul(problem: Problem, views: Views) -> str:
    a, b, c = _operand(problem, views, "a"), _operand(problem, views, "b"), _output(problem, views)
    sums = problem.accumulator
    inputs = [a, b]
    if problem.epilogue == "bias_relu":
        inputs.append(_bias(problem, views))
    if problem.epilogue == "none" and c.element == sums:
        body, last = _product(problem, a, b, "%C", c.tensor), "%product"
    else:
        between = f"tensor<{_sizes(c.padded)}x{sums}>"
        body = f"    %between = tensor.empty() : {between}\n" + _product(problem, a, b, "%between", between)
        body += _epilogue(problem, between, inputs[2:], c)
        last = "%result"
    return _function(ENTRY, inputs, c, sums, body, last)


def _partial_matmul(problem: Problem, views: Views) -> str:
    """Returns the function @matmul for split-K, whose C is one slice of the workspace."""
    a, b = _operand(problem, views, "a"), _operand(problem, views, "b")
    sums, sizes = problem.accumulator, views.padding[:2]
    c = _View("c", sizes, sizes, sizes[1], sums, "workspace")
    return _function(ENTRY, [a, b], c, sums, _product(problem, a, b, "%C", c.tensor), "%product")


def _reduce(problem: Problem, views: Views) -> str:
    """Returns the function @reduce, which adds the slices of the workspace and applies the epilogue."""
    c, sums = _output(problem, views), problem.accumulator
    sizes = (views.slices, *views.padding[:2])
    slices = _View("slices", sizes, sizes, 0, sums, "workspace")
    inputs = [slices, *([_bias(problem, views)] if problem.epilogue == "bias_relu" else [])]
    has_epilogue = problem.epilogue != "none" or c.element != sums
    total = f"tensor<{_sizes(c.padded)}x{sums}>"
    start = "%between" if has_epilogue else "%C"
    maps = "affine_map<(s, m, n) -> (s, m, n)>, affine_map<(s, m, n) -> (m, n)>"
    body = f"    %between = tensor.empty() : {total}\n" if has_epilogue else ""
    body += f"""    %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {total}) -> {total}
    %product = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["reduction", "parallel", "parallel"]}}
      ins(%SLICES : {slices.tensor}) outs(%cleared : {total}) {{
    ^bb0(%part: {sums}, %sum: {sums}):
      %more = {scalar_op("add", sums)} %sum, %part : {sums}
      linalg.yield %more : {sums}
    }} -> {total}
"""
    if has_epilogue:
        body += _epilogue(problem, total, inputs[1:], c)
    return _function("reduce", inputs, c, sums, body, "%result" if has_epilogue else "%product")


def _pack(problem: Problem, views: Views, name: str) -> str:
    """Returns @pack_a or @pack_b: a copy to rows of a multiple of 16 bytes, padded with zeros."""
    true, _ = _stored(problem, views, name)
    element, pitch = problem.stored_dtype, packed_pitch(problem, true[1])
    padded = (_up(true[0], PACK_TILE[0]), _up(pitch, PACK_TILE[1]))
    source = _View("source", true, padded, true[1], element, name)
    target = _View("c", (true[0], pitch), padded, pitch, element, f"packed_{name}")
    body = f"""    %copied = linalg.copy ins(%SOURCE : {source.tensor})
      outs(%C : {target.tensor}) -> {target.tensor}
"""
    return _function(f"pack_{name}", [source], target, element, body, "%copied")


def _function(name: str, inputs: list[_View], c: _View, sums: str, body: str, last: str) -> str:
    arguments = ", ".join(view.declaration for view in (*inputs, c))
    reads = "".join(view.as_tensor() for view in inputs)
    return f"""  func.func @{name}({arguments}) {{
    %zero = arith.constant {zero(sums)}
{reads}{c.as_tensor("restrict writable")}{body}\
    bufferization.materialize_in_destination {last} in restrict writable %c
      : ({c.tensor}, {c.memref}) -> ()
    return
  }}
"""


def _product(problem: Problem, a: _View, b: _View, start: str, kind: str) -> str:
    sums = problem.accumulator
    return f"""    %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {kind}) -> {kind}
    %product = linalg.matmul{_maps(problem.layout)}
      ins(%A, %B : {a.tensor}, {b.tensor}) outs(%cleared : {kind}) -> {kind}
"""


def _maps(layout: str) -> str:
    if layout == "nn":
        return ""
    results = (*MAPS[layout], "(m, n)")
    return " indexing_maps = [" + ", ".join(f"affine_map<(m, n, k) -> {each}>" for each in results) + "]"


def _epilogue(problem: Problem, kind: str, bias: list[_View], c: _View) -> str:
    sums = problem.accumulator
    identity, row = "affine_map<(m, n) -> (m, n)>", "affine_map<(m, n) -> (n)>"
    maps = ", ".join([identity, *(row for _ in bias), identity])
    names = ", ".join(["%product", *("%BIAS" for _ in bias)])
    kinds = ", ".join([kind, *(each.tensor for each in bias)])
    shift = f"%shift: {c.element}, " if bias else ""
    return f"""    %result = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel"]}}
      ins({names} : {kinds}) outs(%C : {c.tensor}) {{
    ^bb0(%sum: {sums}, {shift}%old: {c.element}):
{_scalars(sums, c.element, bool(bias))}\
    }} -> {c.tensor}
"""


def _scalars(sums: str, element: str, has_bias: bool) -> str:
    lines, last = [], "%sum"
    if has_bias:
        wide = "%shift"
        if element != sums:
            lines.append(f"%wide = arith.extf %shift : {element} to {sums}")
            wide = "%wide"
        lines.append(f"%shifted = {scalar_op('add', sums)} %sum, {wide} : {sums}")
        lines.append(f"%positive = {scalar_op('max', sums)} %shifted, %zero : {sums}")
        last = "%positive"
    if element != sums:
        lines.append(f"%narrow = arith.truncf {last} : {sums} to {element}")
        last = "%narrow"
    lines.append(f"linalg.yield {last} : {element}")
    return "".join(f"      {line}\n" for line in lines)


def _sizes(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _numbers(what: str, options: list[str], count: int) -> list[int]:
    if len(options) != count or not all(re.fullmatch("[0-9]{1,18}", text) for text in options):
        raise UsageError(f"script: {what}: found {' '.join(options)!r}, allowed {count} numbers")
    return [int(text) for text in options]
