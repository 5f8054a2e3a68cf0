"""Partitions the operations of a program into groups: dispatch regions, in IREE's words.

A group is a root and the producers that only the group reads, found backwards from the root: at most one
contraction, or two matmuls of one A, with the elementwise operations after it (the epilogue); or rows,
reductions over the last dimension and elementwise operations over the same rows.

Elementwise producers of a contraction never join it: they would be computed again for each tile. One
transpose joins the elementwise operations that read its result.

A device computes independent products at a time. For it, operations that read two of them are a group of
their own (``tuner.programs.op_groups.forks``).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from tuner.core.grouped_program import CONTRACTION, CONVOLUTION, ELEMENTWISE, LOOPS, ROWS
from tuner.mlir.bindings import Op, Value, ir
from tuner.programs.op_groups.forks import joins_independent_products
from tuner.programs.op_groups.op_kinds import OpKind, is_reduction, kind_of
from tuner.programs.op_groups.op_names import (
    MATMULS,
    defining,
    dimensions,
    is_identity,
    is_scalar_op,
    maps_of,
    read_by,
    users,
)

WITH_EPILOGUE = (CONTRACTION, CONVOLUTION)
OPS_LIMIT = 100  # operations of a group: the time to compile one loop grows faster than what is in its body


@dataclass(frozen=True)
class Members:
    """Operations that are computed together, in the order of the program; the last one is the root."""

    kind: str
    ops: tuple[Op, ...]
    reason: str = ""

    @property
    def root(self) -> Op:
        """Returns the operation whose results are the group's."""
        return self.ops[-1]


@dataclass(frozen=True)
class _Growing:
    """A group while producers are added."""

    kind: str
    ops: tuple[Op, ...]
    domain: tuple[int, ...]  # sizes of the loops around the group
    keeps_forks: bool = False

    @property
    def is_reduced(self) -> bool:
        return any(is_reduction(op) for op in self.ops)


def form_groups(ops: Collection[Op], computed: Collection[Op], *, keeps_forks: bool = False) -> list[Members]:
    """Returns the groups of a block's operations, in an order in which they can run.

    Args:
        ops: operations of the block in order.
        computed: those of them that are computed, not only views of memory and constants.
        keeps_forks: whether an operation that reads two independent products joins neither.
    """
    order = {op: number for number, op in enumerate(ops)}
    kinds = {op: kind_of(op) for op in computed}
    epilogues = _epilogues(kinds)
    grouped: set[Op] = set()
    groups = []
    for root in reversed(list(ops)):
        if root not in kinds or root in grouped or is_scalar_op(root):
            continue
        members = _grown(root, kinds, epilogues, grouped, keeps_forks=keeps_forks)
        grouped.update(members.ops)
        groups.append(replace(members, ops=tuple(sorted(members.ops, key=lambda op: order[op]))))
    return groups[::-1]


def _grown(
    root: Op,
    kinds: dict[Op, OpKind],
    epilogues: Collection[Op],
    grouped: Collection[Op],
    *,
    keeps_forks: bool,
) -> Members:
    kind = kinds[root]
    if kind.kind not in (ELEMENTWISE, ROWS):
        return Members(kind.kind, (root,), kind.reason)
    alone = _Growing(kind.kind, (root,), kind.domain, keeps_forks)
    group = _with_producers(alone, kinds, grouped, takes_rows=True)
    if group.kind == ROWS:  # what ends an epilogue stays in the contraction's group
        others = {op for op in group.ops if op != root and op in epilogues}
        group = _with_producers(alone, kinds, {*grouped, *others}, takes_rows=True) if others else group
    else:
        group = _with_producers(alone, kinds, grouped, takes_rows=False)
    return Members(group.kind, group.ops)


def _epilogues(kinds: dict[Op, OpKind]) -> set[Op]:
    """Returns the elementwise operations that can be computed where a contraction writes its result.

    ``kinds`` is in the order of the program.
    """
    found: set[Op] = set()
    for op, kind in kinds.items():
        for value in read_by(op) if kind.kind == ELEMENTWISE else ():
            producer = defining(value)
            if producer is None or producer not in kinds or kinds[producer].domain != kind.domain:
                continue
            ends = kinds[producer].kind in WITH_EPILOGUE or producer in found
            if ends and users(value) == [op] and _is_read_in_place(value, op):
                found.add(op)
    return found


