"""Which buffers a memref may be a view of, traced back through views, casts and structured control flow.

The counterpart of LLVM's ``getUnderlyingObjects``: a backward search over use-def chains, to allocations,
arguments of the function and globals. ``aliases.py`` searches forwards; ``address_flow.py`` has the relation
that both follow.
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Value, ir
from tuner.mlir.effects.address_flow import buffers_behind, is_buffer
from tuner.mlir.effects.region_dataflow import is_carried, sources_of
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.walking import parents_of, walk

# Ops whose first result aliases their first operand.
VIEWS = frozenset(
    {
        *("memref.subview", "memref.cast", "memref.view", "memref.reinterpret_cast", "memref.transpose"),
        *("memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast"),
        *("memref.assume_alignment", "memref.extract_strided_metadata", "memref.reshape"),
    }
)
CAST = "builtin.unrealized_conversion_cast"
# Ops whose result is a new buffer.
SOURCES = frozenset(
    {
        *("memref.alloc", "memref.alloca", "memref.get_global", "gpu.alloc", "gpux.alloc"),
        CAST,  # of a descriptor that a call of the runtime returned
    }
)


def roots_of(value: Value) -> tuple[Value, ...]:
    """Returns the buffers that a memref may be a view of: one, unless control flow or a select chooses.

    A buffer is given as an argument of the function, or as the result of an op of ``SOURCES`` (allocations,
    globals, casts of descriptors). All ``memref.get_global`` of one symbol count as the first of them in the
    function. Raises CandidateError(COMPILE) for a memref of any other op: the result may alias an operand.
    """
    origins = origins_of(value)
    for origin in origins:
        _require_known(origin)
    return tuple(dict.fromkeys(map(_first_of_symbol, origins)))


def origins_of(value: Value) -> tuple[Value, ...]:
    """Returns the memrefs at which the backward search from ``value`` ends, each once.

    The search follows views, scf control flow and ``arith.select``. It ends at allocations, globals and
    arguments, and also, without an error, at results of ops that it does not know.
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
            roots[each] = None
        else:
            open_values.extend(reversed(before))
    return tuple(roots)


def described(value: Value) -> str:
    """Returns the description of a value for a message: "%alloc of memref.alloc", or "argument %arg0"."""
    name = value.get_name()
    if isinstance(value.owner, ir.Block):
        return f"argument {name}"
    return f"{name} of {value.owner.operation.name}"


def _one_step_back(value: Value) -> list[Value] | None:
    """Returns the memrefs that ``value`` may alias by its defining op; None if the op makes no alias."""
    if is_carried(value):
        return sources_of(value)
    view = op_of(value, *VIEWS)
    if view is not None:
        return [view.operands[0]]
    choice = op_of(value, "arith.select")
    if choice is not None:
        return [choice.operands[1], choice.operands[2]]
    if op_of(value, CAST) is None:
        return None
    return list(buffers_behind(value)) or None  # none: of what a call of the runtime returned


def _require_known(origin: Value) -> None:
    """Raises CandidateError(COMPILE) unless ``origin`` is a function argument or defined by ``SOURCES``."""
    if not isinstance(origin.owner, ir.Block):
        op = origin.owner.operation
        if op.name not in SOURCES or any(is_buffer(operand.type) for operand in op.operands):
            found = "found a buffer of unknown origin, allowed allocations and views"
            raise CandidateError(Stage.COMPILE, f"{described(origin)}: {found}")
        return
    parent = origin.owner.owner.operation
    if not parent.name.endswith(".func") or origin.owner != parent.regions[0].blocks[0]:
        found = f"in {parent.name}: found a buffer, allowed scf.for, scf.while, scf.if"
        raise CandidateError(Stage.COMPILE, f"{described(origin)} {found}")


def _first_of_symbol(root: Value) -> Value:
    """Returns the first ``memref.get_global`` of the root's symbol; any other root unchanged."""
    op = op_of(root, "memref.get_global")
    if op is None:
        return root
    symbol = op.attributes["name"]
    function = next(each for each in parents_of(op) if each.name.endswith(".func"))
    same = (op for op in walk(function, "memref.get_global") if op.attributes["name"] == symbol)
    return next(same).results[0]
