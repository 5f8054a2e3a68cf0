"""Matmuls of groups as kernels of transform scripts, with the group's epilogue where sums are stored.

The last matmul of a group gets the epilogue, if that is one ``linalg.generic`` of arithmetic that reads, next
to the sums, matrices, rows or columns in memory: biases, residuals, the sums of the matmuls before it. Else
the matmul's sums go to memory, and a kernel of one thread per element follows.

    %gate = linalg.matmul ins(%x, %g : ...) ...
    %up = linalg.matmul ins(%x, %u : ...) ...
    %y = linalg.generic ... ins(%gate, %up : ...) ...     // silu(gate) * up
  becomes
    %sums = memref.alloc() : memref<64x1376xf32>
    gpu.launch_func @kernels_group3_0...::@matmul_kernel_group3_0... ... args(%x, %g, %sums)
    gpu.launch_func @kernels_group3_1...::@matmul_kernel_group3_1... ... args(%x, %u, %sums, %y)
"""

from dataclasses import replace

from tuner.core.errors import Stage, failing_at
from tuner.core.kernel_program import KernelBuffer, buffers_of
from tuner.core.problem import Matmul, Problem, natural_output, output_names
from tuner.core.target import Script
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.interpreter import parse
from tuner.mlir.rewrite.parallel_loops import load, store
from tuner.mlir.rewrite.type_sizes import memref_bytes
from tuner.payload.gpu import (
    EpilogueOperand,
    Scratch,
    gpu_payload_mlir,
    matmul_with_epilogue_mlir,
    scratch_in,
)
from tuner.programs.device_groups.element_kernels import launch_elements
from tuner.programs.device_groups.group_function import GroupFunction
from tuner.programs.device_groups.launching import launch_for_each
from tuner.programs.device_groups.matmul_epilogues import MatmulEpilogue, epilogue_of, is_plain, put_body
from tuner.programs.device_groups.script_kernels import KernelPlace
from tuner.programs.lower.matmuls.find_matmuls import DTYPES
from tuner.programs.lower.matmuls.insert_gpu_kernels import (
    launch_all,
)
from tuner.programs.lower.matmuls.packed_views import allocate
from tuner.programs.op_groups.op_names import (
    dimensions,
    inputs_of,
    maps_of,
)

MATMUL = "linalg.matmul"
WITH_EPILOGUE = "bias_relu"  # how a script is asked for that finishes stores, whatever the epilogue


def matmuls_of(function: GroupFunction) -> list[Op]:
    """Returns the matmuls of a group, in order; [] where one cannot be a script's: elements, operands."""
    found = [op for op in function.ops if op.name == MATMUL]
    is_known = all(_problem(op) is not None and _has_arguments(op, function) for op in found)
    return found if is_known else []


def launch_matmuls(function: GroupFunction, place: KernelPlace) -> str:
    """Creates the launches of a group of matmuls at the current insertion point.

    Returns why the epilogue is a kernel of its own; "" where it is not, or there is none. Raises
    CandidateError where no script supports a matmul, or a script fails.
    """
    *first, last = matmuls_of(function)
    for number, op in enumerate(first):
        _launch_to_memory(op, function, place, number)
    epilogue = epilogue_of(last, function)
    if isinstance(epilogue, MatmulEpilogue):
        script = place.scripts.script(_with_output(last, epilogue.output))
        reason = _launch_with_epilogue(last, epilogue, function, place, script, len(first))
        if not reason:
            return ""
    else:
        reason = epilogue
    output = _own_output(last, function)
    if output is not None:
        _launch_plain(last, output, function, place, len(first))
        return ""
    _launch_to_memory(last, function, place, len(first))
    launch_elements(function)
    return reason or "the result does not lie in rows of its own"


def _problem(op: Op) -> Problem | None:
    a, b = (each.type for each in inputs_of(op))
    sums = op.results[0].type
    dtype, result = str(a.element_type), str(sums.element_type)
    if dtype not in DTYPES or str(b.element_type) != dtype or result not in output_names(dtype):
        return None
    if "indexing_maps" in op.attributes and not _is_nn(op):
        return None
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, n, k):
        return None
    return Matmul(m, n, k, dtype, "nn", output="" if result == natural_output(dtype) else result)


def _is_nn(op: Op) -> bool:
    return [dimensions(each) for each in maps_of(op)] == [(0, 2), (2, 1), (0, 1)]


