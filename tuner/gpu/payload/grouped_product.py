"""The payload of a grouped_matmul: a loop over groups, each of which multiplies its rows by its matrix."""

from dataclasses import dataclass

from tuner.core.problem import Argument, Problem
from tuner.payload.cpu import ENTRY, has_epilogue, indexing_maps, tensor_type, zero


def grouped_payload_mlir(problem: Problem) -> str:
    """Returns a module as text whose @matmul multiplies the rows of each group by the group's matrix.

    The arguments are A (m, k), B (groups, n, k) or (groups, k, n), offsets (groups + 1,) and C (m, n). Rows
    of a group are a ``memref.subview`` of dynamic offset and size.
    """
    a, b, offsets, c = (_Array(argument) for argument in problem.arguments)
    _, n, _ = problem.sizes
    sums = problem.accumulator
    groups = problem.groups
    rows = f"tensor<?x{n}x{sums}>"
    start = "%C"
    last = "%product"
    between = ""
    rounded = ""
    if has_epilogue(problem):
        start = "%between"
        last = "%result"
        between = f"      %between = tensor.empty(%count) : {rows}\n"
        rounded = _rounded(problem, rows)
    word = offsets.argument.dtype
    return f"""// rows offsets[group] to offsets[group + 1] of A times matrix group of B, of {groups} groups
module {{
  func.func @{ENTRY}({", ".join(array.declaration for array in (a, b, offsets, c))}) {{
    %zero = arith.constant {zero(sums)}
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %groups = arith.constant {groups} : index
    scf.for %group = %none to %groups step %one {{
      %next = arith.addi %group, %one : index
      %first_word = memref.load %offsets[%group] : {offsets.memref}
      %end_word = memref.load %offsets[%next] : {offsets.memref}
      %first = arith.index_cast %first_word : {word} to index
      %end = arith.index_cast %end_word : {word} to index
      %count = arith.subi %end, %first : index
{a.rows_of_group}{b.matrix_of_group}{c.rows_of_group}\
      %A = bufferization.to_tensor %a_part restrict : {a.part} to {a.part_tensor}
      %B = bufferization.to_tensor %b_part restrict : {b.part} to {b.part_tensor}
      %C = bufferization.to_tensor %c_part restrict writable : {c.part} to {c.part_tensor}
{between}\
      %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {rows}) -> {rows}
      %product = linalg.matmul{indexing_maps(problem.layout)}
        ins(%A, %B : {a.part_tensor}, {b.part_tensor}) outs(%cleared : {rows}) -> {rows}
{rounded}\
      bufferization.materialize_in_destination {last} in restrict writable %c_part
        : ({c.part_tensor}, {c.part}) -> ()
    }}
    return
  }}
}}
"""


@dataclass(frozen=True)
class _Array:
    """An argument of @matmul, and the rows or the matrix in it that belong to one group."""

    argument: Argument

    @property
    def memref(self) -> str:
        return tensor_type(self.argument.shape, self.argument.dtype).replace("tensor", "memref")

    @property
    def declaration(self) -> str:
        name = self.argument.name
        return f'%{name}: {self.memref} {{tuner.buffer = "{name}"}}'

    @property
    def _matrix(self) -> str:
        rows, columns = self.argument.shape[-2:]
        if len(self.argument.shape) == 2:
            return f"?x{columns}x{self.argument.dtype}"
        return f"{rows}x{columns}x{self.argument.dtype}"

    @property
    def part(self) -> str:
        return f"memref<{self._matrix}, strided<[{self.argument.shape[-1]}, 1], offset: ?>>"

    @property
    def part_tensor(self) -> str:
        return f"tensor<{self._matrix}>"

    @property
    def rows_of_group(self) -> str:
        name = self.argument.name
        columns = self.argument.shape[1]
        view = f"memref.subview %{name}[%first, 0] [%count, {columns}] [1, 1]"
        return f"      %{name}_part = {view} : {self.memref} to {self.part}\n"

    @property
    def matrix_of_group(self) -> str:
        name = self.argument.name
        _, rows, columns = self.argument.shape
        view = f"memref.subview %{name}[%group, 0, 0] [1, {rows}, {columns}] [1, 1, 1]"
        return f"      %{name}_part = {view} : {self.memref} to {self.part}\n"


def _rounded(problem: Problem, rows: str) -> str:
    """Returns the text of the op that rounds sums to the type of C, for a number ``rows`` of rows."""
    sums = problem.accumulator
    result = problem.result_dtype
    c = f"tensor<?x{problem.sizes[1]}x{result}>"
    identity = "affine_map<(m, n) -> (m, n)>"
    return f"""      %result = linalg.generic {{indexing_maps = [{identity}, {identity}],
        iterator_types = ["parallel", "parallel"]}}
        ins(%product : {rows}) outs(%C : {c}) {{
      ^bb0(%sum: {sums}, %old: {result}):
        %rounded = arith.truncf %sum : {sums} to {result}
        linalg.yield %rounded : {result}
      }} -> {c}
"""
