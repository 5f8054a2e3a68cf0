"""Proves that some reductions over n need no mask: what they read has numbers in padding that change nothing.

Keys that a causal mask hides are such: bounds of integers say that the mask is false in padding, so scores
are -inf there, and the weights of a softmax 0. Facts are followed through the bodies of linalg operations.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tuner.core.dynamic_sizes import LinearSize, static_size
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    COLLAPSE,
    EXPAND,
    GENERIC,
    body_of,
    defining,
    inits_of,
    inputs_of,
    is_tensor,
    users,
)
from tuner.mlir.ir.reading import op_of
from tuner.models.dynamic.padding_values import (
    WEIGHTS,
    Fact,
    IntegerBounds,
    OfRow,
    SoftmaxStep,
    SoftmaxTerm,
    exactly,
)
from tuner.models.dynamic.size_analysis import FIRST_UNSIGNED, PREDICATES, KnownSizes

RESHAPES = (COLLAPSE, EXPAND, "tensor.cast", "tensor.reshape")
FALSE, TRUE = exactly(0), exactly(1)
EQUAL = 1  # arith.cmpf oeq
EXACT = (0.0, math.inf, -math.inf)  # numbers that no conversion of floats rounds
# Combining operation -> what changes no number that it is combined with
IDENTITIES: Mapping[str, Fact] = {
    "arith.addf": 0.0,
    "arith.maximumf": -math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.minnumf": math.inf,
    "arith.andi": TRUE,
    "arith.ori": FALSE,
}
Groups = Sequence[tuple[Sequence[int], Sequence[int]]]  # dimensions of a source, and of its reshape


@dataclass(frozen=True, eq=False)
class Loops:
    """A linalg operation with a body: its indexing maps, and the sizes of its loops (None: not known)."""

    op: Op
    maps: Sequence[ir.AffineMap]
    sizes: Sequence[LinearSize | None]
    known: KnownSizes

    @property
    def block(self) -> ir.Block:
        return self.op.regions[0].blocks[0]

    @property
    def yielded(self) -> list[Value]:
        return list(body_of(self.op)[-1].operands)

    @property
    def result_maps(self) -> Sequence[ir.AffineMap]:
        return self.maps[len(self.op.operands) - len(self.op.results) :]

    def note(self) -> None:
        """Records what is known of the results in padding, and of integers that count."""
        reduced = [loop for loop in range(len(self.sizes)) if any(map(_is_without(loop), self.result_maps))]
        if len(reduced) == 1:
            self._note_rows(reduced[0])
        if reduced:
            return
        counted = _Body(self)
        for result, number in zip(self.op.results, self.yielded, strict=True):
            fact = counted.of(number)
            if isinstance(fact, IntegerBounds):
                self.known.facts.counted[result] = fact
        for loop, size in enumerate(self.sizes):
            if size is not None and not size.is_static:
                self._note_padding(loop)

    def needs_no_mask(self, loop: int) -> bool:
        """Returns whether padding along ``loop``, the only reduced loop that has some, changes no result."""
        padding = _Body(self, loop)
        first = len(inputs_of(self.op))
        for index, result in enumerate(self.yielded):
            total = self.block.arguments[first + index]
            term = _term(result, total)
            if term is None or not _is_neutral(padding.of(term), defining(result)):
                return False
        return True

    def note_scores(self, loop: int) -> int | None:
        """Records that scores of a softmax are -inf in padding, if this operation takes their maximum.

        Returns the reduced dimension, along which the scores have to be masked: one mask is then enough for
        all of the softmax, whose other operations read the scores through it, too. None for other operations,
        and where something is known of the padding.
        """
        dimension = _dimension(self.maps[0], loop)
        if dimension is None or not self._takes_maximum():
            return None
        scores = self.op.operands[0]
        facts = self.known.facts
        is_known = scores in self.known.zero_padded or (scores, dimension) in facts.padding
        if is_known or defining(scores) is None or not self._is_of_softmax():
            return None
        facts.padding[scores, dimension] = -math.inf
        self.note()
        return dimension

    def _takes_maximum(self) -> bool:
        """Returns whether each result is the maximum of elements of the only input, without others."""
        if self.op.name != GENERIC or len(inputs_of(self.op)) != 1 or len(self.op.results) != 1:
            return False
        tensor = self.op.operands[0]
        if not is_tensor(tensor) or not self.is_whole(tensor, self.maps[0]):
            return False
        element, total = self.block.arguments
        (result,) = self.yielded
        combine = defining(result)
        term = _term(result, total)
        is_maximum = combine is not None and combine.name == "arith.maximumf"
        return (
            is_maximum
            and term is not None
            and term == element
            and _constant(self.op.operands[1]) == -math.inf
        )

    def _is_of_softmax(self) -> bool:
        """Returns whether an operation reads the scores and their maximum."""
        greatest = _views_of(self.op.results[0])
        for reader in users(self.op.operands[0]):
            if reader.name == GENERIC and any(operand in greatest for operand in reader.operands):
                return True
        return False

    def _note_padding(self, loop: int) -> None:
        padding = _Body(self, loop)
        for result, mapping, number in zip(self.op.results, self.result_maps, self.yielded, strict=True):
            dimension = _dimension(mapping, loop)
            fact = padding.of(number)
            if isinstance(fact, SoftmaxTerm) and not self._has_index_of_scores(result, mapping, fact):
                fact = _weight(fact)
            if dimension is not None and fact is not None and not isinstance(fact, OfRow):
                self.known.facts.padding[result, dimension] = fact

    def _has_index_of_scores(self, result: Value, mapping: ir.AffineMap, term: SoftmaxTerm) -> bool:
        """Returns whether an element of a result is computed of the score, or its term, of the same index."""
        if term.step not in (SoftmaxStep.DISTANCE, SoftmaxStep.EXPONENTIAL):
            return False
        shapes = self.known.shapes
        is_read = False
        for operand, read in zip(inputs_of(self.op), self.maps, strict=False):
            is_term = is_tensor(operand) and isinstance(
                self.known.facts.padding.get((operand, term.dimension)), SoftmaxTerm
            )
            if operand == term.scores or is_term:
                is_read = True
                if shapes[operand] != shapes[result] or not self._are_aligned(operand, read, mapping):
                    return False
        return is_read and shapes[result] == shapes[term.scores]

    def _are_aligned(self, tensor: Value, mapping: ir.AffineMap, other: ir.AffineMap) -> bool:
        """Returns whether two maps give equal indices of tensors with the shape of ``tensor``."""
        shape = self.known.shapes[tensor]
        pairs = zip(shape, mapping.results, other.results, strict=True)
        return all(left == right or size == static_size(1) for size, left, right in pairs)

    def _note_rows(self, loop: int) -> None:
        """Records the greatest score, or the sum of exponentials, of each row of a softmax."""
        inputs = inputs_of(self.op)
        if len(inputs) != 1 or not is_tensor(inputs[0]) or not self.is_whole(inputs[0], self.maps[0]):
            return
        dimension = _dimension(self.maps[0], loop)
        if dimension is None:
            return
        arguments = self.block.arguments
        for index, (result, mapping) in enumerate(zip(self.op.results, self.result_maps, strict=True)):
            combine = defining(self.yielded[index])
            combined = _term(self.yielded[index], arguments[1 + index])
            if combine is None or combined is None or combined != arguments[0]:
                continue
            begin = _constant(list(inits_of(self.op))[index])
            term = self._of_row(combine.name, dimension, begin)
            if term is not None:
                places = {expression: at for at, expression in enumerate(self.maps[0].results)}
                dimensions = tuple(map(places.get, mapping.results))
                self.known.facts.rows[result] = replace(term, dimensions=dimensions)

    def _of_row(self, combine: str, dimension: int, begin: Fact | None) -> SoftmaxTerm | None:
        tensor = self.op.operands[0]
        fact = self.known.facts.padding.get((tensor, dimension))
        if combine == "arith.maximumf" and fact == begin == -math.inf:
            return SoftmaxTerm(SoftmaxStep.MOST, tensor, dimension)
        if combine != "arith.addf" or begin != 0.0 or not isinstance(fact, SoftmaxTerm):
            return None
        if fact.step == SoftmaxStep.EXPONENTIAL and fact.dimension == dimension:
            return replace(fact, step=SoftmaxStep.SUM)
        return None

    def is_whole(self, tensor: Value, mapping: ir.AffineMap) -> bool:
        """Returns whether each dimension of a tensor, but those of size 1, has a loop of its own as index."""
        indices = []
        for size, index in zip(self.known.shapes[tensor], mapping.results, strict=True):
            if size != static_size(1):
                indices.append(index)
        loops = {index.position for index in indices if isinstance(index, ir.AffineDimExpr)}
        return len(loops) == len(indices)


def _views_of(value: Value) -> list[Value]:
    """Returns a tensor, and its reshapes."""
    views = [value]
    for view in views:
        views.extend(user.results[0] for user in users(view) if user.name in RESHAPES)
    return views


def note_view(source: Value, result: Value, groups: Groups, known: KnownSizes) -> None:
    """Records what is known of a reshape's result, as of its source.

    ``groups``: dimensions of the source, and of the result, that have the same elements.
    """
    facts = known.facts
    if source in facts.counted:
        facts.counted[result] = facts.counted[source]
    kept: dict[int, int] = {}  # dimensions of the source that are one of the result
    is_of_ones = True
    for read, made in groups:
        left = [dimension for dimension in read if known.shapes[source][dimension] != static_size(1)]
        right = [dimension for dimension in made if known.shapes[result][dimension] != static_size(1)]
        if len(left) == len(right) == 1:
            kept[left[0]] = right[0]
        elif left or right:
            is_of_ones = False
    for old, new in kept.items():
        fact = facts.padding.get((source, old))
        if isinstance(fact, SoftmaxTerm):
            fact = _weight(fact)
        if fact is not None:
            facts.padding[result, new] = fact
    row = facts.rows.get(source)
    if row is not None and is_of_ones:
        back = {new: row.dimensions[old] for old, new in kept.items()}
        facts.rows[result] = replace(row, dimensions=tuple(map(back.get, range(len(known.shapes[result])))))


def _weight(term: SoftmaxTerm) -> SoftmaxTerm | None:
    """Returns what is known of a term whose index is not that of its score."""
    if term.step in WEIGHTS:
        return replace(term, step=SoftmaxStep.WEIGHT)
    return None


def _term(result: Value, total: Value) -> Value | None:
    """Returns what a known operation combines with ``total`` to ``result``; None for other results."""
    combine = defining(result)
    if combine is None or combine.name not in IDENTITIES or len(list(total.uses)) != 1:
        return None
    terms = [operand for operand in combine.operands if operand != total]
    if len(terms) == 1:
        return terms[0]
    return None


def _is_neutral(fact: Fact | None, combine: Op | None) -> bool:
    if fact is None or combine is None:
        return False
    if isinstance(fact, SoftmaxTerm):
        return combine.name == "arith.addf" and fact.step in WEIGHTS
    if combine.name == "arith.andi" and not _is_truth(combine.results[0].type):
        return False  # TRUE is one bit of several
    return fact == IDENTITIES[combine.name]


def _is_without(loop: int) -> Callable[[ir.AffineMap], bool]:
    return lambda mapping: not _depends(mapping, loop)


def _depends(mapping: ir.AffineMap, loop: int) -> bool:
    return any(_is_of(index, loop) for index in mapping.results)


def _is_of(index: ir.AffineExpr, loop: int) -> bool:
    if isinstance(index, ir.AffineDimExpr):
        return bool(index.position == loop)
    return not isinstance(index, ir.AffineConstantExpr)  # of a sum it is not asked


def _dimension(mapping: ir.AffineMap, loop: int) -> int | None:
    """Returns the dimension whose index is a loop's; None where it is not the only one that depends on it."""
    found = [dimension for dimension, index in enumerate(mapping.results) if _is_of(index, loop)]
    if len(found) == 1 and isinstance(mapping.results[found[0]], ir.AffineDimExpr):
        return found[0]
    return None


