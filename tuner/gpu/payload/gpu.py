"""The payload of a GPU: a problem's MLIR, with functions that pack before and reduce after.

All types have the true sizes of memory, and each function is MLIR that any compiler may take: padding to
sizes that tiles divide is a step of the script (``tuner.pad_views``). A script says by which buffers its
kernels pass results to one another (``gpu.payload.scratch``). A buffer may be larger than the matrix in it.
A function then takes the whole buffer and works on a ``memref.subview``, the matrix. What else is in a row
are zeros.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from tuner.core.epilogues import BEFORE, Epilogue
from tuner.core.problem import Argument, Problem
from tuner.gpu.payload.grouped_product import grouped_payload_mlir
from tuner.gpu.payload.scratch import Scratch
from tuner.payload.cpu import (
    ENTRY,
    batch_comment,
    has_epilogue,
    indexing_maps,
    scalar_op,
    tensor_type,
    zero,
)
from tuner.payload.scaled_product import scaled_product

HIGH_BITS = -0x2000  # of an f32: those of a tf32, as tensor cores read it
UPPER_HALF = -0x10000  # of an f32: a bf16
PLANES = ("high", "middle", "low")  # of bf16, whose sum is an f32
PLANE_ELEMENT = "bf16"
PLANE_BYTES = 2  # of an element
PACKED_BYTES = 16  # of which a packed row is a multiple: the widest copy
PARTS = "parts"  # buffers of a kernel's blocks, by name
ZEROED = "zeroed"
KEEPS_ZEROS = ", tuner.zeroed, tuner.keeps_zeros"


def gpu_payload_mlir(problem: Problem, scratch: Scratch) -> str:
    """Returns the MLIR text of a problem's module: functions that prepare operands, @matmul and @reduce.

    A function is for one pair of a batch. @matmul takes A, B, their scales if any, the epilogue's arguments
    and C. With a workspace in ``scratch``, @matmul takes A, B, scales and one slice of the workspace, to
    which it writes the sums over all of K; a script may then divide K among the slices, and @reduce adds the
    slices, applies the epilogue and writes C. Other buffers in ``scratch``, such as a transposed copy, are
    arguments before C that @matmul does not read: a script uses them.
    """
    if problem.groups:
        return grouped_payload_mlir(problem)
    functions = [_pack(problem, name) for name in scratch.packed]
    functions += map(partial(_transpose, problem), scratch.transposed)
    functions += map(partial(_split, problem, scratch), scratch.low)
    functions += map(partial(_split_into_planes, problem), scratch.planes)
    if scratch.workspace is None:
        functions.append(_matmul(problem, scratch))
    else:
        functions.append(_partial_matmul(problem, scratch, scratch.workspace))
        functions.append(_reduce(problem, scratch.workspace))
    return batch_comment(problem) + "module {\n" + "".join(functions) + "}\n"


@dataclass(frozen=True)
class EpilogueOperand:
    """A matrix, row or column that an epilogue reads in addition to the sums of products."""

    name: str  # of its buffer
    dimensions: tuple[int, ...]  # of C that index it: (0, 1) for a matrix, (1,) for a row, (0,) for a column
    element: str


def matmul_with_epilogue_mlir(problem: Problem, operands: tuple[EpilogueOperand, ...], result: str) -> str:
    """Returns a module as text whose @matmul ends with a ``linalg.generic`` that reads further operands.

    The body of the op yields C as it was: it has no operations yet. ``result``: the element type of C.
    """
    a = _operand_array(problem, Scratch(), "a")
    b = _operand_array(problem, Scratch(), "b")
    c = replace(_output(problem), element=result)
    sums = problem.accumulator
    between = f"tensor<{_sizes(c.sizes)}x{sums}>"
    others = []
    maps = ["affine_map<(m, n) -> (m, n)>"]
    for operand in operands:
        sizes = tuple(problem.sizes[dimension] for dimension in operand.dimensions)
        others.append(_Array(operand.name, sizes, operand.element, operand.name))
        loops = ", ".join("mn"[dimension] for dimension in operand.dimensions)
        maps.append(f"affine_map<(m, n) -> ({loops})>")
    listed = ", ".join([*maps, maps[0]])
    names = ", ".join(["%product", *(f"%{other.name.upper()}" for other in others)])
    kinds = ", ".join([between, *(other.tensor for other in others)])
    inputs = "".join(f"%in_{other.name}: {other.element}, " for other in others)
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


@dataclass(frozen=True)
class _Array:
    """A matrix, row or workspace that an argument holds, from the beginning of a buffer.

    The function's body names the array's tensor by the name in capitals: ``%A`` for the name ``a``.
    """

    name: str
    sizes: tuple[int, ...]
    element: str
    buffer: str
    buffer_sizes: tuple[int, ...] = ()  # where the buffer is larger than the array
    attributes: str = ""  # further ones of the argument

    @property
    def tensor(self) -> str:
        return tensor_type(self.sizes, self.element)

    @property
    def is_part(self) -> bool:
        return self.buffer_sizes not in ((), self.sizes)

    @property
    def argument(self) -> str:
        """Returns the memref type of the function's argument as MLIR text: that of the whole buffer."""
        return tensor_type(self.buffer_sizes or self.sizes, self.element).replace("tensor", "memref")

    @property
    def memory(self) -> str:
        """Returns the value that is the array in memory: the argument, or a part of it."""
        if self.is_part:
            return f"%{self.name}_part"
        return f"%{self.name}"

    @property
    def memory_type(self) -> str:
        if not self.is_part:
            return self.argument
        strides = [math.prod(self.buffer_sizes[at + 1 :]) for at in range(len(self.sizes))]
        return f"memref<{_sizes(self.sizes)}x{self.element}, strided<{strides}>>"

    @property
    def declaration(self) -> str:
        return f'%{self.name}: {self.argument} {{tuner.buffer = "{self.buffer}"{self.attributes}}}'

    def as_tensor(self, options: str = "restrict") -> str:
        rank = len(self.sizes)
        part = (
            f"    {self.memory} = memref.subview %{self.name}{[0] * rank} {list(self.sizes)} {[1] * rank}"
            f" : {self.argument} to {self.memory_type}\n"
        )
        return (part if self.is_part else "") + (
            f"    %{self.name.upper()} = bufferization.to_tensor {self.memory} {options}"
            f" : {self.memory_type} to {self.tensor}\n"
        )


