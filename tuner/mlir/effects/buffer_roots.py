"""Which buffers a memref may be a view of: traced back through views, casts and structured control flow.

The counterpart of LLVM's ``getUnderlyingObjects``: a search backwards over use-def chains, to allocations,
arguments of the function and globals.
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.effects.region_dataflow import is_carried, sources_of
from tuner.mlir.rewrite.walking import walk

# Ops whose first result aliases their first operand.
VIEWS = frozenset(
    {
        *("memref.subview", "memref.cast", "memref.view", "memref.reinterpret_cast", "memref.transpose"),
        *("memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast"),
        *("memref.assume_alignment", "memref.extract_strided_metadata", "memref.reshape"),
    }
)
# Ops whose result is a buffer of its own.
SOURCES = frozenset(
    {
        *("memref.alloc", "memref.alloca", "memref.get_global", "gpu.alloc", "gpux.alloc"),
        "builtin.unrealized_conversion_cast",  # of a descriptor, which a call of the runtime made
    }
)


def is_buffer(kind: Type) -> bool:
    """Tells whether a type is a memref, ranked or not."""
    return isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType)


def roots_of(value: Value) -> tuple[Value, ...]:
    """Returns the buffers that a memref may be a view of: one, unless control flow or a select chooses.

    A root is an argument of the function, or the result of an op of ``SOURCES``; the root of every
    ``memref.get_global`` of one symbol is the first of them in the function.
    Raises CandidateError(COMPILE) for a memref of any other op: its result may alias an operand.
    """
    roots: dict[Value, None] = {}
    seen: set[Value] = set()
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


def described(value: Value) -> str:
    """Names a value for a message, as MLIR prints it: ``%alloc of memref.alloc``."""
    name = value.get_name()
    if isinstance(value.owner, ir.Block):
        return f"argument {name}"
    return f"{name} of {value.owner.operation.name}"


def _one_step_back(value: Value) -> list[Value] | None:
    """Returns the memrefs that a memref may alias by the op that defines it; None of a root."""
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


def _accept_argument(value: Value) -> None:
    """Raises CandidateError(COMPILE) for a block argument that is no argument of the function."""
    parent = value.owner.owner.operation
    if parent.name.endswith(".func") and value.owner == parent.regions[0].blocks[0]:
        return
    raise CandidateError(
        Stage.COMPILE,
        f"{described(value)} in {parent.name}: found a buffer, allowed scf.for, scf.while, scf.if",
    )


def _first_of_symbol(root: Value) -> Value:
    """Returns one representative for all ``memref.get_global`` of a symbol; any other root as it is."""
    if isinstance(root.owner, ir.Block) or root.owner.operation.name != "memref.get_global":
        return root
    symbol = root.owner.attributes["name"]
    function = root.owner.operation
    while not function.name.endswith(".func"):
        function = function.parent.operation
    same = (op for op in walk(function, "memref.get_global") if op.attributes["name"] == symbol)
    return next(same).results[0]
