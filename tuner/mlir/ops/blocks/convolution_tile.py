"""What a tile of a convolution on buffers is: its dimensions, and where each operand has them.

A tile is a ``linalg.generic`` on memrefs with an input, weights and sums. One of its dimensions is that of
the lanes of a register: the filters, the last dimension of the weights; or the last dimension of the sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ops.blocks.channel_words import is_word

INPUT, WEIGHTS, SUMS = range(3)  # operands of a tile
FILTERS, LAST = LANES_ALONG = ("filters", "last")  # the dimension of the lanes: of the weights, of the sums

Terms = dict[int, int]  # dimension -> factor: an index as a sum of multiples of dimensions
Place = dict[int, int]  # dimension -> element


@dataclass(frozen=True, eq=False)
class ConvolutionTile:
    """A ``linalg.generic`` that is one tile of a convolution, and the dimension that registers hold."""

    op: Op
    along: str  # one of LANES_ALONG
    maps: tuple[tuple[Terms, ...], ...]  # of each operand: the index along each of its dimensions
    sizes: Place  # of each dimension of the tile: its extent

    @classmethod
    def of(cls, op: Op, along: str) -> "ConvolutionTile | str":
        """Returns the tile that a generic is; or what it is, as text, where it is none."""
        kinds = [each.type for each in op.operands]
        if len(kinds) != 3 or not all(
            isinstance(kind, ir.MemRefType) and kind.has_static_shape for kind in kinds
        ):
            return f"a convolution of {' x '.join(map(str, kinds))}"
        found = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
        maps = tuple(tuple(_terms(each) for each in mapping.results) for mapping in found)
        sizes: Place = {}
        for number in (WEIGHTS, SUMS):
            for terms, size in zip(maps[number], kinds[number].shape, strict=True):
                sizes |= dict.fromkeys(terms, size)
        return cls(op, along, maps, sizes)

    def buffer(self, number: int) -> Value:
        """Returns operand INPUT, WEIGHTS or SUMS, a memref."""
        return self.op.operands[number]

    @property
    def element(self) -> Type:
        """Returns the element type of the sums."""
        return ir.MemRefType(self.buffer(SUMS).type).element_type

    @property
    def has_words(self) -> bool:
        """Returns whether elements of the input and the weights are words, which pairs of bf16 are."""
        return is_word(self.buffer(INPUT)) and isinstance(self.element, ir.FloatType)

    @property
    def lane(self) -> int:
        """Returns the dimension whose elements are the lanes of a register."""
        return next(iter(self.maps[WEIGHTS if self.along == FILTERS else SUMS][-1]))

    @property
    def is_stored_along_lanes(self) -> bool:
        """Returns whether the lanes of a register are adjacent in the sums."""
        return self.lane in self.maps[SUMS][-1]

    @property
    def reduced(self) -> tuple[int, ...]:
        """Returns the dimensions that are summed up, in the order of the weights: the channels come last."""
        parallel = {dimension for terms in self.maps[SUMS] for dimension in terms}
        inside = [dimension for terms in self.maps[WEIGHTS] for dimension in terms]
        return tuple(dimension for dimension in inside if dimension not in parallel)

    def points(self) -> Iterator[Place]:
        """Yields the elements of the sums' dimensions but the lanes', the last dimension fastest."""
        dimensions = [dimension for terms in self.maps[SUMS] for dimension in terms]
        ranges = [[0] if each == self.lane else range(self.sizes[each]) for each in dimensions]
        for place in product(*ranges):
            yield dict(zip(dimensions, place, strict=True))

    def steps(self, number: int) -> int:
        """Returns how many elements of an operand lie between two lanes; 0: all lanes have one element.

        The lanes must be the last dimension of the operand, or none.
        """
        return self.maps[number][-1].get(self.lane, 0)


def _terms(expression: ir.AffineExpr) -> Terms:
    """Returns a linear expression without constants as the factors of its dimensions."""
    if isinstance(expression, ir.AffineAddExpr):
        left, right = _terms(expression.lhs), _terms(expression.rhs)
        return {each: left.get(each, 0) + right.get(each, 0) for each in left | right}
    if isinstance(expression, ir.AffineMulExpr):
        factor = ir.AffineConstantExpr(expression.rhs).value
        return {each: number * factor for each, number in _terms(expression.lhs).items()}
    return {ir.AffineDimExpr(expression).position: 1}