def _stored_sizes(problem: Problem, name: str) -> tuple[int, int]:
    rows, columns = (problem.a_shape if name == "a" else problem.b_shape)[-2:]  # of one pair of a batch
    return rows, columns


def _whole_rows(sizes: tuple[int, int], item_bytes: int) -> tuple[int, int]:
    """Returns ``sizes``, (rows, columns), with columns added until each row is a multiple of 16 bytes."""
    rows, columns = sizes
    multiple = PACKED_BYTES // item_bytes
    return rows, -(-columns // multiple) * multiple


def _operand_array(problem: Problem, scratch: Scratch, name: str) -> _Array:
    sizes = _stored_sizes(problem, name)
    element = problem.stored_dtype
    if name in scratch.packed:
        return _Array(name, sizes, element, f"packed_{name}", _packed_sizes(problem, name))
    return _Array(name, sizes, element, name)


def _packed_sizes(problem: Problem, name: str) -> tuple[int, int]:
    return _whole_rows(_stored_sizes(problem, name), problem.input_bytes)


def _output(problem: Problem) -> _Array:
    return _Array("c", problem.sizes[:2], problem.result_dtype, "c")


def _argument_arrays(arguments: Sequence[Argument]) -> list[_Array]:
    return [_Array(argument.name, argument.shape, argument.dtype, argument.name) for argument in arguments]


def _matmul(problem: Problem, scratch: Scratch) -> str:
    a = _operand_array(problem, scratch, "a")
    b = _operand_array(problem, scratch, "b")
    c = _output(problem)
    sums = problem.accumulator
    inputs = [a, b, *_argument_arrays(problem.scales), *_epilogue_arrays(problem)]
    if not has_epilogue(problem):
        body = _product(problem, a, b, "%C", c.tensor)
        result = "%product"
    else:
        between = f"tensor<{_sizes(c.sizes)}x{sums}>"
        body = f"    %between = tensor.empty() : {between}\n" + _product(problem, a, b, "%between", between)
        body += _epilogue(problem, between, _epilogue_arrays(problem), c)
        result = "%result"
    return _function(ENTRY, inputs, c, sums, body, result, _unread_arrays(problem, scratch))


def _epilogue_arrays(problem: Problem) -> list[_Array]:
    """Returns the arguments of the epilogue, for one matrix of a batch."""
    return _argument_arrays(problem.one_matmul.extra_arguments)


def _unread_arrays(problem: Problem, scratch: Scratch) -> list[_Array]:
    """Returns the arguments of @matmul that its body does not read: a script makes use of them."""
    copies = map(partial(_transposed_array, problem), scratch.transposed)
    low_bits = map(partial(_low_array, problem, scratch), scratch.low)
    planes = chain.from_iterable(map(partial(_plane_arrays, problem), scratch.planes))
    return [*copies, *low_bits, *planes, *_scratch_of_kernel(scratch, problem)]


def _scratch_of_kernel(scratch: Scratch, problem: Problem) -> list[_Array]:
    """Returns the arguments by which the thread blocks of @matmul pass sums and counters to one another."""
    arrays = []
    if scratch.parts is not None:
        arrays.append(_Array(PARTS, scratch.parts, problem.accumulator, PARTS))
    if scratch.zeroed:
        arrays.append(_Array(ZEROED, (scratch.zeroed,), "i32", ZEROED, attributes=KEEPS_ZEROS))
    return arrays


def _transposed_array(problem: Problem, name: str) -> _Array:
    rows, columns = _stored_sizes(problem, name)
    return _Array(f"transposed_{name}", (columns, rows), problem.stored_dtype, f"transposed_{name}")


def _low_array(problem: Problem, scratch: Scratch, name: str) -> _Array:
    source = _split_source(problem, scratch, name)
    return replace(source, name=f"low_{name}", buffer=f"low_{name}")


def _plane_arrays(problem: Problem, name: str) -> list[_Array]:
    """Returns the three bf16 matrices whose sum is an operand; each row of a buffer is whole 16 bytes."""
    sizes = _stored_sizes(problem, name)
    buffer_sizes = _whole_rows(sizes, PLANE_BYTES)
    arrays = []
    for plane in PLANES:
        buffer = f"{plane}_{name}"
        arrays.append(_Array(buffer, sizes, PLANE_ELEMENT, buffer, buffer_sizes))
    return arrays


def _split_source(problem: Problem, scratch: Scratch, name: str) -> _Array:
    if name in scratch.transposed:
        return _transposed_array(problem, name)
    return _operand_array(problem, scratch, name)


def _transpose(problem: Problem, name: str) -> str:
    """Returns the text of the function that copies an operand to its transpose."""
    source = _Array("source", _stored_sizes(problem, name), problem.stored_dtype, name)
    target = replace(_transposed_array(problem, name), name="c")
    maps = "affine_map<(m, n) -> (n, m)>, affine_map<(m, n) -> (m, n)>"
    body = f"""    %copied = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%SOURCE : {source.tensor}) outs(%C : {target.tensor}) {{
    ^bb0(%number: {source.element}, %old: {source.element}):
      linalg.yield %number : {source.element}
    }} -> {target.tensor}
"""
    return _function(f"transpose_{name}", [source], target, source.element, body, "%copied")


def _split(problem: Problem, scratch: Scratch, name: str) -> str:
    """Returns the text of the function that writes the low bits of an operand, which tf32 cuts off."""
    source = replace(_split_source(problem, scratch, name), name="source")
    target = replace(_low_array(problem, scratch, name), name="c")
    identity = "affine_map<(m, n) -> (m, n)>"
    body = f"""    %mask = arith.constant {HIGH_BITS} : i32
    %low = linalg.generic {{indexing_maps = [{identity}, {identity}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%SOURCE : {source.tensor}) outs(%C : {target.tensor}) {{
    ^bb0(%number: f32, %old: f32):
      %bits = arith.bitcast %number : f32 to i32
      %kept = arith.andi %bits, %mask : i32
      %high = arith.bitcast %kept : i32 to f32
      %rest = arith.subf %number, %high : f32
      linalg.yield %rest : f32
    }} -> {target.tensor}
"""
    return _function(f"split_{name}", [source], target, "f32", body, "%low")


def _split_into_planes(problem: Problem, name: str) -> str:
    """Returns the text of the function that writes an operand as the sum of three matrices of bf16.

    The first matrix has the upper half of the bits, so that the largest numbers stay finite; the second is
    the remainder, rounded to bf16; the third the remainder of that.
    """
    source = _Array("source", _stored_sizes(problem, name), problem.stored_dtype, name)
    targets = _plane_arrays(problem, name)
    tensor = targets[0].tensor
    maps = ", ".join(["affine_map<(m, n) -> (m, n)>"] * (1 + len(targets)))
    outputs = ", ".join(f"%{target.name.upper()}" for target in targets)
    body = f"""    %mask = arith.constant {UPPER_HALF} : i32
    %planes:3 = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%SOURCE : {source.tensor}) outs({outputs} : {tensor}, {tensor}, {tensor}) {{
    ^bb0(%number: f32, %old_high: bf16, %old_middle: bf16, %old_low: bf16):
      %bits = arith.bitcast %number : f32 to i32
      %kept = arith.andi %bits, %mask : i32
      %upper = arith.bitcast %kept : i32 to f32
      %high = arith.truncf %upper : f32 to bf16
      %rest = arith.subf %number, %upper : f32
      %middle = arith.truncf %rest : f32 to bf16
      %taken = arith.extf %middle : bf16 to f32
      %last = arith.subf %rest, %taken : f32
      %low = arith.truncf %last : f32 to bf16
      linalg.yield %high, %middle, %low : bf16, bf16, bf16
    }} -> ({tensor}, {tensor}, {tensor})
"""
    results = [(f"%planes#{index}", target) for index, target in enumerate(targets)]
    return _function_of(f"split_{name}", [source], results, "f32", body)


def _partial_matmul(problem: Problem, scratch: Scratch, workspace: tuple[int, int, int]) -> str:
    a = _operand_array(problem, scratch, "a")
    b = _operand_array(problem, scratch, "b")
    sums = problem.accumulator
    c = _Array("c", problem.sizes[:2], sums, "workspace", workspace[1:])
    body = _product(problem, a, b, "%C", c.tensor)
    inputs = [a, b, *_argument_arrays(problem.scales)]
    return _function(ENTRY, inputs, c, sums, body, "%product", _unread_arrays(problem, scratch))


def _reduce(problem: Problem, workspace: tuple[int, int, int]) -> str:
    c = _output(problem)
    sums = problem.accumulator
    slices = _Array("slices", (workspace[0], *problem.sizes[:2]), sums, "workspace", workspace)
    inputs = [slices, *_epilogue_arrays(problem)]
    total = f"tensor<{_sizes(c.sizes)}x{sums}>"
    start = "%between" if has_epilogue(problem) else "%C"
    maps = "affine_map<(s, m, n) -> (s, m, n)>, affine_map<(s, m, n) -> (m, n)>"
    body = f"    %between = tensor.empty() : {total}\n" if has_epilogue(problem) else ""
    body += f"""    %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {total}) -> {total}
    %product = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["reduction", "parallel", "parallel"]}}
      ins(%SLICES : {slices.tensor}) outs(%cleared : {total}) {{
    ^bb0(%part: {sums}, %sum: {sums}):
      %more = {scalar_op("add", sums)} %sum, %part : {sums}
      linalg.yield %more : {sums}
    }} -> {total}
"""
    if has_epilogue(problem):
        body += _epilogue(problem, total, inputs[1:], c)
    return _function("reduce", inputs, c, sums, body, "%result" if has_epilogue(problem) else "%product")


def _pack(problem: Problem, name: str) -> str:
    element = problem.stored_dtype
    sizes = _packed_sizes(problem, name)
    source = _Array("source", _stored_sizes(problem, name), element, name)
    target = _Array("c", sizes, element, f"packed_{name}")
    body = f"""    %padded = tensor.pad %SOURCE low[0, 0] high[0, {sizes[1] - source.sizes[1]}] {{
    ^bb0(%row: index, %column: index):
      tensor.yield %zero : {element}
    }} : {source.tensor} to {target.tensor}
    %copied = linalg.copy ins(%padded : {target.tensor})
      outs(%C : {target.tensor}) -> {target.tensor}
"""
    return _function(f"pack_{name}", [source], target, element, body, "%copied")


def _function(
    name: str,
    inputs: list[_Array],
    c: _Array,
    zero_element: str,
    body: str,
    result: str,
    unread: Sequence[_Array] = (),
) -> str:
    return _function_of(name, inputs, [(result, c)], zero_element, body, unread)


def _function_of(
    name: str,
    inputs: list[_Array],
    results: Sequence[tuple[str, _Array]],
    zero_element: str,
    body: str,
    unread: Sequence[_Array] = (),
) -> str:
    """Returns the text of a function that reads ``inputs`` and writes ``results``.

    ``results``: (name of a tensor, the array that it is written to); ``zero_element``: the type of ``%zero``;
    ``body``: the ops that make the tensors; ``unread``: further arguments.
    """
    arguments = [array.declaration for array in (*inputs, *unread)]
    reads = "".join(array.as_tensor() for array in inputs)
    writes = ""
    for result, array in results:
        arguments.append(array.declaration)
        reads += array.as_tensor("restrict writable")
        writes += (
            f"    bufferization.materialize_in_destination {result} in restrict writable {array.memory}\n"
        )
        writes += f"      : ({array.tensor}, {array.memory_type}) -> ()\n"
    return f"""  func.func @{name}({", ".join(arguments)}) {{
    %zero = arith.constant {zero(zero_element)}
{reads}{body}{writes}    return
  }}
"""


def _product(problem: Problem, a: _Array, b: _Array, start: str, kind: str) -> str:
    if problem.scales:
        return scaled_product(problem, start, kind)
    sums = problem.accumulator
    return f"""    %cleared = linalg.fill ins(%zero : {sums}) outs({start} : {kind}) -> {kind}
    %product = linalg.matmul{indexing_maps(problem.layout)}
      ins(%A, %B : {a.tensor}, {b.tensor}) outs(%cleared : {kind}) -> {kind}
"""


def _epilogue(problem: Problem, kind: str, extra: list[_Array], c: _Array) -> str:
    sums = problem.accumulator
    epilogue = problem.after_product
    identity = "affine_map<(m, n) -> (m, n)>"
    of_extra = [f"affine_map<(m, n) -> {argument.map_results}>" for argument in epilogue.arguments]
    maps = ", ".join([identity, *of_extra, identity])
    names = ", ".join(["%product", *(f"%{array.name.upper()}" for array in extra)])
    kinds = ", ".join([kind, *(array.tensor for array in extra)])
    held = "old"
    if epilogue.reads_output:
        held = BEFORE
    return f"""    %result = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel"]}}
      ins({names} : {kinds}) outs(%C : {c.tensor}) {{
    ^bb0(%sum: {sums}, {epilogue.scalar_arguments(c.element)}%{held}: {c.element}):
{_scalars(epilogue, sums, c.element)}\
    }} -> {c.tensor}
"""


def _scalars(epilogue: Epilogue, sums: str, element: str) -> str:
    lines = epilogue.scalar_lines(sums, element, "%zero")
    return "".join(f"      {line}\n" for line in lines)


def _sizes(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
