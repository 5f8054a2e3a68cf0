"""Matmuls of fusions as kernels that transform scripts generate; they apply the epilogue as they store sums.

The last matmul of a fusion gets the epilogue, if that is one ``linalg.generic`` of arithmetic that reads,
next to the sums, matrices, rows or columns in memory: biases, residuals, the sums of the matmuls before it.
Else the matmul's sums go to memory, and a kernel of one thread per element follows.
    %gate = linalg.matmul ins(%x, %g : ...) ...
    %up = linalg.matmul ins(%x, %u : ...) ...
    %y = linalg.generic ... ins(%gate, %up : ...) ...     // silu(gate) * up
  becomes
    %sums = memref.alloc() : memref<64x1376xf32>
    gpu.launch_func @kernels_fusion3_0...::@matmul_kernel_fusion3_0... ... args(%x, %g, %sums)
    gpu.launch_func @kernels_fusion3_1...::@matmul_kernel_fusion3_1... ... args(%x, %u, %sums, %y)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

from tuner.core.compiled_code import KernelBuffer, buffers_of
from tuner.core.dtypes import FLOATS, output_names
from tuner.core.errors import CandidateError, Refusal, Stage, failing_at
from tuner.core.gpu import Chip
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.gpu.fusions.element_kernels import FusionFunction, launch_elements, launch_for_each
from tuner.gpu.lowering.matmul_launches import InsertedKernels, add_kernels_of, launch_all
from tuner.gpu.payload.gpu import EpilogueOperand, gpu_payload_mlir, matmul_with_epilogue_mlir
from tuner.gpu.payload.scratch import Scratch, scratch_in
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    GENERIC,
    body_of,
    clone_into,
    dimensions,
    inputs_of,
    is_identity,
    is_parallel,
)
from tuner.mlir.ir.building import load, store, value
from tuner.mlir.ir.memrefs import is_row_major, memref_bytes
from tuner.mlir.ir.reading import maps_in, op_of, walk
from tuner.mlir.programs.matmul_replacement import allocate
from tuner.mlir.programs.matmuls import matmul_of
from tuner.mlir.transform import parse

ARITHMETIC = ("arith.", "math.", "linalg.yield")  # of the bodies that scripts finish stores with
ScriptOf = Callable[[Problem], Script | None]
MATMUL = "linalg.matmul"
WITH_EPILOGUE = "bias_relu"  # asks for a script that applies an epilogue where it stores, whichever it is


@dataclass(frozen=True)
class MatmulEpilogue:
    """The ``linalg.generic`` after the last matmul of a fusion, and the memrefs that it reads and writes."""

    op: Op
    sums: int  # number of the operand that has the sums
    others: tuple[tuple[int, Value], ...]  # number of an operand, memref that has it
    output: Value  # memref


def epilogue_of(last: Op, function: FusionFunction) -> MatmulEpilogue | Refusal | None:
    """Returns the epilogue of a fusion's last matmul; None if the sums, read by no op, are its result.

    Returns a Refusal, with the reason, where a kernel of its own must follow the matmul.
    """
    tensor, output = function.outputs[0]
    sums = last.results[0]
    if tensor == sums and len(list(sums.uses)) == 1:
        return None
    generics = function.generics
    if len(generics) != 1 or len(function.outputs) != 1 or tensor != generics[0].results[0]:
        return Refusal("the epilogue is several operations")
    op = generics[0]
    places = [index for index, operand in enumerate(op.operands) if operand == sums]
    if len(places) != 1 or not is_identity(maps_in(op)[places[0]]) or not all(is_parallel(op)):
        return Refusal("the epilogue reads other sums than those of its element")
    if not _is_arithmetic(op):
        return Refusal("the epilogue is more than arithmetic")
    if str(output.type.element_type) not in FLOATS or not is_plain(output):
        return Refusal(f"the result is {output.type}, not rows of {', '.join(FLOATS)}")
    others = [(index, tensor) for index, tensor in enumerate(inputs_of(op)) if index != places[0]]
    for number, tensor in others:
        loops = dimensions(maps_in(op)[number])
        is_read = tensor in function.memory and is_plain(function.memory[tensor])
        if not is_read or not loops or list(loops) != sorted(loops):
            return Refusal("the epilogue reads what does not lie in rows")
    memory = tuple((number, function.memory[tensor]) for number, tensor in others)
    return MatmulEpilogue(op, places[0], memory, output)


def _is_arithmetic(op: Op) -> bool:
    arguments = list(op.regions[0].blocks[0].arguments)
    inner = body_of(op)
    own = {*arguments, *chain.from_iterable(op.results for op in inner)}
    read = chain.from_iterable(op.operands for op in inner)
    outside = [operand for operand in read if operand not in own]
    return (
        all(op.name.startswith(ARITHMETIC) and not len(op.regions) for op in inner)
        and all(op_of(operand, "arith.constant") is not None for operand in outside)
        and not list(arguments[-1].uses)
    )


def is_plain(memory: Value) -> bool:
    """Returns whether a memref is row-major and begins at its buffer's first element."""
    return is_row_major(memory.type)


