"""Replaces a program's matmuls by launches of tuned GPU kernels.

Takes the matches of ``find_matmuls.py`` and a bound script per problem; inserts one ``gpu.module`` per
problem, and for each match the launches of the script's host function. The kernels of a problem are compiled
once, by the pipeline of a trial, whatever the number of its matmuls.

    linalg.generic ... ins(%a, %b : ...) outs(%c : memref<512x512xf32>)
  becomes, where C was filled with zeros
    gpu.launch_func @kernels_512x512x512_f32_nn::@matmul_kernel_512x512x512_f32_nn
        blocks in (...) threads in (...) args(%a : ..., %b : ..., %c : ...)
"""

from dataclasses import dataclass

from tuner.core.chips import Chip
from tuner.core.device_program import MatmulKernel
from tuner.core.errors import CandidateError, Stage, failing_at
from tuner.core.kernel_program import KernelBuffer, Launch, buffers_of
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.gpu.launches import LaunchSequence
from tuner.mlir.gpu.lowering import outline
from tuner.mlir.gpu.ready_kernels import make_ready
from tuner.mlir.interpreter import apply_script, parse
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.building import create, index, reinterpreted, value
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk
from tuner.payload.gpu import gpu_payload_mlir, scratch_in
from tuner.programs.lower.matmuls.find_matmuls import MatmulMatch
from tuner.programs.lower.matmuls.packed_views import allocate
from tuner.programs.lower.matmuls.replace_matmuls import Multiply, replace_matmuls
from tuner.programs.lower.tensor_map_arguments import replace_maps_by_tensors, tensor_map_attributes

CONTAINER = "gpu.container_module"


@dataclass(frozen=True)
class InsertedKernels:
    """The GPU kernels of one matmul problem in a program's module, and the sequence that launches them."""

    module: str  # symbol of the gpu.module with the kernels
    host: LaunchSequence
    types: dict[str, tuple[Type, ...]]  # kernel name -> types of its parameters


def insert_gpu_kernels(
    module: ir.Module, matches: list[MatmulMatch], scripts: dict[Problem, Script], chip: Chip
) -> tuple[MatmulKernel, ...]:
    """Replaces matmuls by launches of GPU kernels that their scripts produce, in place.

    ``scripts`` must have the problem of each match. Returns the kernels whose single launch computes a whole
    matmul, for problems with no other kernel. Raises CandidateError for a script that fails or produces no
    kernels.
    """
    kernels: dict[Problem, InsertedKernels] = {}
    for match in matches:
        if match.problem not in kernels:
            kernels[match.problem] = add_kernels(module, match.problem, scripts[match.problem], chip)
    replace_matmuls(matches, lambda match: _multiply(kernels[match.problem]))
    return tuple(one for problem, known in kernels.items() for one in _whole(problem, known))


def add_kernels(module: ir.Module, problem: Problem, script: Script, chip: Chip) -> InsertedKernels:
    """Compiles the kernels of a script for one matmul, and appends their ``gpu.module`` to ``module``.

    Returns their names, parameter types and launches. Raises CandidateError for a script that fails.
    """
    with failing_at(Stage.BIND):
        scratch = scratch_in(script.text, problem)
    own = parse(gpu_payload_mlir(problem, scratch), "payload")
    return add_kernels_of(module, own, buffers_of(problem), script, _suffix(problem), chip)


def add_kernels_of(
    module: ir.Module,
    own: ir.Module,
    buffers: tuple[KernelBuffer, ...],
    script: Script,
    suffix: str,
    chip: Chip,
) -> InsertedKernels:
    """Compiles the kernels of a script for a payload, and appends their ``gpu.module`` to ``module``.

    Args:
        module: the program.
        own: the payload, which is changed.
        buffers: those that the payload's function takes, in order.
        script: the transform script.
        suffix: of the names of the kernels, unique in the program, of characters that PTX allows.
        chip: the GPU architecture.

    Returns their names, parameter types and launches. Raises CandidateError for a script that fails.
    """
    apply_script(own, parse(script.text, "script"))
    host, alignment_bytes = outline(own, chip, buffers)
    holder = walk(own, "gpu.module")[0]
    holder.attributes["sym_name"] = ir.StringAttr.get(f"kernels_{suffix}")
    launches = {launch.kernel: launch for launch in host.launches}
    functions = {name_of(function): function for function in walk(holder, "gpu.func")}
    for name, function in functions.items():
        function.attributes["sym_name"] = ir.StringAttr.get(f"{name}_{suffix}")
    make_ready(holder, chip, alignment_bytes)
    types = {}
    for name, function in functions.items():
        replace_maps_by_tensors(function, launches[name])
        types[f"{name}_{suffix}"] = tuple(each.type for each in function.regions[0].blocks[0].arguments)
    module.body.append(holder)
    module.operation.attributes[CONTAINER] = ir.UnitAttr.get()
    return InsertedKernels(f"kernels_{suffix}", host, types)


