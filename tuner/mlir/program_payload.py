"""A user's whole program: MLIR text with one function to run, brought to buffers that are freed.

Tensors become memrefs, results included; arguments that were tensors are never written. Calls are inlined.
"""

import re
from dataclasses import dataclass
from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.guards import RESOLVABLE
from tuner.mlir.interpreter import first_complaint
from tuner.mlir.ops.dialect import walk, walk_where
from tuner.mlir.padded_views import set_argument_attribute
from tuner.mlir.passes.buffer_roots import is_buffer
from tuner.mlir.passes.gpux import parse_with_gpux, take_stream_from_caller
from tuner.mlir.passes.own_fills import copy_shared_fills
from tuner.mlir.passes.own_yields import copy_yields, yields_own_memory
from tuner.mlir.symbols import name_of

UNUSED = "builtin.module(symbol-dce)"
INLINE = "builtin.module(inline,symbol-dce)"
ELEMENTWISE = "builtin.module(convert-elementwise-to-linalg)"  # of arith and math on tensors
BUFFERS = (
    "one-shot-bufferize{bufferize-function-boundaries"
    " function-boundary-type-conversion=identity-layout-map},canonicalize,cse"
)
BUFFERIZE = f"builtin.module(eliminate-empty-tensors,{BUFFERS})"
BUFFERIZE_COPIES = f"builtin.module({BUFFERS})"  # the elimination would undo what keeps copies apart
DEALLOCATE = (
    "builtin.module(func.func(buffer-loop-hoisting),buffer-deallocation-pipeline,"
    "convert-bufferization-to-memref,canonicalize,cse)"
)
NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$]*")  # of a kernel: PTX ISA, identifiers; . becomes $
RUNTIME = "mgpu"  # begins the names of what host code calls
UNKNOWN_EFFECTS = ("gpu.launch_func", "gpux.launch_func", "gpu.barrier")  # to upstream's deallocation
BY_ADDRESS = "memref.extract_aligned_pointer_as_index"
YIELDS_ANOTHER = "is not equivalent to the corresponding iter bbArg"
TENSORS = ir.RankedTensorType | ir.UnrankedTensorType


@dataclass(frozen=True)
class ProgramPayload:
    """A module in the current context whose function ``entry`` works on memrefs alone."""

    module: ir.Module
    entry: str

    @property
    def function(self) -> Any:
        """Returns the function that is run."""
        return _function(self.module, self.entry)


def read_program(text: str, entry: str | None = None) -> ProgramPayload:
    """Parses and bufferizes. Raises CandidateError: BIND for no program, COMPILE for what does not fit.

    ``entry`` may be left out where the module has one public function.
    """
    module = parse_with_gpux(text, "payload")
    name = entry_of(module, entry)
    take_stream_from_caller(_function(module, name))
    _hide_others(module, name)
    run_passes(module, UNUSED)
    _reject_calls(module)
    run_passes(module, INLINE)
    _require_names(module)
    _require_default_memory(_function(module, name))
    if _has_tensors(module):
        _protect_arguments(_function(module, name))
        run_passes(module, ELEMENTWISE)
        copy_shared_fills(_function(module, name))
        module = _bufferized(module, name)
    elif _is_ours_to_free(_function(module, name)):
        module = _freed(module)
    return ProgramPayload(module, name)


def entry_of(module: ir.Module, entry: str | None) -> str:
    """Returns the name of the function to run. Raises CandidateError(BIND) when it cannot be told."""
    public = [name_of(function) for function in _functions(module) if _is_public(function)]
    if entry is not None:
        if entry not in [name_of(function) for function in _functions(module)]:
            found = ", ".join(public) or "none"
            raise CandidateError(Stage.BIND, f"payload: entry: found {entry!r}, allowed {found}")
        return entry
    if len(public) != 1:
        found = ", ".join(public) or "none"
        raise CandidateError(
            Stage.BIND, f"payload: public functions: found {found}, allowed one, or one named as the entry"
        )
    return public[0]


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Runs a pipeline in place. Raises CandidateError(COMPILE) with the compiler's first complaint."""
    try:
        passmanager.PassManager.parse(pipeline).run(module.operation)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, first_complaint(error)) from error


def reject_linalg(payload: ProgramPayload) -> None:
    """Raises CandidateError for a linalg op that is no loop, such as softmax: nothing later lowers it."""
    found = walk_where(payload.function, lambda op: op.name.startswith("linalg."))
    if found:
        raise CandidateError(
            Stage.COMPILE, f"payload: found {found[0].name}, allowed linalg ops that become loops"
        )


def _functions(module: ir.Module) -> list[Any]:
    """Returns the functions that have a body."""
    found = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return [function for function in found if len(function.regions[0].blocks) > 0]


def _function(module: ir.Module, name: str) -> Any:
    return next(function for function in _functions(module) if name_of(function) == name)


