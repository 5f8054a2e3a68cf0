"""The payload of a CPU: MLIR text of a problem, with one function per shape of a thread's partition of C."""

import itertools
import re
from dataclasses import dataclass, replace

from tuner.core.errors import UsageError
from tuner.core.interfaces import Partition
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem

# begins the line of a script for several threads: entry row column m n [first matrices]; ...
PARTITIONS_COMMENT = "// panels: "
PARTITIONS_LIMIT = 1024  # of a script; threads of the largest machines
ENTRY = "matmul"  # of the whole problem; functions of partitions append _<rows>x<columns>
LINE_END = "\n"
# layout -> dimensions of A and B in memory
MAPS = {"nn": ("mk", "kn"), "nt": ("mk", "nk"), "tn": ("km", "kn")}


def partition(problem: Problem, parts: int, split: str, multiple: int) -> tuple[Partition, ...]:
    """Divides C among at most ``parts`` threads; partitions of equal size share a function.

    ``split``: "n" (columns of C), "m" (rows) or "none" (whole matrices of the batch). Extents are multiples
    of ``multiple``, but for the last one.
    """
    m, n, _ = problem.sizes
    if split == "none" or parts == 1:
        ends = [part * problem.batch // parts for part in range(parts + 1)]
        dealt = [(first, end - first) for first, end in itertools.pairwise(ends) if end > first]
        return tuple(Partition(ENTRY, 0, 0, m, n, first, count) for first, count in dealt)
    extent = n if split == "n" else m
    step = -(-extent // (parts * multiple)) * multiple
    starts = range(0, extent, step)
    if len(starts) == 1:
        return (Partition(ENTRY, 0, 0, m, n, 0, problem.batch),)
    ranges = [(start, min(step, extent - start)) for start in starts]
    areas = [(0, at, m, size) if split == "n" else (at, 0, size, n) for at, size in ranges]
    return tuple(
        Partition(f"{ENTRY}_{rows}x{columns}", row, column, rows, columns, 0, problem.batch)
        for row, column, rows, columns in areas
    )


def partitions_comment(partitions: tuple[Partition, ...]) -> str:
    """Returns the comment line by which a script lists its partitions of C; ``partitions_in`` parses it."""
    return PARTITIONS_COMMENT + "; ".join(map(_partition_text, partitions))


def partitions_in(script: str, problem: Problem) -> tuple[Partition, ...]:
    """Returns a script's partitions, else C as one. Raises UsageError for no exact cover of C."""
    line = next((line for line in script.splitlines() if line.startswith(PARTITIONS_COMMENT)), None)
    if line is None:
        return partition(problem, 1, "none", 1)
    partitions = []
    for part in line.removeprefix(PARTITIONS_COMMENT).split("; "):
        match = re.fullmatch(r"(\w+)((?: \d{1,18}){4}(?: \d{1,18} \d{1,18})?)", part.strip())
        if match is None:
            text = "entry row column m n" + (" [first matrices]" if problem.lead else "")
            raise UsageError(f"script: panels: found {part!r}, allowed '{text}'")
        partitions.append(Partition(match[1], *(int(number) for number in match[2].split())))
    _require_cover(problem, tuple(partitions))
    return tuple(partitions)


def payload_mlir(problem: Problem, partitions: tuple[Partition, ...]) -> str:
    """Returns a module with a function per ``entry``: A, B[, bias], C as memrefs, of one pair of a batch.

    Each argument begins at the partition's first element; its strides are those of the whole matrix.
    """
    functions = {panel.entry: _function(problem, panel) for panel in partitions}
    return batch_comment(problem) + "module {\n" + "".join(functions.values()) + "}\n"


def batch_comment(problem: Problem) -> str:
    """Returns an MLIR comment line with the number of matrix pairs of a batch; "" for a single matmul."""
    return f"// for each of {problem.batch} pairs of matrices\n" if problem.lead else ""


def element_offsets(problem: Problem, panel: Partition) -> tuple[int, ...]:
    """Returns where a partition starts in A, B[, bias] and C: offsets in elements from each array's start."""
    m, n, k = problem.sizes
    a = panel.first * m * k + (panel.row if problem.layout == "tn" else panel.row * k)
    b = panel.first * k * n + (panel.column * k if problem.layout == "nt" else panel.column)
    bias = (panel.column,) if problem.epilogue == "bias_relu" else ()
    return (a, b, *bias, panel.first * m * n + panel.row * n + panel.column)


def matrix_bytes(problem: Problem) -> tuple[int, ...]:
    """Returns the bytes between a batch's matrices of A, B[, bias], C; 0 for the bias, which all share."""
    m, n, k = problem.sizes
    bias = (0,) if problem.epilogue == "bias_relu" else ()
    of_inputs = (m * k * problem.input_bytes, k * n * problem.input_bytes)
    return (*of_inputs, *bias, m * n * problem.output_bytes)


def indexing_maps(layout: str) -> str:
    """Returns the attribute ``indexing_maps`` of a ``linalg.matmul``, with a space before it; "" for nn."""
    return "" if layout == "nn" else f" {maps_attribute(MATMUL, layout)}"


def maps_attribute(operation: str, layout: str) -> str:
    """Returns ``indexing_maps = [affine_map<(m, n, k) -> (m, k)>, ...]``: scripts match operations by it."""
    lead = "b" if operation == BATCH_MATMUL else ""
    domain, *results = (", ".join(lead + names) for names in ("mnk", *MAPS[layout], "mn"))
    maps = (f"affine_map<({domain}) -> ({result})>" for result in results)
    return f"indexing_maps = [{', '.join(maps)}]"


def has_epilogue(problem: Problem) -> bool:
    """Returns whether an elementwise operation follows the matmul: an epilogue, or a conversion of C."""
    return problem.epilogue != "none" or problem.result_dtype != problem.accumulator


def tensor_type(shape: tuple[int, ...], element: str) -> str:
    """Returns an MLIR type: ``tensor<4x8xf32>``."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def tensor_program(problem: Problem, name: str, element: str, maps: str) -> str:
    """Returns a function ``name`` from the tensors A and B to their product, a tensor of ``element``.

    ``maps``: the attribute ``indexing_maps``, or "".
    """
    a, b = (tensor_type(shape, problem.stored_dtype) for shape in (problem.a_shape, problem.b_shape))
    c = tensor_type(problem.c_shape, element)
    return f"""func.func @{name}(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant {zero(element)}
  %empty = tensor.empty() : {c}
  %cleared = linalg.fill ins(%zero : {element}) outs(%empty : {c}) -> {c}
  %product = linalg.{problem.operation} {maps} ins(%a, %b : {a}, {b}) outs(%cleared : {c}) -> {c}
  return %product : {c}
}}
"""


def zero(element: str) -> str:
    """Returns zero as a typed MLIR attribute of an element type: ``0.0 : f32``, ``0 : i32``."""
    return f"0 : {element}" if element.startswith("i") else f"0.0 : {element}"


def scalar_op(text: str, element: str) -> str:
    """Returns the name of the arith operation "add" or "max" for an element type: ``arith.addf``."""
    integer, floating = {"add": ("addi", "addf"), "max": ("maxsi", "maximumf")}[text]
    return "arith." + (integer if element.startswith("i") else floating)


def _partition_text(panel: Partition) -> str:
    text = f"{panel.entry} {panel.row} {panel.column} {panel.m} {panel.n}"
    is_whole = (panel.first, panel.matrices) == (0, 1)
    return text if is_whole else f"{text} {panel.first} {panel.matrices}"


def _require_cover(problem: Problem, partitions: tuple[Partition, ...]) -> None:
    m, n, _ = problem.sizes
    if len(partitions) > PARTITIONS_LIMIT:
        raise UsageError(f"script: panels: found {len(partitions)}, allowed {PARTITIONS_LIMIT}")
    extents: dict[str, tuple[int, int]] = {}
    for panel in partitions:
        if min(panel.m, panel.n) < 1 or panel.row + panel.m > m or panel.column + panel.n > n:
            raise UsageError(f"script: panels: found {panel}, allowed within C, {m} x {n}")
        if panel.matrices < 1 or panel.first + panel.matrices > problem.batch:
            raise UsageError(f"script: panels: found {panel}, allowed within a batch of {problem.batch}")
        if extents.setdefault(panel.entry, (panel.m, panel.n)) != (panel.m, panel.n):
            raise UsageError(f"script: panels: {panel.entry!r} has two sizes")
    if any(_overlap(one, other) for one, other in itertools.combinations(partitions, 2)):
        raise UsageError("script: panels: two overlap")
    # within C and without overlap, panels of all elements cover it
    covered = sum(panel.m * panel.n * panel.matrices for panel in partitions)
    size = m * n * problem.batch
    if covered != size:
        raise UsageError(f"script: panels: cover {covered} elements of C, not all {size}")


def _overlap(one: Partition, other: Partition) -> bool:
    return (
        # matrices of the batch, rows and columns
        one.first < other.first + other.matrices
        and other.first < one.first + one.matrices
        and one.row < other.row + other.m
        and other.row < one.row + one.m
        and one.column < other.column + other.n
        and other.column < one.column + one.n
    )


def _function(problem: Problem, panel: Partition) -> str:
    source, sums, result = problem.stored_dtype, problem.accumulator, problem.result_dtype
    part = replace(problem, sizes=(panel.m, panel.n, problem.sizes[2]))
    a = _Buffer("a", part.a_shape[-2:], problem.a_shape[-1], source)
    b = _Buffer("b", part.b_shape[-2:], problem.b_shape[-1], source)
    c = _Buffer("c", part.c_shape[-2:], problem.c_shape[-1], result)
    has_bias = problem.epilogue == "bias_relu"
    bias = f", %bias: memref<{panel.n}x{result}>" if has_bias else ""
    is_rounded = result != sums
    last = "%result" if has_bias or is_rounded else "%product"
    start, total = ("%Sums", f"tensor<{panel.m}x{panel.n}x{sums}>") if is_rounded else ("%C", c.tensor)
    epilogue = _rounding_epilogue(problem, panel, c) if is_rounded else _epilogue(panel.n, result, c)
    return f"""  func.func @{panel.entry}(%a: {a.memref}, %b: {b.memref}{bias}, %c: {c.memref}) {{
    %zero = arith.constant {zero(sums)}
{a.as_tensor}{b.as_tensor}{c.as_writable_tensor}\
{f"    %Sums = tensor.empty() : {total}{LINE_END}" if is_rounded else ""}\
    %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {total}) -> {total}
    %product = linalg.matmul{indexing_maps(problem.layout)}
      ins(%A, %B : {a.tensor}, {b.tensor}) outs(%cleared : {total}) -> {total}
{epilogue if has_bias or is_rounded else ""}\
    bufferization.materialize_in_destination {last} in restrict writable %c
      : ({c.tensor}, {c.memref}) -> ()
    return
  }}
