"""Makes a host function of a program of groups, whose work is launches of kernels.

Arguments are the program's, then the buffers that stay on the device: weights, and temporary buffers with
padding, whose padding is written once. Other temporary buffers are allocated in each call.

    func.func @main(%x: memref<4x8xf32>, %w: memref<8x16xf32> {tuner.device}) -> memref<4x16xf32> {
      %t = memref.alloc() : memref<64xf32>
      %v = memref.reinterpret_cast %t to offset: [0], sizes: [4, 16], strides: [16, 1] : ...
      <launches of group 0, of %x, %w, %v>
      %r = memref.alloc() : memref<4x16xf32>
      <launches of group 1, of %v, %r>
      return %r : memref<4x16xf32>
    }
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.chips import Chip
from tuner.core.grouped_program import (
    ARGUMENT,
    RESULT,
    TEMPORARY,
    WEIGHT,
    Buffer,
    GroupedProgram,
    TensorType,
    View,
)
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.building import create, reinterpreted
from tuner.mlir.rewrite.launch_operands import module_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk
from tuner.programs.device_groups.group_kernels import add_group
from tuner.programs.device_groups.script_kernels import KernelPlace, ScriptKernels, ScriptOf
from tuner.programs.lower.device_memory.host_to_device_memory import DEVICE_ATTRIBUTE
from tuner.programs.lower.matmuls.packed_views import allocate
from tuner.programs.lower.read_program import ProgramPayload
from tuner.programs.op_groups.views import is_contiguous

INLINE = "builtin.module(inline,symbol-dce)"


@dataclass(frozen=True)
class HostOfGroups:
    """A program of groups as a function with launches and loops, and why groups are not one kernel each."""

    payload: ProgramPayload
    resident: tuple[Buffer, ...]  # of the function's last arguments
    reasons: tuple[str, ...]  # one for each group; "": it is one kernel


def host_of_groups(program: GroupedProgram, entry: str, chip: Chip, script_of: ScriptOf) -> HostOfGroups:
    """Returns a program of groups as a host function with launches, in the current MLIR context.

    Args:
        program: the groups.
        entry: the name of the function.
        chip: the GPU architecture.
        script_of: returns the script of a matmul; None where no strategy supports it.

    Raises CandidateError where a group cannot be computed.
    """
    module = ir.Module.create()
    resident = tuple(buffer for buffer in program.buffers if is_resident(buffer))
    reasons: list[str] = []
    with ir.Location.unknown():
        function = _empty_function(module, entry, program, resident)
        scripts = ScriptKernels(module, chip, script_of)
        known: dict[tuple[str, tuple[str, ...]], tuple[str, str]] = {}
        block = function.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            memory = _memory(program, resident, list(block.arguments))
            for number, group in enumerate(program.groups):
                views = [_view(each, memory) for each in (*group.inputs, *group.outputs)]
                key = (group.text, tuple(str(each.type) for each in views))
                if key not in known:
                    place = KernelPlace(scripts, f"group{number}")
                    made = add_group(group, [each.type for each in views], place)
                    known[key] = (place.name, made.reason)
                name, reason = known[key]
                create("func.call", [], views, callee=ir.FlatSymbolRefAttr.get(name))
                reasons.append(reason)
            create("func.return", [], _results(program, memory))
    run_passes(module, INLINE)
    _drop_unused_kernels(module)
    return HostOfGroups(ProgramPayload(module, entry), resident, tuple(reasons))


def _drop_unused_kernels(module: ir.Module) -> None:
    """Removes the kernels of groups that could not be completed, in place."""
    used = {module_of(launch) for launch in walk(module, "gpu.launch_func")}
    for holder in walk(module, "gpu.module"):
        if name_of(holder) not in used:
            holder.erase()


def is_resident(buffer: Buffer) -> bool:
    """Returns whether a buffer is on the device from call to call."""
    return buffer.owner == WEIGHT or (buffer.owner == TEMPORARY and buffer.padding is not None)


def _empty_function(module: ir.Module, entry: str, program: GroupedProgram, resident: Sequence[Buffer]) -> Op:
    kinds = [_memref(each) for each in (*program.arguments, *(buffer.type for buffer in resident))]
    results = [_memref(each) for each in program.results]
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


def _memory(
    program: GroupedProgram, resident: Sequence[Buffer], arguments: Sequence[Value]
) -> tuple[Value, ...]:
    """Returns the memref of each buffer; creates the allocations."""
    kept = dict(zip(map(id, resident), arguments[len(program.arguments) :], strict=True))
    found = []
    for buffer in program.buffers:
        if buffer.owner == ARGUMENT:
            found.append(arguments[buffer.number])
        elif id(buffer) in kept:
            found.append(kept[id(buffer)])
        else:
            found.append(allocate(_memref(buffer.type)))
    return tuple(found)


def _results(program: GroupedProgram, memory: Sequence[Value]) -> list[Value]:
    numbered = {
        buffer.number: memory[at] for at, buffer in enumerate(program.buffers) if buffer.owner == RESULT
    }
    return [numbered[number] for number in range(len(program.results))]


def _view(view: View, memory: Sequence[Value]) -> Value:
    """Creates the memref of a view; the buffer itself where the view is all of it, in its shape."""
    whole = memory[view.buffer]
    kind = view_type(view)
    return whole if kind == whole.type else reinterpreted(whole, kind)


def view_type(view: View) -> ir.MemRefType:
    """Returns the memref type of a view, with its offset; a contiguous one at offset 0 has no layout."""
    element = ir.Type.parse(view.type.element)
    shape = list(view.type.shape)
    plain = ir.MemRefType.get(shape, element)
    if view.offset == 0 and is_contiguous(view):
        return plain
    layout = ir.StridedLayoutAttr.get(view.offset, list(view.strides))
    return ir.MemRefType.get(shape, element, layout=layout)


def _memref(kind: TensorType) -> ir.MemRefType:
    return ir.MemRefType.get(list(kind.shape), ir.Type.parse(kind.element))