def _is_public(function: Any) -> bool:
    visibility = function.attributes.get("sym_visibility")
    return visibility is None or ir.StringAttr(visibility).value == "public"


def _hide_others(module: ir.Module, entry: str) -> None:
    """Makes every other function private, so that inlining leaves nothing of it."""
    for function in _functions(module):
        if name_of(function) != entry:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        elif "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]


def _reject_calls(module: ir.Module) -> None:
    """Raises CandidateError(BIND) for calls that lead nowhere, or in a circle: inlining would not end."""
    callees = {name_of(function): _callees(function) for function in _functions(module)}
    whys = {name: "which has no body" for called in callees.values() for name in called - callees.keys()}
    open_names = {name: called & callees.keys() for name, called in callees.items()}
    while ended := [name for name, called in open_names.items() if not called]:
        for name in ended:
            del open_names[name]
        open_names = {name: called & open_names.keys() for name, called in open_names.items()}
    whys |= dict.fromkeys((name for called in open_names.values() for name in called), "which calls itself")
    for name in sorted(whys):
        raise CandidateError(
            Stage.BIND, f"payload: found a call of @{name}, {whys[name]}, allowed calls that can be inlined"
        )


def _require_names(module: ir.Module) -> None:
    """Raises CandidateError(BIND) for names that the linker or PTX cannot have, or that code of ours has."""
    names = [name_of(each) for kind in ("func.func", "gpu.func") for each in walk(module, kind)]
    for name in names:
        if not NAME.fullmatch(name):
            raise CandidateError(
                Stage.BIND, f"payload: function name: found {name!r}, allowed letters, digits, _ . $"
            )
        if name in RESOLVABLE or name.startswith(RUNTIME):
            raise CandidateError(
                Stage.BIND, f"payload: function name: found {name!r}, which is the runtime's, allowed others"
            )


def _require_default_memory(function: Any) -> None:
    """Raises CandidateError(BIND) for host memory in a memory space: host code has one kind of address."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "gpu.launch":
            return ir.WalkResult.SKIP
        kinds = [each.type for each in op.results]
        kinds += [each.type for region in op.regions for block in region.blocks for each in block.arguments]
        found.extend(kind for kind in kinds if is_buffer(kind) and kind.memory_space is not None)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    if found:
        raise CandidateError(
            Stage.BIND, f"payload: found {found[0]} outside of kernels, allowed the default memory space"
        )


def _callees(function: Any) -> set[str]:
    return {
        str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value) for call in walk(function, "func.call")
    }


def _has_tensors(module: ir.Module) -> bool:
    found: list[bool] = []

    def visit(op: Any) -> Any:
        kinds = [each.type for each in (*op.operands, *op.results)]
        kinds += [each.type for region in op.regions for block in region.blocks for each in block.arguments]
        if any(isinstance(kind, TENSORS) for kind in kinds):
            found.append(True)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return bool(found)


def _protect_arguments(function: Any) -> None:
    """Says of tensor arguments that they must not be written: a tensor is a value, the caller's stays."""
    for argument in function.regions[0].blocks[0].arguments:
        if isinstance(argument.type, TENSORS):
            no = ir.BoolAttr.get(False)
            set_argument_attribute(function, argument.arg_number, "bufferization.writable", no)


def _bufferized(module: ir.Module, name: str) -> ir.Module:
    """Returns the module on memrefs that are freed; where need be loops and branches yield copies.

    That is where upstream refuses what they yield, or would ask at run time by address whose it is.
    """
    copied = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))  # to keep the locations
    try:
        run_passes(module, BUFFERIZE)
        if not yields_own_memory(_function(module, name)):
            run_passes(module, DEALLOCATE)
            if not walk(module, BY_ADDRESS):
                return module
    except CandidateError as error:
        if YIELDS_ANOTHER not in error.reason:
            raise
    copy_yields(_function(copied, name))
    run_passes(copied, BUFFERIZE_COPIES)
    run_passes(copied, DEALLOCATE)
    return copied


def _freed(module: ir.Module) -> ir.Module:
    """Returns the module with deallocations, or as it is where they would depend on addresses at run time."""
    freed = ir.Module.parse(str(module))
    run_passes(freed, DEALLOCATE)
    return module if walk(freed, BY_ADDRESS) else freed


def _is_ours_to_free(function: Any) -> bool:
    """Tells whether a function has memory and frees none, so that its author leaves that to us.

    What it returns counts: a returned argument becomes a copy, which the caller may free.
    Raises CandidateError where upstream cannot tell what may be freed.
    """
    returned = [
        kind for kind in function.regions[0].blocks[0].operations[-1].operands if is_buffer(kind.type)
    ]
    if walk(function, "memref.dealloc") or not (returned or walk(function, "memref.alloc")):
        return False
    for name in UNKNOWN_EFFECTS:
        if walk(function, name):
            raise CandidateError(
                Stage.COMPILE,
                f"payload: found {name} and memory without memref.dealloc, allowed freed memory",
            )
    return True