def _whole(problem: Problem, kernels: InsertedKernels) -> tuple[MatmulKernel, ...]:
    """Returns a problem's only kernel if it takes just the matrices and overwrites C; else ()."""
    launches, buffers = kernels.host.launches, kernels.host.buffers
    if len(launches) != 1 or any(buffer.is_zeroed for buffer in buffers):
        return ()
    if sorted(launches[0].arguments) != ["a", "b", "c"] or launches[0].grid[2] != 1:
        return ()
    return (MatmulKernel(f"{launches[0].kernel}_{_suffix(problem)}", problem, launches[0].arguments),)


def _suffix(problem: Problem) -> str:
    """Returns the suffix of a problem's kernel names, of characters that PTX allows."""
    return "_".join(part for part in (problem.shape, problem.dtype, problem.output, problem.layout) if part)


def _multiply(kernels: InsertedKernels) -> Multiply:
    return lambda a, b, c: launch_all(kernels, {"a": a, "b": b, "c": c})


def launch_all(kernels: InsertedKernels, arrays: dict[str, Value]) -> None:
    """Creates the launches of a script's kernels, with scratch buffers, and fills with zeros where required.

    ``arrays`` has the memref of each buffer by its name.
    """
    suffix = kernels.module.removeprefix("kernels")
    scratch = [buffer for buffer in kernels.host.buffers if buffer.role == "scratch"]
    arrays = arrays | {buffer.name: _scratch(buffer, kernels, suffix) for buffer in scratch}
    for buffer in kernels.host.buffers:
        if buffer.is_zeroed:
            parallel_loops.clear(arrays[buffer.name])
    for launch in kernels.host.launches:
        _launch(launch, kernels, f"{launch.kernel}{suffix}", arrays)
    for buffer in scratch:
        create("memref.dealloc", [], [arrays[buffer.name]])


def _scratch(buffer: KernelBuffer, kernels: InsertedKernels, suffix: str) -> Value:
    """Creates a flat scratch buffer with the element type of the kernels' parameter."""
    elements = {
        kind.element_type
        for launch in kernels.host.launches
        for name, kind in zip(launch.arguments, kernels.types[f"{launch.kernel}{suffix}"], strict=True)
        if name == buffer.name
    }
    if len(elements) != 1:
        found = ", ".join(sorted(map(str, elements))) or "no launch that takes it"
        raise CandidateError(Stage.COMPILE, f"buffer {buffer.name}: found {found}, allowed one element type")
    (element,) = elements
    return allocate(ir.MemRefType.get([buffer.bytes * 8 // element.width], element))


def _launch(launch: Launch, kernels: InsertedKernels, name: str, arrays: dict[str, Value]) -> None:
    arguments = [
        _view(arrays[_buffer(launch, argument)], kind)
        for argument, kind in zip(launch.arguments, kernels.types[name], strict=True)
    ]
    sizes = [index(size) for size in (*launch.grid, *launch.block)]
    shared = []
    if launch.dynamic_shared_bytes:
        i32 = ir.IntegerType.get_signless(32)
        number = ir.IntegerAttr.get(i32, launch.dynamic_shared_bytes)
        shared = [value("arith.constant", i32, value=number)]
    segments = [0, *[1] * 6, 0, 0, 0, len(shared), len(arguments), 0]
    create(
        "gpu.launch_func",
        [],
        [*sizes, *shared, *arguments],
        kernel=ir.SymbolRefAttr.get([kernels.module, name]),
        **{SEGMENTS: ir.DenseI32ArrayAttr.get(segments), **tensor_map_attributes(launch)},
    )


def _buffer(launch: Launch, argument: str) -> str:
    """Returns the name of the buffer that an argument passes, directly or as a tensor map."""
    tensor_map = launch.tensor_map(argument)
    return argument if tensor_map is None else tensor_map.buffer


def _view(array: Value, kind: Type) -> Value:
    """Returns the array as the kernel's type, whose sizes may be padded beyond the end of the array."""
    return array if array.type == kind else reinterpreted(array, kind)
