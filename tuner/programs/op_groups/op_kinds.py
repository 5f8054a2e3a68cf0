"""Which kind of group an operation can be in, and why no schedule is for it otherwise."""

from dataclasses import dataclass

from tuner.core.grouped_program import CONTRACTION, CONVOLUTION, ELEMENTWISE, LOOPS, ROWS
from tuner.mlir.bindings import Op
from tuner.programs.op_groups.op_names import (
    CONVOLUTIONS,
    GENERIC,
    MATMULS,
    body_of,
    dimensions,
    is_identity,
    is_parallel,
    is_tensor,
    loop_sizes,
    maps_of,
)

SCHEDULED_ELEMENTS = ("f32", "f64", "f16", "bf16", "i1", "i8", "i32")
COMPUTING = ("arith.", "math.", "linalg.yield")  # dialects of the bodies that become vectors


@dataclass(frozen=True)
class OpKind:
    """The kind of group that an operation begins, and the sizes of its loops."""

    kind: str  # one of tuner.core.grouped_program.KINDS
    domain: tuple[int, ...] = ()  # iterations of each loop; () for other than linalg.generic
    reason: str = ""  # of LOOPS: why no schedule is for the operation


def kind_of(op: Op) -> OpKind:
    """Returns the kind of group that an operation of a program is computed in."""
    if op.name in MATMULS or op.name in CONVOLUTIONS:
        reason = _wrong_element(op)
        kind = CONTRACTION if op.name in MATMULS else CONVOLUTION
        return OpKind(LOOPS, (), reason) if reason else OpKind(kind, tuple(op.results[0].type.shape))
    if op.name != GENERIC:
        return OpKind(LOOPS, (), f"no schedule is for {op.name}")
    sizes = loop_sizes(op)
    reason = _wrong_element(op) or _wrong_body(op) or _wrong_loops(op)
    if reason:
        return OpKind(LOOPS, sizes, reason)
    return OpKind(ELEMENTWISE if all(is_parallel(op)) else ROWS, sizes)


def _wrong_element(op: Op) -> str:
    elements = [str(each.type.element_type) for each in (*op.operands, *op.results) if is_tensor(each)]
    wrong = next((each for each in elements if each not in SCHEDULED_ELEMENTS), None)
    return f"no schedule is for elements of type {wrong}" if wrong else ""


def _wrong_body(op: Op) -> str:
    wrong = next((each.name for each in body_of(op) if not each.name.startswith(COMPUTING)), None)
    return f"no schedule is for {wrong} in a linalg.generic" if wrong else ""


def _wrong_loops(op: Op) -> str:
    parallel, maps = is_parallel(op), maps_of(op)
    if any(dimensions(each) is None for each in maps):
        return "an operand is read at more than one loop's index along a dimension"
    outputs = maps[len(op.operands) - len(op.results) :]
    if all(parallel):
        is_plain = all(is_identity(each) for each in outputs)
        return "" if is_plain else "a result is written in another order than that of the loops"
    if parallel.count(False) > 1 or parallel[-1]:
        return "reduces other than the last dimension"
    if any(dimensions(each) != tuple(range(len(parallel) - 1)) for each in outputs):
        return "a reduction's result is not one number for each row"
    if any(list(loops) != sorted(loops) for each in maps if (loops := dimensions(each)) is not None):
        return "a reduction reads a transposed operand"
    return ""


def is_reduction(op: Op) -> bool:
    """Returns whether an operation reduces over a loop."""
    return op.name == GENERIC and not all(is_parallel(op))
