"""Which buffer a memref is part of: followed back through views, casts and what control flow carries."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.carried_values import is_carried, sources_of

# Other names of the memory of their first operand.
VIEWS = frozenset(
    {
        *("memref.subview", "memref.cast", "memref.view", "memref.reinterpret_cast", "memref.transpose"),
        *("memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast"),
        *("memref.assume_alignment", "memref.extract_strided_metadata", "memref.reshape"),
    }
)
# Memory of their own.
SOURCES = frozenset(
    {
        *("memref.alloc", "memref.alloca", "memref.get_global", "gpu.alloc", "gpux.alloc"),
        "builtin.unrealized_conversion_cast",  # of a descriptor, which a call of the runtime made
    }
)


def is_buffer(kind: Any) -> bool:
    """Tells whether a type is a memref, ranked or not."""
    return isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType)


def roots_of(value: Any) -> tuple[Any, ...]:
    """Returns the buffers that a memref may be part of, one unless control flow chooses.

    A root is an argument of the function, or the result of an op that makes memory; all ``memref.get_global``
    of one symbol have the first one of the function as their root.
    Raises CandidateError(COMPILE) for a memref from an op that may hand on one of its operands.
    """
    roots: dict[Any, None] = {}
    seen: set[Any] = set()
    open_values = [value]
    while open_values:
        each = open_values.pop()
        if each in seen:
            continue
        seen.add(each)
        before = _one_step_back(each)
        if before is None:
            roots[_first_of_symbol(each)] = None
        else:
            open_values.extend(reversed(before))
    return tuple(roots)


def described(value: Any) -> str:
    """Names a value for a message, as MLIR prints it: ``%alloc of memref.alloc``."""
    name = value.get_name()
    if isinstance(value.owner, ir.Block):
        return f"argument {name}"
    return f"{name} of {value.owner.operation.name}"


def _one_step_back(value: Any) -> list[Any] | None:
    """Returns the memrefs that a memref is another name of; none of a root."""
    if is_carried(value):
        return sources_of(value)
    if isinstance(value.owner, ir.Block):
        _accept_argument(value)
        return None
    op = value.owner.operation
    if op.name in VIEWS:
        return [op.operands[0]]
    if op.name == "arith.select":
        return [op.operands[1], op.operands[2]]
    if op.name in SOURCES and not any(is_buffer(operand.type) for operand in op.operands):
        return None
    raise CandidateError(
        Stage.COMPILE, f"{described(value)}: found a buffer of unknown origin, allowed allocations and views"
    )


def _accept_argument(value: Any) -> None:
    """Refuses arguments of blocks: they come from anywhere, but for those of a function."""
    parent = value.owner.owner.operation
    if parent.name.endswith(".func") and value.owner == parent.regions[0].blocks[0]:
        return
    raise CandidateError(
        Stage.COMPILE,
        f"{described(value)} in {parent.name}: found a buffer, allowed scf.for, scf.while, scf.if",
    )


def _first_of_symbol(root: Any) -> Any:
    if isinstance(root.owner, ir.Block) or root.owner.operation.name != "memref.get_global":
        return root
    symbol = root.owner.attributes["name"]
    function = root.owner.operation
    while not function.name.endswith(".func"):
        function = function.parent.operation
    same = (op for op in walk(function, "memref.get_global") if op.attributes["name"] == symbol)
    return next(same).results[0]
