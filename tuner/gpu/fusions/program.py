"""A program of fusions on a GPU: each fusion's launches, the host function, and the compiled result.

``compile_for_device`` forms the fusions, adds each (``add_fusion``) and writes the host function that runs
them in order (``host_of_fusions``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.device_programs import (
    DEVICE_ATTRIBUTE,
    BufferType,
    DeviceFusion,
    DeviceProgram,
    ResidentBuffer,
)
from tuner.core.dtypes import IEEE
from tuner.core.errors import CandidateError
from tuner.core.fusions import (
    ARGUMENT,
    CONTRACTION,
    RESULT,
    TEMPORARY,
    WEIGHT,
    Buffer,
    FusedProgram,
    Fusion,
    TensorType,
    View,
)
from tuner.core.gpu import Chip
from tuner.core.numpy_types import DTYPES
from tuner.gpu.fusions.element_kernels import fusion_function, launch_elements
from tuner.gpu.fusions.matmul_kernels import KernelPlace, ScriptKernels, ScriptOf, launch_matmuls, matmuls_of
from tuner.gpu.fusions.row_kernels import has_rows, launch_rows
from tuner.gpu.lowering.device import lower_device_program
from tuner.gpu.lowering.kernels import launch_loops
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.launches import module_of
from tuner.mlir.ir.building import create, reinterpreted
from tuner.mlir.ir.memrefs import sync_function_type
from tuner.mlir.ir.reading import name_of, private_function, types_of, walk
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.deallocation import free_after_last_use
from tuner.mlir.programs.indirect_indices import assert_indirect_indices
from tuner.mlir.programs.matmul_replacement import allocate
from tuner.mlir.programs.payload import ProgramPayload
from tuner.mlir.transform import parse
from tuner.runtime.programs.devices import DeviceTarget

BUFFERIZE = "builtin.module(one-shot-bufferize,canonicalize,cse)"
INLINE = "builtin.module(inline,symbol-dce)"


@dataclass(frozen=True)
class FusionKernels:
    """The function that launches a fusion's kernels.

    ``reason``: why the fusion needs more kernels than one, or than one per matmul or shape of outputs.
    """

    function: Op  # private func.func of the views' types
    reason: str = ""  # "": one kernel, or one for each matmul or shape of outputs


def add_fusion(fusion: Fusion, types: Sequence[ir.Type], place: KernelPlace) -> FusionKernels:
    """Adds to ``place.module`` a private function that computes a fusion by kernel launches.

    ``types``: memref types of the inputs, then of the outputs, offsets included. Three forms are tried in
    order: scripts for matmuls, or a block per row; a thread per element; loops, of which each is a kernel.
    Raises CandidateError for a fusion that none of the three can compute.
    """
    try:
        return _function_of(place, types, lambda views: _launch(fusion, views, place))
    except CandidateError as error:
        _erase(place)
        first = error.reason
    try:
        kernels = _function_of(place, types, lambda views: _launch_elements(fusion, views))
        return FusionKernels(kernels.function, first)
    except CandidateError as error:
        _erase(place)
        return FusionKernels(_as_loops(fusion, types, place), f"{first}; {error.reason}")


def _launch(fusion: Fusion, views: Sequence[Value], place: KernelPlace) -> str:
    named = fusion_function(fusion, views, is_generalized=False)
    if fusion.kind == CONTRACTION and matmuls_of(named, place.scripts.math):
        refusal = launch_matmuls(named, place)
        if refusal is None:
            return ""
        return refusal.text
    function = fusion_function(fusion, views, is_generalized=True)
    if has_rows(function):
        launch_rows(function)
        return ""
    return _launch_elements(fusion, views)


def _launch_elements(fusion: Fusion, views: Sequence[Value]) -> str:
    launch_elements(fusion_function(fusion, views, is_generalized=True))
    return ""


def _function_of(
    place: KernelPlace, types: Sequence[ir.Type], build: Callable[[Sequence[Value]], str]
) -> FusionKernels:
    with ir.InsertionPoint(place.module.body), ir.Location.unknown():
        function = private_function(place.name, ir.FunctionType.get(list(types), []))
        block = function.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        with ir.InsertionPoint(block):
            reason = build(list(block.arguments))
            create("func.return")
    return FusionKernels(function, reason)


def _erase(place: KernelPlace) -> None:
    for op in walk(place.module, "func.func"):
        if name_of(op) == place.name:
            op.erase()


def _as_loops(fusion: Fusion, types: Sequence[ir.Type], place: KernelPlace) -> Op:
    module = parse(fusion.text, "fusion")
    function = module.body.operations[0].operation
    assert_indirect_indices(function)
    for argument, type_ in zip(function.regions[0].blocks[0].arguments, types, strict=True):
        argument.set_type(type_)
    sync_function_type(function)
    function.attributes["sym_name"] = ir.StringAttr.get(place.name)
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    run_passes(module, BUFFERIZE)
    with ir.InsertionPoint(place.module.body):
        return module.body.operations[0].operation.clone()


@dataclass(frozen=True)
class HostOfFusions:
    """A program of fusions as a host function, whose work is launches of kernels.

    Weights, and temporary buffers with padding, which is written once, are arguments that stay on the device.

        func.func @main(%x: memref<4x8xf32>, %w: memref<8x16xf32> {tuner.device}) -> memref<4x16xf32> {
          %t = memref.alloc() : memref<64xf32>
          %v = memref.reinterpret_cast %t to offset: [0], sizes: [4, 16], strides: [16, 1] : ...
          <launches of fusion 0, of %x, %w, %v>
          %r = memref.alloc() : memref<4x16xf32>
          <launches of fusion 1, of %v, %r>
          return %r : memref<4x16xf32>
        }
    """

    payload: ProgramPayload
    resident: tuple[Buffer, ...]  # of the function's last arguments
    reasons: tuple[str, ...]  # one for each fusion: that of its ``FusionKernels``


def host_of_fusions(
    program: FusedProgram, entry: str, chip: Chip, script_of: ScriptOf, math: str = IEEE
) -> HostOfFusions:
    """Returns a program of fusions as a host function with kernel launches, in the current MLIR context.

    ``script_of`` returns the script of a matmul; None where no strategy supports it. ``math``: how f32 is
    multiplied, a key of ``MATH``. Raises CandidateError for a fusion that cannot be converted to kernels.
    """
    module = ir.Module.create()
    resident = tuple(filter(is_resident, program.buffers))
    reasons: list[str] = []
    with ir.Location.unknown():
        function = _empty_function(module, entry, program, resident)
        scripts = ScriptKernels(module, chip, script_of, math)
        known: dict[tuple[str, tuple[str, ...]], tuple[str, str]] = {}
        block = function.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            memory = _memory(program, list(block.arguments))
            for index, fusion in enumerate(program.fusions):
                views = [_view(view, memory) for view in (*fusion.inputs, *fusion.outputs)]
                key = (fusion.text, tuple(str(view.type) for view in views))
                if key not in known:
                    place = KernelPlace(scripts, f"fusion{index}")
                    launches = add_fusion(fusion, types_of(views), place)
                    known[key] = (place.name, launches.reason)
                name, reason = known[key]
                create("func.call", [], views, callee=ir.FlatSymbolRefAttr.get(name))
                reasons.append(reason)
            results = [at for at, buffer in enumerate(program.buffers) if buffer.owner == RESULT]
            results.sort(key=lambda at: program.buffers[at].number)
            create("func.return", [], [memory[at] for at in results])
    run_passes(module, INLINE)
    used = set(map(module_of, walk(module, "gpu.launch_func")))
    for holder in walk(module, "gpu.module"):  # unused ones are from attempts of ``add_fusion`` that failed
        if name_of(holder) not in used:
            holder.erase()
    return HostOfFusions(ProgramPayload(module, entry), resident, tuple(reasons))


def is_resident(buffer: Buffer) -> bool:
    """Returns whether a buffer stays on the device between calls: a weight, or a temporary with padding."""
    return buffer.owner == WEIGHT or (buffer.owner == TEMPORARY and buffer.padding is not None)


def _empty_function(module: ir.Module, entry: str, program: FusedProgram, resident: Sequence[Buffer]) -> Op:
    kinds = list(map(_memref, (*program.arguments, *types_of(resident))))
    results = list(map(_memref, program.results))
    marks = [ir.DictAttr.get({})] * len(program.arguments)
    marks += [ir.DictAttr.get({DEVICE_ATTRIBUTE: ir.UnitAttr.get()})] * len(resident)
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(entry),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, results)),
                "arg_attrs": ir.ArrayAttr.get(marks),
            },
            regions=1,
        )
    function.regions[0].blocks.append(*kinds, arg_locs=[ir.Location.unknown()] * len(kinds))
    return function


def _memory(program: FusedProgram, arguments: Sequence[Value]) -> list[Value]:
    resident = iter(arguments[len(program.arguments) :])
    memory = []
    for buffer in program.buffers:
        if buffer.owner == ARGUMENT:
            memory.append(arguments[buffer.number])
        else:
            memory.append(next(resident) if is_resident(buffer) else allocate(_memref(buffer.type)))
    return memory


def _view(view: View, memory: Sequence[Value]) -> Value:
    whole = memory[view.buffer]
    type_ = _memref(view.type)
    if view.offset or not view.is_contiguous:  # a contiguous view at offset 0 has no layout
        layout = ir.StridedLayoutAttr.get(view.offset, list(view.strides))
        type_ = ir.MemRefType.get(type_.shape, type_.element_type, layout=layout)
    if type_ == whole.type:
        return whole
    return reinterpreted(whole, type_)


def _memref(type_: TensorType) -> ir.MemRefType:
    return ir.MemRefType.get(list(type_.shape), ir.Type.parse(type_.element))


def compile_for_device(
    program: FusedProgram, entry: str, target: DeviceTarget, script_of: ScriptOf
) -> DeviceProgram:
    """Compiles a program of fusions for a device, in the current MLIR context; returns code and signature.

    Weights on the device have no contents yet. ``script_of`` returns the script of a matmul; None where no
    strategy supports it. Raises CandidateError where a fusion does not compile.
    """
    host = host_of_fusions(program, entry, target.chip, script_of, target.math)
    launch_loops(host.payload)
    free_after_last_use(host.payload.function)
    compiled = lower_device_program(
        host.payload.module, entry, target.chip, target.options, target.assemble, is_checked=target.is_checked
    )
    fusions = zip(program.fusions, host.reasons, strict=True)
    return replace(
        compiled.with_resident(tuple(map(_resident, host.resident))),
        fusions=tuple(DeviceFusion(fusion.kind, fusion.ops, reason) for fusion, reason in fusions),
    )


def _resident(buffer: Buffer) -> ResidentBuffer:
    type_ = BufferType(buffer.type.element, buffer.type.shape)
    if buffer.owner == WEIGHT:
        return ResidentBuffer(type_, None, is_written=False, weight=buffer.number)
    assert buffer.padding is not None
    padding = np.array(buffer.padding).astype(DTYPES[buffer.type.element])
    return ResidentBuffer(type_, np.full(buffer.type.shape, padding).tobytes(), is_written=True)