def _has_arguments(op: Op, function: GroupFunction) -> bool:
    return all(each in function.memory for each in inputs_of(op))


def _with_output(op: Op, output: Value) -> Problem:
    """Returns the problem that asks for the script of a matmul whose epilogue writes ``output``."""
    problem = _problem(op)
    assert problem is not None
    element = str(output.type.element_type)
    narrow = element if element in output_names(problem.dtype)[1:] else ""
    return replace(problem, output=narrow, epilogue=WITH_EPILOGUE)


def _own_output(op: Op, function: GroupFunction) -> Value | None:
    """Returns the memory that a matmul writes itself; None where it needs another."""
    written = [memory for tensor, memory in function.outputs if tensor == op.results[0]]
    uses = len(list(op.results[0].uses))
    return written[0] if len(written) == uses == 1 and is_plain(written[0]) else None


def _launch_to_memory(op: Op, function: GroupFunction, place: KernelPlace, number: int) -> None:
    """Creates a matmul whose sums go to new memory, where the function then reads them."""
    kind = op.results[0].type
    sums = allocate(ir.MemRefType.get(kind.shape, kind.element_type))
    _launch_plain(op, sums, function, place, number)
    function.memory[op.results[0]] = sums


def _launch_plain(op: Op, output: Value, function: GroupFunction, place: KernelPlace, number: int) -> None:
    problem = _problem(op)
    assert problem is not None
    script = place.scripts.script(problem)
    with failing_at(Stage.BIND):
        scratch = scratch_in(script.text, problem)
    own = parse(gpu_payload_mlir(problem, scratch), "payload")
    suffix = _suffix(problem, place, number)
    kernels = place.scripts.of(own, buffers_of(problem), script, suffix)
    a, b = _factors(op, function)
    launch_all(kernels, {"a": a, "b": b, "c": output})


def _suffix(problem: Problem, place: KernelPlace, number: int) -> str:
    """Returns the suffix of the kernels' names: the group, which matmul of it, what it multiplies."""
    return f"{place.name}_{number}_{problem.shape}_{problem.dtype}"


def _factors(op: Op, function: GroupFunction) -> list[Value]:
    return [_contiguous(function.memory[each]) for each in inputs_of(op)]


def _contiguous(memory: Value) -> Value:
    """Returns memory as kernels of scripts take it; creates a launch that copies rows with gaps."""
    if is_plain(memory):
        return memory
    kind = memory.type
    packed = allocate(ir.MemRefType.get(kind.shape, kind.element_type))
    launch_for_each(kind.shape, lambda indices: store(load(memory, indices), packed, indices))
    return packed


def _launch_with_epilogue(
    op: Op, epilogue: MatmulEpilogue, function: GroupFunction, place: KernelPlace, script: Script, number: int
) -> str:
    """Creates the launch of a matmul with its epilogue; returns why the script cannot have it, else ""."""
    problem = _with_output(op, epilogue.output)
    with failing_at(Stage.BIND):
        scratch = scratch_in(script.text, problem)
    if scratch != Scratch():
        return "the matmul's script sums parts of K or packs its operands"
    operands = tuple(
        EpilogueOperand(f"other{at}", _loops(epilogue.op, at), str(memory.type.element_type))
        for at, memory in epilogue.others
    )
    result = str(epilogue.output.type.element_type)
    own = parse(matmul_with_epilogue_mlir(problem, operands, result), "payload")
    put_body(own, epilogue)
    others = tuple(
        KernelBuffer(operand.name, memref_bytes(memory.type), "input")
        for operand, (_, memory) in zip(operands, epilogue.others, strict=True)
    )
    a, b, c = buffers_of(replace(problem, epilogue="none"))
    c = replace(c, bytes=memref_bytes(epilogue.output.type))
    suffix = _suffix(problem, place, number)
    kernels = place.scripts.of(own, (a, b, *others, c), script, suffix)
    factors = _factors(op, function)
    arrays = {operand.name: memory for operand, (_, memory) in zip(operands, epilogue.others, strict=True)}
    launch_all(kernels, {"a": factors[0], "b": factors[1], "c": epilogue.output, **arrays})
    return ""


def _loops(op: Op, operand: int) -> tuple[int, ...]:
    found = dimensions(maps_of(op)[operand])
    assert found is not None
    return found
