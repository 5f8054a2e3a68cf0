"""Finds the entry function of a user's module, checks the program, and reads its signature."""

import math
import re
from collections.abc import Mapping
from itertools import chain

from tuner.core.device_programs import BufferType, ScalarType, ValueType
from tuner.core.dtypes import NUMBER_TYPES
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Attribute, Op, Type, WalkResult, ir
from tuner.mlir.cpu.lowering import RESOLVABLE
from tuner.mlir.effects.aliases import is_buffer
from tuner.mlir.effects.memory_effects import effect_of, is_passed_by_value
from tuner.mlir.effects.runner_signatures import RUNNER_FUNCTIONS
from tuner.mlir.ir.reading import (
    callee_of,
    function_type,
    location_of,
    name_of,
    types_of,
    unsupported,
    walk,
    walk_ops,
    walk_where,
)
from tuner.mlir.ir.resources import RESOURCE, SplitPayload, resource_sizes

MAIN = "main"  # the function that mlir-runner runs
NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$]*")  # of a function: PTX ISA, identifiers; . becomes $
RESOURCE_ATTRIBUTES = (("arith.constant", "value"), ("memref.global", "initial_value"))  # op, attribute
# Measured on one core of a Zen 5: 20,000 operations take 40 s (elementwise) to 90 s (products) to compile as
# fusions. As a whole LLVM's time grows with their square: 1,000 take 35 s, 2,000 two minutes.
OPERATIONS_LIMIT = 20_000
WHOLE_LIMIT = 2_000
HOLDERS = ("builtin.module", "func.func", "func.return", "gpu.module", "gpu.func", "gpu.return")
FLOAT = re.compile(r"(?:\b|[0-9?*\]]x)([bt]?f[0-9]\w*)")  # a float's name in a printed type
RUNTIME = "mgpu"  # prefix of the runtime functions that host code calls
LINALG_MATH = ("linalg.exp", "linalg.log", "linalg.tanh", "linalg.erf")


def entry_of(module: ir.Module, entry: str | None) -> str:
    """Returns the name of the function to run: ``entry``, else a public ``main``, else the only public one.

    Raises CandidateError(BIND) if no function with a body is named ``entry``, or the choice is not clear.
    """
    functions = defined_functions(module)
    visibilities = [function.attributes.get("sym_visibility") for function in functions]
    public = [
        name_of(function)
        for function, visibility in zip(functions, visibilities, strict=True)
        if visibility is None or ir.StringAttr(visibility).value == "public"
    ]
    listed = ", ".join(public) or "none"
    if entry is not None:
        if entry not in map(name_of, functions):
            raise CandidateError(Stage.BIND, f"payload: entry: found {entry!r}, allowed {listed}")
        return entry
    if MAIN in public:
        return MAIN
    if len(public) != 1:
        allowed = f"one, or one that is named as the entry or {MAIN}"
        raise CandidateError(Stage.BIND, f"payload: public functions: found {listed}, allowed {allowed}")
    return public[0]


