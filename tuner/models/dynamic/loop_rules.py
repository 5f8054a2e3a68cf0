"""The rules of linalg operations for a dynamic size: where padding needs nothing, and where it needs a mask.

A parallel loop of more iterations computes more elements, which are padding. A reduction over a size that
depends on n would add padding to elements that count: it needs a mask (``MaskedLoops``). A body must not fail
for padding: what it reads an index from is 0 there, by a mask if need be; a divisor of integers that padding
may make 0 is refused.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tuner.core.dynamic_sizes import LinearSize
from tuner.mlir.bindings import Op, Value, indexing_maps_of, ir
from tuner.mlir.fusions.operations import (
    GENERIC,
    body_of,
    defining,
    inits_of,
    inputs_of,
    is_parallel,
    is_tensor,
)
from tuner.mlir.ir.building import dimensions
from tuner.mlir.ir.reading import constant_of, op_of, walk_where
from tuner.models.dynamic.padding_facts import Loops
from tuner.models.dynamic.size_analysis import PREDICATES, KnownSizes, reads_size, refusal

# linalg operations that add products of two operands: zeros in both leave the sums as they are
NAMED_BODIES = ("linalg.generic", "linalg.fill", "linalg.transpose", "linalg.broadcast")
PRODUCTS = (
    *("linalg.matmul", "linalg.batch_matmul", "linalg.matvec", "linalg.vecmat", "linalg.batch_matvec"),
    *("linalg.batch_vecmat", "linalg.dot", "linalg.batch_reduce_matmul", "linalg.contract"),
)
EXTRACT = "tensor.extract"
ASSERT = "cf.assert"
ALLOWED = ("arith.", "math.", "linalg.index", "linalg.yield", EXTRACT, ASSERT)
DIVISIONS = (
    *("arith.divsi", "arith.divui", "arith.ceildivsi", "arith.ceildivui", "arith.floordivsi"),
    *("arith.remsi", "arith.remui"),
)
MULTIPLIES = ("arith.mulf", "arith.muli")
ADDS = ("arith.addf", "arith.addi")
EXTENDS = ("arith.extf", "arith.extsi", "arith.extui")
CONVERSIONS = (*EXTENDS, "arith.trunci", "arith.index_cast", "arith.index_castui")
# operation on integers -> its result
INTEGER_OPS: Mapping[str, Callable[..., int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.select": lambda condition, chosen, other: chosen if condition else other,
    **dict.fromkeys(CONVERSIONS, lambda number: number),
}


@dataclass(frozen=True, eq=False)
class MaskedLoops:
    """A linalg operation that needs masks: it reduces over sizes which depend on n, or reads indices."""

    op: Op
    loops: tuple[tuple[int, LinearSize], ...]  # number of each such loop, and how many iterations count
    is_product: bool  # a sum of products of two operands
    indices: tuple[int, ...]  # numbers of operands whose padding must be 0
    weights: tuple[int, ...] = ()  # of a product: numbers of operands that need no mask
    scores: int | None = (
        None  # of the greatest scores of a softmax: the dimension where the scores get a mask
    )


def loop_maps(op: Op) -> list[ir.AffineMap]:
    """Returns the indexing maps of a linalg operation. Raises UsageError for an operation without maps."""
    maps = indexing_maps_of(op)
    if maps is None:
        raise refusal(op, "there is no rule by which its result is right at a padded size")
    return maps


def note_loops(op: Op, known: KnownSizes) -> MaskedLoops | None:
    """Records the shapes of a linalg operation's results; returns what of it needs masks, None if nothing.

    Raises UsageError for an operation that could fail on padding, or
    whose padding could change other elements.
    """
    maps = loop_maps(op)
    sizes = _loop_sizes(op, maps, known)
    for result, init in zip(op.results, inits_of(op), strict=True):
        known.shapes[result] = known.shape(init)
    dynamic = {loop: size for loop, size in enumerate(sizes) if size is not None and not size.is_static}
    if not dynamic:
        return None
    for mapping in maps[len(op.operands) - len(op.results) :]:
        _require_alone(op, mapping, dynamic, "writes")
    indices: tuple[int, ...] = ()
    if op.name == GENERIC:
        indices = _SafeBody(op, known, sizes).indices()
    summed = _reduced_loops(op, maps)
    reduced = {loop: size for loop, size in dynamic.items() if loop in summed}
    loops = Loops(op, maps, sizes, known)
    if len(summed) <= 1 and op.name in NAMED_BODIES:
        loops.note()
    for mapping in maps:
        _require_alone(op, mapping, reduced, "reduces")
    return _masks_of(loops, reduced, indices)


def _masks_of(
    loops: Loops, reduced: Mapping[int, LinearSize], indices: tuple[int, ...]
) -> MaskedLoops | None:
    """Returns what of an operation needs masks, None if nothing.

    ``reduced``: its reduced loops over sizes that depend on n; ``indices``: operands whose padding must be 0.
    """
    op = loops.op
    is_product = op.name in PRODUCTS or (op.name == GENERIC and _adds_products(op))
    masked = MaskedLoops(op, tuple(reduced.items()), is_product, indices)
    if len(reduced) == 1:
        (loop,) = reduced
        if is_product:
            masked = replace(masked, weights=_weights(op, loops.maps, loop, loops.known))
        elif op.name == GENERIC and loops.needs_no_mask(loop):
            masked = replace(masked, loops=())
        elif not indices:
            masked = replace(masked, scores=loops.note_scores(loop))
    if masked.loops or indices:
        return masked
    return None


def _weights(op: Op, maps: Sequence[ir.AffineMap], loop: int, known: KnownSizes) -> tuple[int, ...]:
    """Returns the numbers of a product's operands that are weights of a softmax over a loop: 0 in padding."""
    weights = []
    for number, operand in enumerate(inputs_of(op)):
        indices = list(maps[number].results)
        if ir.AffineDimExpr.get(loop) in indices:
            dimension = indices.index(ir.AffineDimExpr.get(loop))
            if known.facts.is_weight(operand, dimension):
                weights.append(number)
    return tuple(weights)


