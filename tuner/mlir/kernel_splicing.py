"""Puts a script's kernels in the place of a program's matmuls.

The kernels of a problem are built once, as a module of their own, and launched from every site.
"""

from dataclasses import dataclass
from typing import Any

from tuner.chips import Chip
from tuner.errors import CandidateError, Stage, failing_at
from tuner.gpu_payload import gpu_payload_mlir, views_in
from tuner.kernel import KernelBuffer, Launch
from tuner.kernel_buffers import buffers_of
from tuner.mlir import parallel_loops
from tuner.mlir.bindings import ir
from tuner.mlir.building import create, index, value
from tuner.mlir.gpu_lowering import outline
from tuner.mlir.host_program import HostProgram
from tuner.mlir.interpreter import apply_script, parse
from tuner.mlir.matmul_sites import MatmulSite
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.launch_operands import SEGMENTS
from tuner.mlir.site_replacement import allocate, replace_site
from tuner.mlir.symbols import name_of
from tuner.problem import Problem
from tuner.target import Script

CONTAINER = "gpu.container_module"


@dataclass(frozen=True)
class SplicedKernels:
    """The kernels of one problem inside of a program's module."""

    holder: str  # symbol of their gpu.module
    host: HostProgram
    types: dict[str, tuple[Any, ...]]  # kernel -> types of its parameters


def splice(module: ir.Module, sites: list[MatmulSite], scripts: dict[Problem, Script], chip: Chip) -> None:
    """Replaces every site by launches, in place. Raises CandidateError for a script that makes no kernels."""
    kernels: dict[Problem, SplicedKernels] = {}
    for site in sites:
        if site.problem not in kernels:
            kernels[site.problem] = add_kernels(module, site.problem, scripts[site.problem], chip)
        known = kernels[site.problem]
        replace_site(site, lambda a, b, c, known=known: _launch_all(known, {"a": a, "b": b, "c": c}))  # type: ignore[misc]


def add_kernels(module: ir.Module, problem: Problem, script: Script, chip: Chip) -> SplicedKernels:
    """Compiles a script's kernels down to GPU dialect and moves them into the module."""
    with failing_at(Stage.BIND):
        views = views_in(script.text, problem)
    own = parse(gpu_payload_mlir(problem, views), "payload")
    apply_script(own, parse(script.text, "script"))
    host, _ = outline(own, chip, buffers_of(problem))
    holder = walk(own, "gpu.module")[0]
    suffix = _suffix(problem)
    holder.attributes["sym_name"] = ir.StringAttr.get(f"kernels_{suffix}")
    types = {}
    for function in walk(holder, "gpu.func"):
        name = f"{name_of(function)}_{suffix}"
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        types[name] = tuple(argument.type for argument in function.regions[0].blocks[0].arguments)
    module.body.append(holder)
    module.operation.attributes[CONTAINER] = ir.UnitAttr.get()
    return SplicedKernels(f"kernels_{suffix}", host, types)


def _suffix(problem: Problem) -> str:
    """Returns what tells kernels of problems apart, in letters that PTX takes."""
    return "_".join(part for part in (problem.shape, problem.dtype, problem.output, problem.layout) if part)


def _launch_all(kernels: SplicedKernels, arrays: dict[str, Any]) -> None:
    """Creates scratch buffers, zeros where they are asked for, and the launches."""
    suffix = kernels.holder.removeprefix("kernels")
    scratch = [buffer for buffer in kernels.host.buffers if buffer.role == "scratch"]
    arrays = arrays | {buffer.name: _scratch(buffer, kernels, suffix) for buffer in scratch}
    for buffer in kernels.host.buffers:
        if buffer.is_zeroed:
            parallel_loops.clear(arrays[buffer.name])
    for launch in kernels.host.launches:
        _launch(launch, kernels, f"{launch.kernel}{suffix}", arrays)
    for buffer in scratch:
        create("memref.dealloc", [], [arrays[buffer.name]])


def _scratch(buffer: KernelBuffer, kernels: SplicedKernels, suffix: str) -> Any:
    """Creates a flat buffer of the elements that the kernels take it for."""
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


def _launch(launch: Launch, kernels: SplicedKernels, name: str, arrays: dict[str, Any]) -> None:
    arguments = [
        _view(arrays[argument], kind)
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
        kernel=ir.SymbolRefAttr.get([kernels.holder, name]),
        **{SEGMENTS: ir.DenseI32ArrayAttr.get(segments)},
    )


def _view(array: Any, kind: Any) -> Any:
    """Returns the array under a kernel's type, whose sizes may be padded beyond the array's end."""
    if array.type == kind:
        return array
    strides, offset = kind.get_strides_and_offset()
    return value(
        "memref.reinterpret_cast",
        kind,
        array,
        static_offsets=ir.DenseI64ArrayAttr.get([offset]),
        static_sizes=ir.DenseI64ArrayAttr.get(list(kind.shape)),
        static_strides=ir.DenseI64ArrayAttr.get(list(strides)),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    )
