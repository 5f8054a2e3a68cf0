"""Partitions the operations of a program into fusions (IREE calls them dispatch regions).

A fusion is a root and the producers that only the fusion reads, found backwards from the root: at most one
contraction, or two matmuls of one A, with the elementwise operations after it (the epilogue); or rows,
reductions over one dimension and elementwise operations over the same rows. One transpose joins the
elementwise operations that read its result.

Elementwise producers of a contraction never join it: they would be computed again for each tile. A GPU can
compute independent products at the same time: there, operations that read two of them are a separate fusion.
At last, the three fusions of a large attention become one (``join_attention``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, ELEMENTWISE, LOOPS, QUANTIZED, ROWS
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    CONTRACTIONS,
    MATMULS,
    OpKind,
    all_but,
    defining,
    dimensions,
    is_identity,
    is_reduction,
    is_scalar_op,
    is_straight,
    is_tensor,
    kind_of,
    needed_ops,
    read_by,
    users,
)
from tuner.mlir.ir.reading import maps_in
from tuner.models.fusions.matmul_forms import conversion_of

WITH_EPILOGUE = (CONTRACTION, CONVOLUTION)
OPS_LIMIT = 100  # operations of a fusion: the time to compile one loop grows faster than what is in its body
LEAST_KEYS = 128  # in a row of scores
LEAST_SCORES = 2**19  # in all rows: two megabytes of f32
ELEMENTS = ("f32", "f64")  # of scores and of what is multiplied; an epilogue may round the result


def joins_independent_products(producer: Op, ops: Collection[Op]) -> bool:
    """Returns whether ``ops`` read two products: that of ``producer`` and one independent of it.

    In one fusion with ``ops``, the product of ``producer`` would wait for the other one. Two matmuls with the
    same A do not count, because they read the same rows.
        %p = linalg.matmul ins(%a, %b), %q = linalg.matmul ins(%c, %d), %s = add(%p, %q)
    """
    needed = needed_ops(ops, {producer})
    before = needed_ops([producer])
    return any(
        op.name in CONTRACTIONS
        and op != producer
        and op not in before
        and producer not in needed_ops([op])
        and not (op.name in MATMULS and producer.name in MATMULS and op.operands[0] == producer.operands[0])
        for op in needed
    )


@dataclass(frozen=True)
class Members:
    """The operations of one fusion, in the order of the program; the last one is the root."""

    kind: str
    ops: tuple[Op, ...]
    reason: str = ""  # of LOOPS: why no schedule supports the operation

    @property
    def root(self) -> Op:
        return self.ops[-1]


@dataclass(frozen=True)
class _Growing:
    kind: str
    ops: tuple[Op, ...]
    domain: tuple[int, ...]  # sizes of the loops around the fusion
    reduced: int  # the loop of rows that reductions go through; before a reduction has joined, a guess
    keeps_forks: bool = False

    @property
    def is_reduced(self) -> bool:
        return any(map(is_reduction, self.ops))

    @property
    def is_uniform(self) -> bool:
        """Returns whether no operation computes one number for each row."""
        return all(maps_in(op)[0].n_dims == len(self.domain) for op in self.ops)

    @property
    def rows(self) -> tuple[int, ...]:
        """Returns the sizes of the loops around a row."""
        return tuple(self.domain[loop] for loop in all_but(self.reduced, len(self.domain)))


def form_fusions(
    ops: Collection[Op], computed: Collection[Op], paddings: Collection[Op] = (), *, keeps_forks: bool = False
) -> list[Members]:
    """Partitions the operations of a block into fusions; returns them in an order in which they can run.

    ``computed``: the operations that compute something, without views of memory and constants. ``paddings``:
    the ``tensor.pad`` operations that join the fusion of each reader. ``keeps_forks``, for a GPU: an
    operation that reads two independent products joins neither of the two, and reductions over another
    dimension than the last become loops.
    """
    order = {op: index for index, op in enumerate(ops)}
    kinds = {op: kind_of(op) for op in computed}
    if keeps_forks:  # a kernel of rows reads them along the last dimension
        for op, kind in kinds.items():
            if kind.kind == ROWS and kind.reduced != len(kind.domain) - 1:
                kinds[op] = OpKind(LOOPS, kind.domain, reason="reduces other than the last dimension")
    epilogues = _epilogues(kinds)
    guesses = _reduced_loops(kinds)
    fused: set[Op] = set()
    fusions = []
    for root in reversed(list(ops)):
        if root not in kinds or root in fused or is_scalar_op(root):
            continue
        members = _grown(root, kinds, epilogues, guesses, fused, keeps_forks=keeps_forks)
        fused.update(members.ops)
        read = set(map(defining, chain.from_iterable(map(read_by, members.ops))))
        every = (*members.ops, *filter(read.__contains__, paddings))
        fusions.append(replace(members, ops=tuple(sorted(every, key=lambda op: order[op]))))
    return fusions[::-1]


def _reduced_loops(kinds: Mapping[Op, OpKind]) -> dict[int, tuple[int, ...]]:
    """Returns, by the number of loops around a fusion, which of them reductions may go through.

    The last loop is first, as most reductions have it; then those of the reductions with as many loops.
    """
    loops: dict[int, dict[int, None]] = {}
    for kind in kinds.values():
        rank = len(kind.domain)
        found = loops.setdefault(rank, {max(rank - 1, 0): None})
        if kind.kind == ROWS:
            found[kind.reduced] = None
    return {rank: tuple(found) for rank, found in loops.items()}


def _grown(
    root: Op,
    kinds: dict[Op, OpKind],
    epilogues: Collection[Op],
    guesses: Mapping[int, Sequence[int]],
    fused: Collection[Op],
    *,
    keeps_forks: bool,
) -> Members:
    """Returns the fusion of ``root``. ``guesses``: which loop may be reduced, by the number of loops."""
    kind = kinds[root]
    if (product := _rounded_product(root, kinds)) is not None:
        return Members(QUANTIZED, (product, root))
    if kind.kind not in (ELEMENTWISE, ROWS):
        return Members(kind.kind, (root,), kind.reason)
    # which loop the reductions go through that may join an elementwise root: none is known yet
    tried = guesses[len(kind.domain)]
    if kind.kind == ROWS:
        tried = (kind.reduced,)
    for reduced in tried:
        alone = _Growing(kind.kind, (root,), kind.domain, reduced, keeps_forks)
        fusion = _with_producers(alone, kinds, fused, takes_rows=True)
        if fusion.kind != ELEMENTWISE:
            break
    if fusion.kind == ROWS:  # what can be a contraction's epilogue is left to the contraction's fusion
        ends = {op for op in fusion.ops if op != root and op in epilogues}
        fusion = _with_producers(alone, kinds, {*fused, *ends}, takes_rows=True) if ends else fusion
    else:  # no reduction has joined: one number per row would be computed again for each element
        fusion = _with_producers(alone, kinds, fused, takes_rows=False)
    return Members(fusion.kind, fusion.ops)


def _rounded_product(root: Op, kinds: dict[Op, OpKind]) -> Op | None:
    """Returns the quantized matmul of bf16 whose result ``root`` rounds to bf16, if only ``root`` reads it.

    None if ``root`` is another operation.
    """
    if conversion_of(root) != "arith.truncf":
        return None
    product = defining(root.operands[0])
    if product is None or product not in kinds or kinds[product].kind != QUANTIZED:
        return None
    types = {str(value.type.element_type) for value in (product.operands[0], root.results[0])}
    if types == {"bf16"} and users(product.results[0]) == [root]:
        return product
    return None


def _epilogues(kinds: dict[Op, OpKind]) -> set[Op]:
    epilogues: set[Op] = set()
    for op, kind in kinds.items():
        for value in read_by(op) if kind.kind == ELEMENTWISE else ():
            producer = defining(value)
            if producer is None or producer not in kinds or kinds[producer].domain != kind.domain:
                continue
            ends = kinds[producer].kind in WITH_EPILOGUE or producer in epilogues
            if ends and users(value) == [op] and _is_read_in_place(value, op):
                epilogues.add(op)
    return epilogues


def _with_producers(
    fusion: _Growing, kinds: dict[Op, OpKind], left_out: Collection[Op], *, takes_rows: bool
) -> _Growing:
    """Returns a fusion grown by all producers that can join.

    ``takes_rows``: producers of one number per row can join, too.
    """
    waiting = list(fusion.ops)
    while waiting:
        user = waiting.pop(0)
        for value in read_by(user):
            producer = defining(value)
            if producer is None or producer in left_out or producer in fusion.ops or producer not in kinds:
                continue
            if len(fusion.ops) == OPS_LIMIT:
                return fusion
            readers = chain.from_iterable(map(users, producer.results))
            if not all(reader in fusion.ops for reader in readers):
                continue
            joined = _joined(fusion, producer, kinds[producer], takes_rows)
            if joined is not None:
                fusion = joined
                waiting.append(producer)
    return fusion


def _joined(fusion: _Growing, producer: Op, kind: OpKind, takes_rows: bool) -> _Growing | None:
    """Returns ``fusion`` with a producer that nothing else reads added; None if the producer cannot join."""
    if kind.kind in (LOOPS, QUANTIZED) or len(producer.results) != 1:
        return None
    ops = (*fusion.ops, producer)
    value = producer.results[0]
    is_read_in_place = all(_is_read_in_place(value, op) for op in fusion.ops)
    if kind.kind in WITH_EPILOGUE:
        is_fork = fusion.keeps_forks and joins_independent_products(producer, fusion.ops)
        if is_fork or fusion.is_reduced or kind.domain != fusion.domain or not is_read_in_place:
            return None
        others = [op for op in fusion.ops if op.name in MATMULS]
        is_pair = (  # two matmuls of one A, as gate and up of a gated MLP
            len(others) == 1
            and producer.name == others[0].name == "linalg.matmul"
            and producer.operands[0] == others[0].operands[0]
        )
        return replace(fusion, kind=kind.kind, ops=ops) if fusion.kind == ELEMENTWISE or is_pair else None
    if not all(_is_read_by_rows(value, op, fusion) for op in fusion.ops):
        return None
    if fusion.kind in WITH_EPILOGUE:
        fits = kind.kind == ELEMENTWISE and kind.domain == fusion.domain
        return replace(fusion, ops=ops) if fits and is_straight(producer) else None
    if not is_straight(producer):
        is_first = fusion.kind == ELEMENTWISE and all(map(is_straight, fusion.ops))
        fits = is_first and is_read_in_place and kind.kind == ELEMENTWISE and kind.domain == fusion.domain
        return replace(fusion, ops=ops) if fits else None
    if kind.kind == ROWS:
        # it reduces the rows of the fusion, or rows of which the fusion so far has one number each
        joined = replace(fusion, kind=ROWS, ops=ops, domain=kind.domain, reduced=kind.reduced)
        is_wider = joined.rows == fusion.domain and fusion.is_uniform and not fusion.is_reduced
        fits = is_wider or (kind.domain == fusion.domain and kind.reduced == fusion.reduced)
        return joined if fits and (takes_rows or fusion.is_reduced) else None
    fits = kind.domain == fusion.domain or (takes_rows and kind.domain == fusion.rows)
    return replace(fusion, ops=ops) if fits else None


def _is_read_in_place(value: Value, user: Op) -> bool:
    # one element per iteration, in order, if the user reads the value at all
    return all(mapping is not None and is_identity(mapping) for mapping in _maps(value, user))


def _is_read_by_rows(value: Value, user: Op, fusion: _Growing) -> bool:
    # an element, or a number per row, for each iteration
    return all(
        mapping is not None
        and (is_identity(mapping) or dimensions(mapping) == all_but(fusion.reduced, mapping.n_dims))
        for mapping in _maps(value, user)
    )


def _maps(value: Value, user: Op) -> list[ir.AffineMap | None]:
    maps = maps_in(user) if user.name == "linalg.generic" else [None] * len(user.operands)
    return [mapping for operand, mapping in zip(user.operands, maps, strict=True) if operand == value]


def join_attention(fusions: Sequence[Members], ops: Collection[Op]) -> list[Members]:
    """Joins the three fusions of each attention to one, in place of the last; returns all in order.

    Three fusions write and read all scores through memory or a large cache; one fusion computes the scores of
    some rows of queries at a time, which stay in the L2 cache. An attention is joined where this is faster,
    by the measurements in docs/decisions/fusions.md. ``ops``: the operations of the program in order.
        %s = linalg.batch_matmul ins(%q, %k)    // with scale and mask
        %p = ...                                // rows: the softmax of %s
        %r = linalg.batch_matmul ins(%p, %v)    // with its epilogue
    """
    order = {op: index for index, op in enumerate(ops)}
    by_root = {members.root: members for members in fusions}
    joined: dict[Op, Members] = {}
    parts: set[Op] = set()
    for last in fusions:
        before = _before(last, by_root)
        if before is not None:
            parts |= {fusion.root for fusion in before}
            scores, softmax = before
            members = sorted((*scores.ops, *softmax.ops, *last.ops), key=lambda op: order[op])
            joined[last.root] = Members(ATTENTION, tuple(members))
    return [joined.get(members.root, members) for members in fusions if members.root not in parts]


def _before(last: Members, by_root: Mapping[Op, Members]) -> tuple[Members, Members] | None:
    """Returns the fusions of scores and softmax whose only reader is the product of ``last``, or None."""
    product = _product(last)
    if product is None:
        return None
    weights = product.operands[0]
    rows = _fusion_of(weights, by_root)
    if rows is None or rows.kind != ROWS or users(weights) != [product]:
        return None
    shape = weights.type.shape
    if shape[-1] < LEAST_KEYS or prod(shape) < LEAST_SCORES:  # three fusions are faster
        return None
    for value in dict.fromkeys(chain.from_iterable(map(read_by, rows.ops))):
        scores = _fusion_of(value, by_root)
        if scores is None or value.type != weights.type or _product(scores) is None:
            continue
        if all(user in rows.ops for user in users(value)):
            return scores, rows
    return None


def _product(members: Members) -> Op | None:
    products = [op for op in members.ops if op.name in MATMULS]
    if members.kind != CONTRACTION or len(products) != 1 or len(members.root.results) != 1:
        return None
    (product,) = products
    elements = {str(operand.type.element_type) for operand in product.operands}
    if len(elements) == 1 and elements <= set(ELEMENTS):
        return product
    return None


def _fusion_of(value: Value, by_root: Mapping[Op, Members]) -> Members | None:
    op = defining(value)
    if op is None or not is_tensor(value):
        return None
    return by_root.get(op)