def _constant(value: Value) -> Fact | None:
    """Returns the number of a constant, or of a tensor whose elements are all one constant; else None."""
    fill = op_of(value, "linalg.fill")
    op = op_of(value if fill is None else fill.operands[0], "arith.constant")
    number = None if op is None else op.attributes["value"]
    if isinstance(number, ir.DenseElementsAttr) and number.is_splat:
        number = number.get_splat_value()
    if isinstance(number, ir.FloatAttr):
        return float(number.value)
    if isinstance(number, ir.BoolAttr) or (isinstance(number, ir.IntegerAttr) and _is_truth(number.type)):
        return exactly(abs(int(number.value)))
    if isinstance(number, ir.IntegerAttr):
        return exactly(int(number.value))
    return None


def _is_truth(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


@dataclass(frozen=True, eq=False)
class _Body:
    """The body of a linalg operation, in iterations whose index of ``padded`` alone is padding.

    ``padded`` None: in iterations that count.
    """

    loops: Loops
    padded: int | None = None
    facts: dict[Value, Fact | None] = field(default_factory=dict)

    @property
    def known(self) -> KnownSizes:
        return self.loops.known

    def of(self, value: Value) -> Fact | None:
        """Returns what is known of a scalar."""
        if value not in self.facts:
            fact = self._fact(value)
            if isinstance(fact, IntegerBounds) and not self._fits(fact, value.type):
                fact = None
            self.facts[value] = fact
        return self.facts[value]

    def _fact(self, value: Value) -> Fact | None:
        constant = _constant(value)
        if constant is not None:
            return constant
        if isinstance(value.owner, ir.Block):
            if value.owner != self.loops.block:
                return None
            return self._element(value)
        if value in self.known.numbers:
            return exactly(self.known.numbers[value])
        op = value.owner.operation
        if op.block != self.loops.block:
            return OfRow()
        rule = RULES.get(op.name)
        fact = None if rule is None else rule(self, op)
        if fact is None and self._is_of_row(op):
            return OfRow()
        return fact

    def _is_of_row(self, op: Op) -> bool:
        if not op.name.startswith(("arith.", "math.")):
            return False
        facts = list(map(self.of, op.operands))
        return all(
            isinstance(fact, float | OfRow) or (isinstance(fact, IntegerBounds) and fact.is_exact)
            for fact in facts
        )

    def _fits(self, limits: IntegerBounds, type_: ir.Type) -> bool:
        """Returns whether an integer type holds a number: it does not wrap."""
        if not isinstance(type_, ir.IntegerType) or _is_truth(type_):
            return True
        most = (1 << type_.width - 1) - 1
        least = self.known.limits(limits.least)[0]
        return bool(-most <= least and self.known.limits(limits.greatest)[1] <= most)

    def _element(self, argument: Value) -> Fact | None:
        """Returns what is known of an element of an operand."""
        operand = self.loops.op.operands[argument.arg_number]
        if not is_tensor(operand):
            return _constant(operand) or OfRow()
        constant = _constant(operand)
        if constant is not None:
            return constant
        if argument.arg_number >= len(inputs_of(self.loops.op)):
            return None
        mapping = self.loops.maps[argument.arg_number]
        if self.padded is not None and _depends(mapping, self.padded):
            dimension = _dimension(mapping, self.padded)
            if dimension is None:
                return None
            return self.known.facts.padding.get((operand, dimension))
        facts = self.known.facts
        return facts.rows.get(operand) or facts.counted.get(operand) or OfRow()

    def read(self, element: Value) -> tuple[Value, ir.AffineMap] | None:
        """Returns the operand, and its indexing map, of which a scalar is an element; None for other ones."""
        if not isinstance(element.owner, ir.Block) or element.owner != self.loops.block:
            return None
        operand = self.loops.op.operands[element.arg_number]
        if is_tensor(operand):
            return operand, self.loops.maps[element.arg_number]
        return None

    def row_of(self, element: Value, number: Value) -> SoftmaxTerm | None:
        """Returns which number of the row of ``element`` another one is; None if it is none of its row.

        The tensor of ``element`` has the indices of the scores.
        """
        term = self.of(number)
        of_element = self.read(element)
        of_number = self.read(number)
        if not isinstance(term, SoftmaxTerm) or of_element is None or of_number is None:
            return None
        tensor, mapping = of_element
        shape = self.known.shapes[tensor]
        if shape != self.known.shapes[term.scores] or not self.loops.is_whole(tensor, mapping):
            return None
        rest = {dimension for dimension, size in enumerate(shape) if size != static_size(1)} - {
            term.dimension
        }
        for index, dimension in zip(of_number[1].results, term.dimensions, strict=True):
            if dimension in rest:
                if mapping.results[dimension] != index:
                    return None
                rest.remove(dimension)
        if rest:
            return None
        return term


Rule = Callable[[_Body, Op], Fact | None]


def _index(body: _Body, op: Op) -> Fact | None:
    loop = ir.IntegerAttr(op.attributes["dim"]).value
    size = body.loops.sizes[loop]
    if size is None:
        return None
    if loop == body.padded:
        return IntegerBounds(size, static_size(size.at(body.known.size) - 1))
    return IntegerBounds(static_size(0), size.minus(static_size(1)))


def _converted(body: _Body, op: Op) -> Fact | None:
    fact = body.of(op.operands[0])
    if isinstance(fact, float):
        if fact in EXACT:
            return fact
        return None
    if isinstance(fact, SoftmaxTerm):
        return _weight(fact)
    if _is_truth(op.operands[0].type):
        return None
    return fact


def _ends(compute: Callable[[IntegerBounds, IntegerBounds], IntegerBounds]) -> Rule:
    def rule(body: _Body, op: Op) -> Fact | None:
        left, right = map(body.of, op.operands)
        if (
            isinstance(left, IntegerBounds)
            and isinstance(right, IntegerBounds)
            and not _is_truth(op.results[0].type)
        ):
            return compute(left, right)
        return None

    return rule


def _compared(body: _Body, op: Op) -> Fact | None:
    left, right = map(body.of, op.operands)
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if not (isinstance(left, IntegerBounds) and isinstance(right, IntegerBounds)) or _is_truth(
        op.operands[0].type
    ):
        return None
    difference = left.minus(right)
    low = body.known.limits(difference.least)[0]
    high = body.known.limits(difference.greatest)[1]
    if predicate >= FIRST_UNSIGNED:
        return None
    signs = {sign for sign, is_met in ((-1, low < 0), (0, low <= 0 <= high), (1, high > 0)) if is_met}
    truths = {PREDICATES[predicate](sign, 0) for sign in signs}
    if len(truths) == 1:
        return exactly(int(truths.pop()))
    return None


def _compared_floats(body: _Body, op: Op) -> Fact | None:
    left, right = map(body.of, op.operands)
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if isinstance(left, float) and isinstance(right, float) and predicate == EQUAL:
        return exactly(int(left == right))
    return None


def _truths(absorbing: IntegerBounds, other: IntegerBounds) -> Rule:
    def rule(body: _Body, op: Op) -> Fact | None:
        if not _is_truth(op.results[0].type):
            return None
        facts = list(map(body.of, op.operands))
        if absorbing in facts:
            return absorbing
        if facts == [other, other]:
            return other
        return None

    return rule


def _selected(body: _Body, op: Op) -> Fact | None:
    condition, chosen, other = map(body.of, op.operands)
    if condition == TRUE:
        return chosen
    if condition == FALSE:
        return other
    if isinstance(condition, OfRow):
        # of a row all are 0, or the weights: as a safe softmax, of which no score may be seen
        terms = [fact for fact in (chosen, other) if isinstance(fact, SoftmaxTerm)]
        if len(terms) == 1 and 0.0 in (chosen, other):
            return _weight(terms[0])
    return None


def _subtracted(body: _Body, op: Op) -> Fact | None:
    score, most = op.operands
    read = body.read(score)
    if read is None or body.of(score) != -math.inf:
        return None
    term = body.row_of(score, most)
    if term is None or term.step != SoftmaxStep.MOST or term.scores != read[0]:
        return None
    return replace(term, step=SoftmaxStep.DISTANCE, dimensions=())


def _exponential(body: _Body, op: Op) -> Fact | None:
    fact = body.of(op.operands[0])
    if isinstance(fact, SoftmaxTerm) and fact.step == SoftmaxStep.DISTANCE:
        return replace(fact, step=SoftmaxStep.EXPONENTIAL)
    return None


def _divided(body: _Body, op: Op) -> Fact | None:
    dividend, divisor = op.operands
    fact = body.of(dividend)
    if not isinstance(fact, SoftmaxTerm) or fact.step != SoftmaxStep.EXPONENTIAL:
        return None
    total = body.row_of(dividend, divisor)
    if total is None or total.step != SoftmaxStep.SUM or total.scores != fact.scores:
        return None
    return replace(fact, step=SoftmaxStep.WEIGHT)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("arith.index_cast", "arith.extsi", "arith.extf", "arith.truncf"), _converted),
    "arith.addi": _ends(IntegerBounds.plus),
    "arith.subi": _ends(IntegerBounds.minus),
    "linalg.index": _index,
    "arith.cmpi": _compared,
    "arith.cmpf": _compared_floats,
    "arith.andi": _truths(FALSE, TRUE),
    "arith.ori": _truths(TRUE, FALSE),
    "arith.select": _selected,
    "arith.subf": _subtracted,
    "arith.divf": _divided,
    "math.exp": _exponential,
}
