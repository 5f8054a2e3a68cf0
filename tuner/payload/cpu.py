"""The payload of a CPU: MLIR text of a problem, with one function per shape of a thread's partition of C."""

from dataclasses import dataclass, replace

from tuner.core.interfaces import Partition
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem

ENTRY = "matmul"  # of the whole problem; functions of partitions append _<rows>x<columns>
LINE_END = "\n"
# layout -> dimensions of A and B in memory
MAPS = {"nn": ("mk", "kn"), "nt": ("mk", "nk"), "tn": ("km", "kn")}


def payload_mlir(problem: Problem, partitions: tuple[Partition, ...]) -> str:
    """Returns the text of an MLIR module with a function for each ``entry`` that the partitions name.

    A function multiplies one pair of a batch's matrices; its arguments are memrefs. Each argument begins at
    the partition's first element; its strides are those of the whole matrix. For a problem that has MLIR
    text, such as a fusion, returns that text.
    """
    if problem.text:
        return problem.text
    functions = {part.entry: _function(problem, part) for part in partitions}
    return batch_comment(problem) + "module {\n" + "".join(functions.values()) + "}\n"


def batch_comment(problem: Problem) -> str:
    """Returns an MLIR comment line with the number of matrix pairs of a batch; "" for a single matmul."""
    if problem.lead:
        return f"// for each of {problem.batch} pairs of matrices\n"
    return ""


def element_offsets(problem: Problem, part: Partition) -> tuple[int, ...]:
    """Returns where a partition begins in A, B, each epilogue argument and C, in this order.

    Offsets are elements from the start of each array.
    """
    m, n, k = problem.sizes
    a = part.first * m * k + (part.row if problem.layout == "tn" else part.row * k)
    b = part.first * k * n + (part.column * k if problem.layout == "nt" else part.column)
    c = part.first * m * n + part.row * n + part.column
    of_axes = {"mn": c, "n": part.column, "": 0}
    extra = (of_axes[argument.axes] for argument in problem.after_product.arguments)
    return (a, b, *extra, c)


def matrix_bytes(problem: Problem) -> tuple[int, ...]:
    """Returns per argument of the kernel the bytes from one matrix of a batch to the next.

    0 for a bias, which all matrices share.
    """
    return tuple(argument.matrix_bytes for argument in problem.arguments)


def indexing_maps(layout: str) -> str:
    """Returns the attribute ``indexing_maps`` of a ``linalg.matmul``, with a space before it; "" for nn."""
    if layout == "nn":
        return ""
    return f" {maps_attribute(MATMUL, layout)}"


def maps_attribute(operation: str, layout: str) -> str:
    """Returns the text ``indexing_maps = [affine_map<(m, n, k) -> (m, k)>, ...]`` of a matmul in a layout.

    Scripts match the matmul by this text.
    """
    lead = "b" if operation == BATCH_MATMUL else ""
    domain, *results = (", ".join(lead + names) for names in ("mnk", *MAPS[layout], "mn"))
    maps = (f"affine_map<({domain}) -> ({result})>" for result in results)
    return f"indexing_maps = [{', '.join(maps)}]"


def has_epilogue(problem: Problem) -> bool:
    """Returns whether an elementwise operation follows the matmul: an epilogue, or a conversion of C."""
    return problem.epilogue != "none" or problem.result_dtype != problem.accumulator