def put_body(payload: ir.Module, epilogue: MatmulEpilogue) -> None:
    """Clones the body of an epilogue into the last ``linalg.generic`` of a matmul's payload, in place.

    The first argument of that generic is the sum; its further arguments are the epilogue's other operands.
    """
    generic = walk(payload, GENERIC)[-1]
    arguments = list(generic.regions[0].blocks[0].arguments)
    elements = list(epilogue.op.regions[0].blocks[0].arguments)
    order = [epilogue.sums, *(number for number, _ in epilogue.others)]
    known = {elements[number]: arguments[at] for at, number in enumerate(order)}
    end = body_of(generic)[-1]
    sums = elements[epilogue.sums]
    with ir.InsertionPoint(end), ir.Location.unknown():
        if sums.type != arguments[0].type:  # the program rounds sums before the epilogue
            known[sums] = value("arith.truncf", sums.type, arguments[0])
        for op in body_of(epilogue.op):
            for operand in op.operands:
                if operand not in known:
                    constant = operand.owner.operation.attributes["value"]
                    known[operand] = value("arith.constant", operand.type, value=constant)
            if op.name == "linalg.yield":
                end.operands[0] = known[op.operands[0]]
            else:
                clone_into(op, known)


class ScriptKernels:
    """Compiles the GPU kernels of a program's matmuls, by their transform scripts, once for equal matmuls.

    ``module``: where the kernels are added; ``math``: how f32 is multiplied, a key of ``MATH``.
    """

    def __init__(self, module: ir.Module, chip: Chip, script_of: ScriptOf, math: str) -> None:
        self.module = module
        self.math = math  # how f32 is multiplied
        self._chip = chip
        self._script_of = script_of
        self._known: dict[tuple[str, str], InsertedKernels] = {}

    def script(self, problem: Problem) -> Script:
        """Returns the script of a matmul. Raises CandidateError(COMPILE) if no strategy supports it."""
        script = self._script_of(problem)
        if script is None:
            raise CandidateError(Stage.COMPILE, f"no strategy supports {problem.key}")
        return script

    def of(
        self, payload: ir.Module, buffers: tuple[KernelBuffer, ...], script: Script, suffix: str
    ) -> InsertedKernels:
        """Returns the compiled kernels of ``script`` for ``payload``, which may be changed.

        ``buffers``: the arguments of the payload's function. ``suffix``: end of the kernels' names. Kernels
        that were compiled for an equal payload and script are returned again. Raises CandidateError where the
        script fails.
        """
        key = (str(payload), script.text)
        if key not in self._known:
            self._known[key] = add_kernels_of(self.module, payload, buffers, script, suffix, self._chip)
        return self._known[key]


@dataclass(frozen=True)
class KernelPlace:
    """Where the kernels of a fusion are added: a module, and the fusion's name, which is in their names."""

    scripts: ScriptKernels
    name: str  # of the fusion, unique in the program

    @property
    def module(self) -> ir.Module:
        return self.scripts.module


def matmuls_of(function: FusionFunction, math: str) -> list[Op]:
    """Returns the matmuls of a fusion; [] unless transform scripts can compute all of them.

    They can if each matmul has layout nn with A as its first input, element types of ``MATMUL_DTYPES``, and
    operands that are in memory already: the fusion computes neither. ``math``: how f32 is multiplied, a key
    of ``MATH``.
    """
    matmuls = [op for op in function.ops if op.name == MATMUL]
    for op in matmuls:
        if _problem(op, math) is None or not function.memory.keys() >= set(inputs_of(op)):
            return []
    return matmuls