def defined_functions(module: ir.Module) -> list[Op]:
    """Returns the ``func.func`` operations of a module that have a body, in order."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return [function for function in functions if len(function.regions[0].blocks) > 0]


def function_named(module: ir.Module, name: str) -> Op:
    """Returns the ``func.func`` of this name, which must exist and have a body."""
    return next(function for function in defined_functions(module) if name_of(function) == name)


def hide_others(module: ir.Module, entry: str) -> None:
    """Makes ``entry`` public and other functions with a body private, so that inlining removes them.

    Changes the module in place.
    """
    for function in defined_functions(module):
        if name_of(function) != entry:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        elif "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]


def require_few_operations(
    module: ir.Module, limit: int = OPERATIONS_LIMIT, *, is_whole: bool = False
) -> None:
    """Raises CandidateError(BIND) for a module of more than ``limit`` operations.

    Operations inside of linalg operations do not count. If ``is_whole``, only operations that become loops
    count: linalg, and elementwise operations on arrays.
    """
    count = 0

    def visit(op: Op) -> WalkResult:
        nonlocal count
        is_linalg = op.name.startswith("linalg.")
        is_computed = op.name.startswith(("arith.", "math.")) and bool(list(op.operands))
        is_elementwise = is_computed and any(isinstance(result.type, ir.ShapedType) for result in op.results)
        if is_whole:
            counts = is_linalg or is_elementwise
        else:
            counts = op.name not in HOLDERS
        count += int(counts)
        if is_linalg:
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    walk_ops(module, visit, is_pre_order=True)
    if count > limit:
        if is_whole:
            what = "operations on tensors in a program that is compiled as a whole"
        else:
            what = "operations"
        raise CandidateError(
            Stage.BIND, f"payload: found {count} {what}, allowed {limit}: divide it into several programs"
        )


def require_resources(module: ir.Module, payload: SplitPayload) -> None:
    """Raises CandidateError(BIND) if a ``dense_resource`` constant has no data, or data of another size.

    torch-mlir prints large constants without their data by default; MLIR compares sizes only where it
    translates to LLVM IR, without naming the constant.
    """
    names = dict.fromkeys(RESOURCE.findall(payload.text))
    if not names:
        return
    sizes = resource_sizes(payload.resources)
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
    named = RESOURCE.match(str(constant))
    if named is None:
        return
    type_ = ir.ShapedType(constant.type)
    number = NUMBER_TYPES.get(str(type_.element_type))
    if number is None:
        return
    count = math.prod(type_.shape)
    size = sizes[named[1]]
    allowed = count * number.bytes
    if size != allowed and (number.bits > 1 or size != -(-count // 8)):  # booleans are bytes or bits
        line = f"found {size} bytes, allowed {allowed} of {type_}"
        raise CandidateError(Stage.BIND, f"payload: the data of dense_resource<{named[1]}>: {line}")


def reject_calls(module: ir.Module) -> None:
    """Raises CandidateError(BIND) for calls that cannot be inlined: recursion, and functions without a body.

    Calls of MLIR's runner functions, such as ``printMemrefF32``, are allowed. Recursion is found by Kahn's
    topological sort of the calls from both ends: functions that it leaves are in cycles, or between two
    cycles.
    """
    functions = defined_functions(module)
    callees = {name_of(function): set(map(callee_of, walk(function, "func.call"))) for function in functions}
    called_anywhere = set().union(*callees.values())
    whys = dict.fromkeys(called_anywhere - callees.keys() - RUNNER_FUNCTIONS, "which has no body")
    left = {name: called & callees.keys() for name, called in callees.items()}
    while ends := {name for name in left if not left[name]} | left.keys() - set().union(*left.values()):
        left = {name: called - ends for name, called in left.items() if name not in ends}
    whys |= dict.fromkeys(left, "which calls itself, or is between functions that do")
    allowed = "calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32"
    all_calls = chain.from_iterable(walk(function, "func.call") for function in functions)
    calls = {callee_of(call): call for call in all_calls}
    if whys:
        name = min(whys)
        raise _refused(calls[name], f"a call of @{name}, {whys[name]}", allowed)


def require_names(module: ir.Module) -> None:
    """Raises CandidateError(BIND) for the name of a function or kernel that cannot be used.

    Such a name is not valid in PTX, is used by the runtime, or is a C function that the program calls.
    """
    operations = walk_where(module, lambda op: op.name.startswith(("math.", *LINALG_MATH)))
    c_functions = {_c_function(op) for op in operations if list(op.results)}
    for function in (*walk(module, "func.func"), *walk(module, "gpu.func")):
        name = name_of(function)
        if not NAME.fullmatch(name):
            raise _refused(function, f"the name {name!r}", "letters, digits, _ . $")
        if name in RESOLVABLE or name.startswith(RUNTIME):
            raise _refused(function, f"the name {name!r}, which is the runtime's", "others")
        if name in c_functions:
            raise _refused(function, f"the name {name!r} of a function of C that it calls", "others")


def _c_function(op: Op) -> str:
    """Returns the name of the C function for a math operation: "exp" for f64, "expf" for other types."""
    name = str(op.name).partition(".")[2].removesuffix("f")
    is_double = "f64" in str(op.results[0].type)
    if is_double:
        return name
    return f"{name}f"


def require_default_memory(function: Op) -> None:
    """Raises CandidateError(BIND) for a buffer with a memory space outside of kernels.

    Host code has one address space.
    """
    buffers: list[tuple[Op, Type]] = []

    def visit(op: Op) -> WalkResult:
        if op.name == "gpu.launch":
            return ir.WalkResult.SKIP
        types = types_of(op.results)
        for block in chain.from_iterable(region.blocks for region in op.regions):
            types += types_of(block.arguments)
        buffers.extend((op, type_) for type_ in types if is_buffer(type_) and type_.memory_space is not None)
        return ir.WalkResult.ADVANCE

    walk_ops(function, visit, is_pre_order=True)
    if buffers:
        raise _refused(buffers[0][0], f"{buffers[0][1]} outside of kernels", "the default memory space")


def reject_linalg(function: Op) -> None:
    """Raises CandidateError(COMPILE) if a linalg operation is left in a function, such as softmax.

    To be called after the passes that lower linalg to loops: every linalg operation is refused.
    """
    left = walk_where(function, lambda op: op.name.startswith("linalg."))
    if left:
        raise unsupported(left[0], "no loops for it", "linalg ops that become loops")


def reject_unknown_floats(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for the first operation on floats of a type that NUMBER_TYPES lacks.

    Such as tf32, f80, f128, and 8-bit floats other than f8E4M3FN and f8E5M2.
    """
    allowed = tuple(filter(FLOAT.fullmatch, NUMBER_TYPES))

    def unknown(op: Op) -> str:
        for value in (*op.operands, *op.results):
            found = FLOAT.search(str(value.type))
            if found is not None and found[1] not in allowed:
                return found[1]
        return ""

    for op in walk_where(module, lambda op: unknown(op) != ""):
        raise unsupported(op, unknown(op), ", ".join(allowed))