def _with_producers(
    group: _Growing, kinds: dict[Op, OpKind], left_out: Collection[Op], *, takes_rows: bool
) -> _Growing:
    """Returns a group with all producers that can join it; ``takes_rows``: with one number per row, too."""
    waiting = list(group.ops)
    while waiting:
        user = waiting.pop(0)
        for value in read_by(user):
            producer = defining(value)
            if producer is None or producer in left_out or producer in group.ops or producer not in kinds:
                continue
            if len(group.ops) == OPS_LIMIT:
                return group
            if not all(each in group.ops for result in producer.results for each in users(result)):
                continue
            joined = _joined(group, producer, kinds[producer], takes_rows)
            if joined is not None:
                group = joined
                waiting.append(producer)
    return group


def _joined(group: _Growing, producer: Op, kind: OpKind, takes_rows: bool) -> _Growing | None:
    """Returns the group with a producer that only it reads; None where the producer stays out."""
    if kind.kind == LOOPS or len(producer.results) != 1:
        return None
    ops, value = (*group.ops, producer), producer.results[0]
    if kind.kind in WITH_EPILOGUE:
        is_read_in_place = all(_is_read_in_place(value, op) for op in group.ops)
        is_fork = group.keeps_forks and joins_independent_products(producer, group.ops)
        if is_fork or group.is_reduced or kind.domain != group.domain or not is_read_in_place:
            return None
        if group.kind == ELEMENTWISE or _is_pair(group, producer):
            return replace(group, kind=kind.kind, ops=ops)
        return None
    if not all(_is_read_by_rows(value, op) for op in group.ops):
        return None
    if group.kind in WITH_EPILOGUE:
        fits = kind.kind == ELEMENTWISE and kind.domain == group.domain
        return replace(group, ops=ops) if fits and _is_straight(producer) else None
    if not _is_straight(producer):
        is_first = group.kind == ELEMENTWISE and all(_is_straight(op) for op in group.ops)
        is_read_in_place = all(_is_read_in_place(value, op) for op in group.ops)
        fits = is_first and is_read_in_place and kind.kind == ELEMENTWISE and kind.domain == group.domain
        return replace(group, ops=ops) if fits else None
    if kind.kind == ROWS:
        return _with_reduction(group, ops, kind) if takes_rows or group.is_reduced else None
    is_row_value = kind.domain == group.domain[:-1]
    if kind.domain == group.domain or (is_row_value and takes_rows):
        return replace(group, ops=ops)
    return None


def _with_reduction(group: _Growing, ops: tuple[Op, ...], kind: OpKind) -> _Growing | None:
    """Returns the group with a reduction over its rows, or over longer rows of the same number."""
    if kind.domain == group.domain or (kind.domain[:-1] == group.domain and not group.is_reduced):
        return replace(group, kind=ROWS, ops=ops, domain=kind.domain)
    return None


def _is_pair(group: _Growing, producer: Op) -> bool:
    """Returns whether a matmul has the A of the group's only matmul, as gate and up of a gated MLP."""
    others = [op for op in group.ops if op.name in MATMULS]
    return (
        len(others) == 1
        and producer.name == others[0].name == "linalg.matmul"
        and producer.operands[0] == others[0].operands[0]
    )


def _is_straight(op: Op) -> bool:
    """Returns whether no operand of a generic is transposed."""
    return all(
        list(loops) == sorted(loops) for each in maps_of(op) if (loops := dimensions(each)) is not None
    )


def _is_read_in_place(value: Value, user: Op) -> bool:
    """Returns whether a user, if it reads the value at all, reads one element per iteration, in order."""
    return all(
        mapping is not None and is_identity(mapping)
        for operand, mapping in zip(user.operands, _maps(user), strict=True)
        if operand == value
    )


def _is_read_by_rows(value: Value, user: Op) -> bool:
    """Returns whether a user reads an element, or a number per row, of the value for each iteration."""
    return all(
        mapping is not None and dimensions(mapping) == tuple(range(len(mapping.results)))
        for operand, mapping in zip(user.operands, _maps(user), strict=True)
        if operand == value
    )


def _maps(op: Op) -> list[ir.AffineMap | None]:
    if op.name != "linalg.generic":
        return [None] * len(op.operands)
    return maps_of(op)