def tensor_type(shape: tuple[int, ...], element: str) -> str:
    """Returns an MLIR type: ``tensor<4x8xf32>``."""
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def tensor_program(problem: Problem, name: str, element: str, maps: str) -> str:
    """Returns the MLIR text of a function ``name`` that multiplies the tensors A and B.

    ``element``: the element type of the product; ``maps``: the attribute ``indexing_maps``, or "".
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
    if element.startswith("i"):
        return f"0 : {element}"
    return f"0.0 : {element}"


def scalar_op(text: str, element: str) -> str:
    """Returns the name of the arith operation "add" or "max" for an element type: ``arith.addf``."""
    integer, floating = {"add": ("addi", "addf"), "max": ("maxsi", "maximumf")}[text]
    return "arith." + (integer if element.startswith("i") else floating)


def _function(problem: Problem, part: Partition) -> str:
    sums = problem.accumulator
    problem_of_part = replace(problem, sizes=(part.m, part.n, problem.sizes[2]))
    a, b, *extra, c = (
        _Buffer(own.name, own.shape, whole.shape, own.dtype)
        for own, whole in zip(problem_of_part.one_matmul.arguments, problem.one_matmul.arguments, strict=True)
    )
    has_sums = _has_sums(problem)
    is_finished = has_epilogue(problem)
    last = "%result" if is_finished else "%product"
    if has_sums:
        start, total = ("%Sums", f"tensor<{part.m}x{part.n}x{sums}>")
    else:
        start, total = ("%C", c.tensor)
    parameters = "".join(f", %{buffer.name}: {buffer.memref}" for buffer in extra)
    return f"""  func.func @{part.entry}(%a: {a.memref}, %b: {b.memref}{parameters}, %c: {c.memref}) {{
    %zero = arith.constant {zero(sums)}
{a.as_tensor}{b.as_tensor}{c.as_writable_tensor}\
{f"    %Sums = tensor.empty() : {total}{LINE_END}" if has_sums else ""}\
    %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {total}) -> {total}
    %product = linalg.matmul{indexing_maps(problem.layout)}
      ins(%A, %B : {a.tensor}, {b.tensor}) outs(%cleared : {total}) -> {total}
{_epilogue(problem, extra, total, c) if is_finished else ""}\
    bufferization.materialize_in_destination {last} in restrict writable %c
      : ({c.tensor}, {c.memref}) -> ()
    return
  }}
"""


def _has_sums(problem: Problem) -> bool:
    """Returns whether sums are a tensor of their own: of a wider type than C, or added to what C holds."""
    return problem.result_dtype != problem.accumulator or problem.after_product.reads_output


@dataclass(frozen=True)
class _Buffer:
    """One argument: a view of ``shape`` into an array of ``whole_shape``."""

    name: str
    shape: tuple[int, ...]
    whole_shape: tuple[int, ...]
    dtype: str

    @property
    def tensor(self) -> str:
        return tensor_type(self.shape, self.dtype)

    @property
    def memref(self) -> str:
        is_part = len(self.shape) > 1 and self.whole_shape[-1] != self.shape[-1]
        layout = f", strided<[{self.whole_shape[-1]}, 1]>" if is_part else ""
        return f"memref<{'x'.join(map(str, (*self.shape, self.dtype)))}{layout}>"

    @property
    def value(self) -> str:
        """Returns the value of its tensor: %A for %a, %Bias for %bias."""
        return f"%{self.name.capitalize()}"

    @property
    def as_tensor(self) -> str:
        types = f"{self.memref} to {self.tensor}"
        return f"    {self.value} = bufferization.to_tensor %{self.name} restrict : {types}\n"

    @property
    def as_writable_tensor(self) -> str:
        return self.as_tensor.replace(" restrict :", " restrict writable :")


def _epilogue(problem: Problem, extra: list[_Buffer], total: str, c: _Buffer) -> str:
    """Returns the operation after the product: in place, or from wide sums (of type ``total``) to C."""
    epilogue = problem.after_product
    sums = problem.accumulator
    result = problem.result_dtype
    maps = [f"affine_map<(m, n) -> {argument.map_results}>" for argument in epilogue.arguments]
    names = [buffer.value for buffer in extra]
    kinds = [buffer.tensor for buffer in extra]
    identity = "affine_map<(m, n) -> (m, n)>"
    scalars = f"{epilogue.scalar_arguments(result)}%sum: {sums}"
    output = "%product"
    lines = epilogue.scalar_lines(sums, result, "%zero")
    if _has_sums(problem):
        maps = [identity, *maps]
        names = ["%product", *names]
        kinds = [total, *kinds]
        scalars = f"%sum: {sums}, {epilogue.scalar_arguments(result)}%before: {result}"
        output = "%C"
    inputs = f"ins({', '.join(names)} : {', '.join(kinds)}) " if names else ""
    body = "".join(f"      {line}\n" for line in lines)
    return f"""{"".join(buffer.as_tensor for buffer in extra)}\
    %result = linalg.generic {{indexing_maps = [{", ".join([*maps, identity])}],
      iterator_types = ["parallel", "parallel"]}}
      {inputs}outs({output} : {c.tensor}) {{
    ^bb0({scalars}):
{body}\
    }} -> {c.tensor}
"""
