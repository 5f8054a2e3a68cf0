"""Checks of a user's program that no MLIR pass makes: calls, names, memory spaces, unlowered linalg."""

import math
import re
from collections.abc import Mapping

from tuner.core.element_types import NUMBER_TYPES
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Attribute, Op, Type, WalkResult, ir
from tuner.mlir.cpu.jit_guards import RESOLVABLE
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.runner_names import RUNNER_FUNCTIONS
from tuner.mlir.rewrite.located_error import location_of, unsupported
from tuner.mlir.rewrite.symbols import callee_of, name_of
from tuner.mlir.rewrite.walking import walk, walk_ops, walk_where
from tuner.programs.lower.entry import defined_functions
from tuner.programs.lower.resources import SECTION, resource_sizes

NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$]*")  # of a kernel: PTX ISA, identifiers; . becomes $
# A constant whose data follow the module: 'dense_resource<name>' in it, and 'name: "0x...' after it
RESOURCE = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[^>\s]+)>')
RESOURCE_ATTRIBUTES = (("arith.constant", "value"), ("memref.global", "initial_value"))  # op, attribute
# Measured on one core of a Zen 5: 20,000 operations take 40 s (elementwise) to 90 s (products) to compile as
# groups. As a whole LLVM's time grows with their square: 1,000 take 35 s, 2,000 two minutes.
OPERATIONS_LIMIT, WHOLE_LIMIT = 20_000, 2_000
HOLDERS = ("builtin.module", "func.func", "func.return", "gpu.module", "gpu.func", "gpu.return")
RUNTIME = "mgpu"  # prefix of the runtime functions that host code calls


def require_few_operations(
    module: ir.Module, limit: int = OPERATIONS_LIMIT, *, is_whole: bool = False
) -> None:
    """Raises CandidateError(BIND) for a program of more operations than compile in about two minutes.

    Those in a linalg operation do not count. ``is_whole``: only operations count that become loops.
    """
    found = 0

    def visit(op: Op) -> WalkResult:
        nonlocal found
        is_linalg = op.name.startswith("linalg.")
        found += (is_linalg or _is_elementwise(op)) if is_whole else op.name not in HOLDERS
        return ir.WalkResult.SKIP if is_linalg else ir.WalkResult.ADVANCE

    walk_ops(module, visit, is_pre_order=True)
    if found > limit:
        what = "operations on tensors in a program that is compiled as a whole" if is_whole else "operations"
        raise CandidateError(
            Stage.BIND, f"payload: found {found} {what}, allowed {limit}: divide it into several programs"
        )


def _is_elementwise(op: Op) -> bool:
    """Returns whether an operation computes a tensor of tensors, element by element."""
    is_computed = op.name.startswith(("arith.", "math.")) and bool(list(op.operands))
    return is_computed and any(isinstance(each.type, ir.ShapedType) for each in op.results)


def require_resources(module: ir.Module, text: str) -> None:
    """Raises CandidateError(BIND) if a ``dense_resource`` constant has no data, or data of another size.

    The data follow the module in its text. torch-mlir prints large constants without their data by default;
    MLIR compares sizes only where it translates to LLVM IR, without naming the constant.
    """
    names = dict.fromkeys(RESOURCE.findall(text.rpartition(SECTION)[0] or text))
    if not names:
        return
    sizes = resource_sizes(text)
    for name in names:
        if name not in sizes:
            raise CandidateError(
                Stage.BIND,
                f"payload: dense_resource<{name}> has no data after the module: "
                "print it with large_elements_limit=None",
            )
    for op_name, attribute in RESOURCE_ATTRIBUTES:
        for op in walk(module, op_name):
            constant = op.attributes.get(attribute)
            if constant is not None and not isinstance(constant, ir.DenseElementsAttr):
                _require_size(constant, sizes)


def _require_size(constant: Attribute, sizes: Mapping[str, int]) -> None:
    """Raises CandidateError(BIND) for a ``dense_resource`` whose data have not the bytes of its type."""
    named = RESOURCE.match(str(constant))
    if named is None:
        return
    kind = ir.ShapedType(constant.type)
    number = NUMBER_TYPES.get(str(kind.element_type))
    if number is None:
        return
    count, found = math.prod(kind.shape), sizes[named[1]]
    allowed = count * number.bytes
    if found != allowed and (number.bits > 1 or found != -(-count // 8)):  # booleans are bytes or bits
        line = f"found {found} bytes, allowed {allowed} of {kind}"
        raise CandidateError(Stage.BIND, f"payload: the data of dense_resource<{named[1]}>: {line}")


def reject_calls(module: ir.Module) -> None:
    """Raises CandidateError(BIND) for recursion, and for calls of functions without a body.

    Neither can be inlined. MLIR's runner functions, such as ``printMemrefF32``, may have no body. Recursion
    is a cycle of the call graph: the functions that remain after Kahn's topological sort.
    """
    functions = defined_functions(module)
    callees = {name_of(function): _callees(function) for function in functions}
    whys = {
        name: "which has no body"
        for called in callees.values()
        for name in called - callees.keys() - RUNNER_FUNCTIONS
    }
    unsorted = {name: called & callees.keys() for name, called in callees.items()}
    while leaves := [name for name, called in unsorted.items() if not called]:
        for name in leaves:
            del unsorted[name]
        unsorted = {name: called & unsorted.keys() for name, called in unsorted.items()}
    whys |= dict.fromkeys((name for called in unsorted.values() for name in called), "which calls itself")
    allowed = "calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32"
    calls = {callee_of(call): call for function in functions for call in walk(function, "func.call")}
    for name in sorted(whys):
        raise _refused(calls[name], f"a call of @{name}, {whys[name]}", allowed)


def require_names(module: ir.Module) -> None:
    """Raises CandidateError(BIND) for a function or kernel name that PTX rejects or the runtime uses."""
    for function in [each for kind in ("func.func", "gpu.func") for each in walk(module, kind)]:
        name = name_of(function)
        if not NAME.fullmatch(name):
            raise _refused(function, f"the name {name!r}", "letters, digits, _ . $")
        if name in RESOLVABLE or name.startswith(RUNTIME):
            raise _refused(function, f"the name {name!r}, which is the runtime's", "others")


def require_default_memory(function: Op) -> None:
    """Raises CandidateError(BIND) for a memref outside of kernels that has a memory space.

    Host code has one address space.
    """
    found: list[tuple[Op, Type]] = []

    def visit(op: Op) -> WalkResult:
        if op.name == "gpu.launch":
            return ir.WalkResult.SKIP
        types = [each.type for each in op.results]
        types += [each.type for region in op.regions for block in region.blocks for each in block.arguments]
        found.extend((op, each) for each in types if is_buffer(each) and each.memory_space is not None)
        return ir.WalkResult.ADVANCE

    walk_ops(function, visit, is_pre_order=True)
    if found:
        raise _refused(found[0][0], f"{found[0][1]} outside of kernels", "the default memory space")


def reject_linalg(function: Op) -> None:
    """Raises CandidateError(COMPILE) if a function still has a linalg operation after lowering to loops.

    No pass of MLIR lowers some operations, such as softmax.
    """
    found = walk_where(function, lambda op: op.name.startswith("linalg."))
    if found:
        raise unsupported(found[0], "no loops for it", "linalg ops that become loops")


def _refused(op: Op, found: str, allowed: str) -> CandidateError:
    return CandidateError(
        Stage.BIND, f"payload: {op.name} {location_of(op)}: found {found}, allowed {allowed}"
    )


def _callees(function: Op) -> set[str]:
    return {callee_of(call) for call in walk(function, "func.call")}