def _refused(op: Op, actual: str, allowed: str) -> CandidateError:
    return CandidateError(
        Stage.BIND, f"payload: {op.name} {location_of(op)}: found {actual}, allowed {allowed}"
    )


def arguments_of(function: Op) -> tuple[ValueType, ...]:
    """Returns the types of the arguments of a ``func.func``, in a form that needs no MLIR.

    Raises CandidateError(COMPILE) for types other than numbers and row-major memrefs with offset 0; strides
    and an offset that are dynamic are allowed.
    """
    kinds = list(function_type(function).inputs)
    for type_ in kinds:
        if isinstance(type_, ir.MemRefType):
            _require_row_major(type_)
    return tuple(_value_type(type_, "argument") for type_ in kinds)


def results_of(function: Op) -> tuple[ValueType, ...]:
    """Returns the types of a ``func.func``'s results, in a form that needs no MLIR.

    Raises CandidateError(COMPILE) for other types than memrefs and numbers.
    """
    return tuple(_value_type(type_, "result") for type_ in function_type(function).results)


def written_arguments(function: Op) -> tuple[bool, ...]:
    """Returns, per argument of a host function, True if it is a memref that the function may write."""
    arguments = function.regions[0].blocks[0].arguments
    return tuple(is_buffer(argument.type) and effect_of(argument).writes for argument in arguments)


def _require_row_major(type_: Type) -> None:
    strides, offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    expected: int | None = 1
    for number in reversed(range(type_.rank)):
        if strides[number] not in (unknown, expected):
            raise CandidateError(
                Stage.COMPILE, f"payload: argument: found {type_}, allowed rows that lie without gaps"
            )
        if expected is None or type_.is_dynamic_dim(number):
            expected = None
        else:
            expected = expected * type_.shape[number]
    if offset not in (unknown, 0):
        raise CandidateError(Stage.COMPILE, f"payload: argument: found {type_}, allowed an offset of 0")


def _value_type(type_: Type, what: str) -> ValueType:
    if isinstance(type_, ir.MemRefType):
        shape = tuple(None if type_.is_dynamic_dim(n) else type_.shape[n] for n in range(type_.rank))
        return BufferType(str(type_.element_type), shape)
    if is_passed_by_value(type_) and not isinstance(type_, ir.VectorType | ir.ComplexType):
        return ScalarType(str(type_))
    raise CandidateError(
        Stage.COMPILE, f"payload: {what}: found {type_}, allowed memrefs, tensors and numbers"
    )
