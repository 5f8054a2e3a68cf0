"""Memory effects of an op on the host, including its regions, on buffers that are defined outside of the op.

Takes ops of a host function before they are lowered. An op that is not listed may read and write each of its
memref operands. Not handled: ops through which a buffer's address escapes, and asynchronous device code; both
are errors.
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.buffer_roots import VIEWS, described
from tuner.mlir.effects.kernel_effects import EffectInstance
from tuner.mlir.effects.op_effects import ANYTHING, NO_MEMORY_EFFECT, NOTHING, Effect, effect_on_operand
from tuner.mlir.rewrite.walking import walk, walk_where

# Ops that allocate, forward or free memory, and neither read nor write it.
NO_READ_OR_WRITE = (
    VIEWS
    | NO_MEMORY_EFFECT
    | {"arith.select", "memref.alloc", "memref.alloca", "memref.get_global", "memref.dealloc", "gpu.dealloc"}
)
SHARED_MEMORY = frozenset({"gpu.alloc", "gpu.dealloc"})
# Ops after which this analysis cannot follow the address of a buffer.
ESCAPES = frozenset(
    {
        *("memref.extract_aligned_pointer_as_index", "builtin.unrealized_conversion_cast"),
        *("memref.realloc", "bufferization.to_tensor"),
    }
)


def host_effects(op: Op) -> tuple[EffectInstance, ...]:
    """Returns what an op on the host may do to each memref that it uses and that is defined outside of it.

    Every memref that is used inside of regions of the op counts as read and written, but for the operands of
    an op of linalg, whose effects are known. Memrefs that are neither read nor written are left out. Raises
    CandidateError(COMPILE) for an op through which the address of a memref escapes.
    """
    effects = [(value, ANYTHING) for value in _used_inside(op)]
    if not list(op.regions) or op.name.startswith("linalg."):
        own = set(op.operands)
        effects = [*_effects_of_operands(op), *(pair for pair in effects if pair[0] not in own)]
    return tuple(EffectInstance(value, effect) for value, effect in effects if effect != NOTHING)


def is_overwritten(op: Op, buffer: Value) -> bool:
    """Returns whether ``op`` is known to overwrite all of memref ``buffer`` without reading it.

    True only for a ``linalg.fill`` of the memref; False means that nothing is known.
    """
    return bool(op.name == "linalg.fill" and len(op.operands) == 2 and op.operands[1] == buffer)


def _effects_of_operands(op: Op) -> list[tuple[Value, Effect]]:
    found = [(number, value) for number, value in enumerate(op.operands) if is_buffer(value.type)]
    if op.name in ESCAPES and found:
        raise CandidateError(
            Stage.COMPILE,
            f"{described(found[0][1])}: found {op.name}, allowed operations that do not keep its address",
        )
    return [(value, _effect(op, number)) for number, value in found]


def _effect(op: Op, number: int) -> Effect:
    return NOTHING if op.name in NO_READ_OR_WRITE else effect_on_operand(op, number)


def _used_inside(op: Op) -> list[Value]:
    """Returns the memrefs that an op and its nested ops use and do not define.

    Raises CandidateError(COMPILE) for an op through which the address of a buffer escapes.
    """
    used: dict[Value, None] = {}
    made: set[Value] = set()
    for each in _with_nested(op):
        _effects_of_operands(each)  # for its error
        used.update(dict.fromkeys(value for value in each.operands if is_buffer(value.type)))
        made.update(() if each == op else each.results)
        made.update(value for region in each.regions for block in region.blocks for value in block.arguments)
    return [value for value in used if value not in made]


def reject_device_code(function: Op, structured: set[Op]) -> None:
    """Raises CandidateError(COMPILE) for GPU ops of a host function that the memory analysis cannot follow.

    Allowed are ``gpu.launch_func`` ops without async tokens that are among the ops ``structured``, and
    ``gpu.alloc`` and ``gpu.dealloc``: those that remain at this stage are of memory that the host can access
    too.
    """
    for op in _with_nested(function):
        if op.name.startswith("gpu.") and op.name not in SHARED_MEMORY and not _is_plain_launch(op):
            raise CandidateError(Stage.COMPILE, f"found {op.name}, allowed gpu.launch_func without tokens")
    for launch in walk(function, "gpu.launch_func"):
        if launch not in structured:
            parent = launch.parent.operation.name
            raise CandidateError(
                Stage.COMPILE, f"found a launch in {parent}, allowed func.func, scf.for, scf.while, scf.if"
            )


def _with_nested(op: Op) -> list[Op]:
    """Returns the op and all nested ops."""
    return walk_where(op, lambda _: True)


def _is_plain_launch(op: Op) -> bool:
    """Returns whether an op is a launch that neither takes nor returns async tokens."""
    return (
        op.name == "gpu.launch_func"
        and not list(op.results)
        and ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0] == 0
    )