"""


@dataclass(frozen=True)
class _Buffer:
    """One matrix argument, a view of ``shape`` into rows of ``stride`` elements."""

    name: str
    shape: tuple[int, ...]
    stride: int
    dtype: str

    @property
    def tensor(self) -> str:
        return tensor_type(self.shape, self.dtype)

    @property
    def memref(self) -> str:
        rows, columns = self.shape
        layout = f", strided<[{self.stride}, 1]>" if self.stride != columns else ""
        return f"memref<{rows}x{columns}x{self.dtype}{layout}>"

    @property
    def as_tensor(self) -> str:
        types = f"{self.memref} to {self.tensor}"
        return f"    %{self.name.upper()} = bufferization.to_tensor %{self.name} restrict : {types}\n"

    @property
    def as_writable_tensor(self) -> str:
        return self.as_tensor.replace(" restrict :", " restrict writable :")


def _rounding_epilogue(problem: Problem, panel: Partition, c: _Buffer) -> str:
    sums, result, has_bias = problem.accumulator, problem.result_dtype, problem.epilogue == "bias_relu"
    of_bias = f"tensor<{panel.n}x{result}>"
    identity = "affine_map<(m, n) -> (m, n)>"
    maps = [identity, *(["affine_map<(m, n) -> (n)>"] * has_bias), identity]
    names = "%product, %Bias" if has_bias else "%product"
    kinds = ", ".join([f"tensor<{panel.m}x{panel.n}x{sums}>", *([of_bias] * has_bias)])
    read = f"    %Bias = bufferization.to_tensor %bias restrict : memref<{panel.n}x{result}> to {of_bias}\n"
    add = f"""      %wide = arith.extf %shift : {result} to {sums}
      %shifted = {scalar_op("add", sums)} %sum, %wide : {sums}
      %positive = {scalar_op("max", sums)} %shifted, %zero : {sums}
"""
    return f"""{read if has_bias else ""}\
    %result = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = ["parallel", "parallel"]}}
      ins({names} : {kinds}) outs(%C : {c.tensor}) {{
    ^bb0(%sum: {sums}, {f"%shift: {result}, " if has_bias else ""}%before: {result}):
{add if has_bias else ""}\
      %rounded = arith.truncf {"%positive" if has_bias else "%sum"} : {sums} to {result}
      linalg.yield %rounded : {result}
    }} -> {c.tensor}
"""


def _epilogue(n: int, dtype: str, c: _Buffer) -> str:
    maps = "affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>"
    return f"""    %Bias = bufferization.to_tensor %bias restrict : memref<{n}x{dtype}> to tensor<{n}x{dtype}>
    %result = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%Bias : tensor<{n}x{dtype}>) outs(%product : {c.tensor}) {{
    ^bb0(%shift: {dtype}, %sum: {dtype}):
      %shifted = {scalar_op("add", dtype)} %sum, %shift : {dtype}
      %positive = {scalar_op("max", dtype)} %shifted, %zero : {dtype}
      linalg.yield %positive : {dtype}
    }} -> {c.tensor}
"""