def _loop_sizes(op: Op, maps: Sequence[ir.AffineMap], known: KnownSizes) -> list[LinearSize | None]:
    sizes: list[LinearSize | None] = [None] * maps[0].n_dims
    for value, mapping in zip(op.operands, maps, strict=True):
        if not is_tensor(value):
            continue
        for size, index in zip(known.shape(value), mapping.results, strict=True):
            if not isinstance(index, ir.AffineDimExpr):
                continue
            loop = index.position
            found = sizes[loop]
            if found is not None and found != size:
                raise refusal(op, f"sizes {found.text} and {size.text} of one loop, which differ")
            sizes[loop] = size
    return sizes


def _reduced_loops(op: Op, maps: Sequence[ir.AffineMap]) -> set[int]:
    if op.name == GENERIC:
        return {loop for loop, parallel in enumerate(is_parallel(op)) if not parallel}
    written: set[int] = set()
    for mapping in maps[len(op.operands) - len(op.results) :]:
        written.update(index.position for index in mapping.results if isinstance(index, ir.AffineDimExpr))
    return set(range(maps[0].n_dims)) - written


def _require_alone(op: Op, mapping: ir.AffineMap, loops: Iterable[int], verb: str) -> None:
    for index in mapping.results:
        if isinstance(index, ir.AffineDimExpr):
            continue
        if any(index.compose(_dropping(mapping.n_dims, loop)) != index for loop in loops):
            raise refusal(op, f"it {verb} over n at the index {index}: allowed one loop alone")


def _dropping(loops: int, dropped: int) -> ir.AffineMap:
    """Returns the affine map of ``loops`` dimensions to themselves, except ``dropped``, which becomes 0."""
    results = dimensions(loops)
    results[dropped] = ir.AffineConstantExpr.get(0)
    return ir.AffineMap.get(loops, 0, results)


def _adds_products(op: Op) -> bool:
    """Returns whether a generic adds products of one element of each of its two inputs, perhaps extended."""
    arguments = list(op.regions[0].blocks[0].arguments)
    if len(arguments) != 3:
        return False
    total = defining(body_of(op)[-1].operands[0])
    if total is None or total.name not in ADDS:
        return False
    terms = [value for value in total.operands if value != arguments[2]]
    product = defining(terms[0]) if len(terms) == 1 else None
    if product is None or product.name not in MULTIPLIES:
        return False
    return set(map(_unextended, product.operands)) == set(arguments[:2])