def launch_matmuls(function: FusionFunction, place: KernelPlace) -> Refusal | None:
    """Creates the launches of a fusion of matmuls at the insertion point.

    ``matmuls_of`` must have found a matmul. Returns a Refusal that says why a further kernel follows, for the
    epilogue or to copy the sums to an output that is not row-major; None if none follows. Raises
    CandidateError where no script supports a matmul, or a script fails.
    """
    math = place.scripts.math
    *first, last = matmuls_of(function, math)
    for index, op in enumerate(first):
        _launch_to_memory(op, function, place, index)
    epilogue = epilogue_of(last, function)
    if isinstance(epilogue, MatmulEpilogue):
        script = place.scripts.script(_with_output(last, epilogue.output, math))
        reason = _launch_with_epilogue(last, epilogue, function, place, script, len(first))
        if reason is None:
            return None
    else:
        reason = epilogue
    outputs = [memory for tensor, memory in function.outputs if tensor == last.results[0]]
    if len(outputs) == len(list(last.results[0].uses)) == 1 and is_plain(outputs[0]):
        _launch_plain(last, outputs[0], function, place, len(first))
        return None
    _launch_to_memory(last, function, place, len(first))
    launch_elements(function)
    return reason or Refusal("the result does not lie in rows of its own")


def _problem(op: Op, math: str) -> Problem | None:
    problem, is_swapped = matmul_of(op, math) or (None, False)
    if problem is not None and problem.layout == "nn" and not is_swapped:
        return problem
    return None


def _with_output(op: Op, output: Value, math: str) -> Problem:
    # asks for the script of a matmul whose epilogue writes the output
    problem = _problem(op, math)
    assert problem is not None
    element = str(output.type.element_type)
    narrow = element if element in output_names(problem.dtype)[1:] else ""
    return replace(problem, output=narrow, epilogue=WITH_EPILOGUE)


def _launch_to_memory(op: Op, function: FusionFunction, place: KernelPlace, number: int) -> None:
    type_ = op.results[0].type
    sums = allocate(ir.MemRefType.get(type_.shape, type_.element_type))
    _launch_plain(op, sums, function, place, number)
    function.memory[op.results[0]] = sums


def _launch_plain(op: Op, output: Value, function: FusionFunction, place: KernelPlace, number: int) -> None:
    problem = _problem(op, place.scripts.math)
    assert problem is not None
    script = place.scripts.script(problem)
    with failing_at(Stage.BIND):
        scratch = scratch_in(script.text, problem)
    own = parse(gpu_payload_mlir(problem, scratch), "payload")
    kernels = place.scripts.of(own, buffers_of(problem), script, _suffix(problem, place, number))
    a, b = _factors(op, function)
    launch_all(kernels, {"a": a, "b": b, "c": output})


def _suffix(problem: Problem, place: KernelPlace, number: int) -> str:
    return f"{place.name}_{number}_{problem.shape}_{problem.dtype}"


def _factors(op: Op, function: FusionFunction) -> list[Value]:
    return [_contiguous(function.memory[input_]) for input_ in inputs_of(op)]


def _contiguous(memory: Value) -> Value:
    if is_plain(memory):
        return memory
    packed = allocate(ir.MemRefType.get(memory.type.shape, memory.type.element_type))
    launch_for_each(memory.type.shape, lambda indices: store(load(memory, indices), packed, indices))
    return packed


def _launch_with_epilogue(
    op: Op,
    epilogue: MatmulEpilogue,
    function: FusionFunction,
    place: KernelPlace,
    script: Script,
    number: int,
) -> Refusal | None:
    """Creates the launch of a matmul with its epilogue; returns None.

    Returns a Refusal, and creates nothing, if ``script`` cannot apply the epilogue.
    """
    problem = _with_output(op, epilogue.output, place.scripts.math)
    with failing_at(Stage.BIND):
        scratch = scratch_in(script.text, problem)
    if scratch != Scratch():
        return Refusal("the matmul's script sums parts of K or packs its operands")
    maps = maps_in(epilogue.op)
    operands = tuple(
        EpilogueOperand(f"other{at}", dimensions(maps[at]) or (), str(memory.type.element_type))
        for at, memory in epilogue.others
    )
    result = str(epilogue.output.type.element_type)
    own = parse(matmul_with_epilogue_mlir(problem, operands, result), "payload")
    put_body(own, epilogue)
    arrays = {f"other{at}": memory for at, memory in epilogue.others}
    others = [KernelBuffer(name, memref_bytes(array.type), "input") for name, array in arrays.items()]
    a, b, c = buffers_of(replace(problem, epilogue="none"))
    c = replace(c, bytes=memref_bytes(epilogue.output.type))
    kernels = place.scripts.of(own, (a, b, *others, c), script, _suffix(problem, place, number))
    factors = _factors(op, function)
    launch_all(kernels, {"a": factors[0], "b": factors[1], "c": epilogue.output, **arrays})
    return None