def _unextended(value: Value) -> Value:
    op = defining(value)
    if op is not None and op.name in EXTENDS:
        return op.operands[0]
    return value


@dataclass(frozen=True, eq=False)
class _SafeBody:
    """The body of a ``linalg.generic`` that must not fail where its operands have padding.

    ``sizes``: of its loops, None where no dimension says it. ``read``: numbers of operands of which an index
    or a condition is computed.
    """

    op: Op
    known: KnownSizes
    sizes: Sequence[LinearSize | None]
    read: set[int] = field(default_factory=set)

    def indices(self) -> tuple[int, ...]:
        """Returns the numbers of operands whose padding must be 0, and is not known to be.

        Raises UsageError for a body that may fail on padding.
        """
        for inner in walk_where(self.op, lambda nested: nested != self.op):
            if not inner.name.startswith(ALLOWED):
                allowed = "arith, math, linalg.index, tensor.extract and cf.assert"
                raise refusal(inner, f"allowed in loops over n: {allowed}")
            if inner.name in DIVISIONS and not constant_of(inner.operands[1]):
                raise refusal(inner, "a divisor that padding may make 0: allowed a constant")
            if inner.name == ASSERT and not self._is_as_counted(inner.operands[0], bool):
                raise refusal(inner, "a condition that padding may not fulfil")
            if inner.name == EXTRACT:
                self._require_inside(inner)
        operands = list(self.op.operands)
        return tuple(at for at in sorted(self.read) if operands[at] not in self.known.zero_padded)

    def _require_inside(self, extract: Op) -> None:
        tensor, *indices = extract.operands
        for index, length in zip(indices, self.known.shape(tensor), strict=True):
            loop = op_of(index, "linalg.index")
            if loop is not None:
                iterations = self.sizes[ir.IntegerAttr(loop.attributes["dim"]).value]
                size = self.known.size
                is_inside = iterations is not None and iterations.at(size) <= length.at(size)
            elif self._is_of_loops(index):
                least = self.known.limits(length)[0]
                is_inside = self._is_as_counted(index, range(least).__contains__)
            else:
                is_inside = not reads_size(index, self.known)
            if not is_inside:
                raise refusal(extract, "an index that padding may put outside of the tensor")

    def _is_of_loops(self, value: Value) -> bool:
        """Returns whether a scalar may change with the loops."""
        block = self.op.regions[0].blocks[0]
        if isinstance(value.owner, ir.Block):
            return bool(value.owner == block)
        return bool(value.owner.operation.block == block)

    def _is_as_counted(self, value: Value, is_right: Callable[[int], bool]) -> bool:
        """Returns whether an integer in padding is one of an iteration that counts, or one that ``is_right``.

        The first is so where it is computed of operands without padding alone. Adds the numbers of
        operands with padding to ``read``.
        """
        read: set[int] = set()
        number = self._of_padding(value, read)
        padded = {at for at in read if self._has_padding(self.op.operands[at])}
        self.read.update(padded)
        return number is not None and (not padded or (padded == read and is_right(number)))

    def _has_padding(self, operand: Value) -> bool:
        return is_tensor(operand) and self.known.is_dynamic(operand)

    def _of_padding(self, value: Value, read: set[int]) -> int | None:
        """Returns the value of an integer where elements of operands are 0; None where that is not known.

        ``read``: gets the numbers of the operands.
        """
        if isinstance(value.owner, ir.Block):
            is_element = self._is_of_loops(value) and not isinstance(value.type, ir.FloatType)
            if not is_element:
                return None
            read.add(value.arg_number)
            return 0
        op = value.owner.operation
        if op.name == "arith.constant":
            return constant_of(value)
        if op.name != "arith.cmpi" and op.name not in INTEGER_OPS:
            return None
        numbers = [
            number for operand in op.operands if (number := self._of_padding(operand, read)) is not None
        ]
        if len(numbers) < len(op.operands):
            return None
        if op.name != "arith.cmpi":
            return INTEGER_OPS[op.name](*numbers)
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        if predicate >= len(PREDICATES):  # unsigned ones
            return None
        return int(PREDICATES[predicate](*numbers))
