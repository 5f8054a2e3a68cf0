"""A tile of a convolution on buffers: its operands, and their indices by the dimensions of the tile.

A tile is a ``linalg.generic`` on memrefs with an input, weights and sums. One of its dimensions is that of
the lanes of a register: the filters, the last dimension of the weights; or the last dimension of the sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.reading import maps_in, types_of
from tuner.models.ops.convolutions.channel_k_groups import OF_BYTES, is_k_group

# Attribute of such an operation, array<i64: dimension of the input, first, end>: the input's planes before
# ``first`` and from ``end`` on are zeros.
PLANES = "planes"
Terms = dict[int, int]  # dimension -> factor: an index as a sum of multiples of dimensions
TileElement = dict[int, int]  # dimension -> element

INPUT, WEIGHTS, SUMS = range(3)  # operands of a tile
FILTERS, LAST = LANES_ALONG = ("filters", "last")  # the dimension of the lanes: of the weights, of the sums


@dataclass(frozen=True, eq=False)
class ConvolutionTile:
    """A tile of a convolution, a ``linalg.generic`` on memrefs, and the dimension of a register's lanes."""

    op: Op
    along: str  # one of LANES_ALONG
    maps: tuple[tuple[Terms, ...], ...]  # of each operand: the index along each of its dimensions
    sizes: TileElement  # of each dimension of the tile: its extent

    @classmethod
    def of(cls, op: Op, along: str) -> "ConvolutionTile | Refusal":
        """Returns ``op``, a ``linalg.generic``, as a tile.

        ``along``: the dimension of the lanes: "filters", or "last" for the last dimension of the output.
        Returns a Refusal that names the operand types if these are not three memrefs of static sizes.
        """
        types = types_of(op.operands)
        if len(types) != 3 or not all(
            isinstance(type_, ir.MemRefType) and type_.has_static_shape for type_ in types
        ):
            return Refusal(f"a convolution of {' x '.join(map(str, types))}")
        maps = tuple(tuple(map(_terms, mapping.results)) for mapping in maps_in(op))
        sizes: TileElement = {}
        for number in (WEIGHTS, SUMS):
            for terms, size in zip(maps[number], types[number].shape, strict=True):
                sizes |= dict.fromkeys(terms, size)
        return cls(op, along, maps, sizes)

    def buffer(self, number: int) -> Value:
        return self.op.operands[number]

    @property
    def element(self) -> Type:
        return ir.MemRefType(self.buffer(SUMS).type).element_type

    @property
    def k_group_element(self) -> str:
        """Returns the type of channels of the input's K groups, "bf16" or "i8"; "" without K groups."""
        if not is_k_group(self.buffer(INPUT)):
            return ""
        if OF_BYTES in self.op.attributes:
            return "i8"
        return "bf16" if isinstance(self.element, ir.FloatType) else ""

    @property
    def lane(self) -> int:
        """Returns the index of the loop dimension whose elements are the lanes of a register."""
        return next(iter(self.maps[WEIGHTS if self.along == FILTERS else SUMS][-1]))

    @property
    def is_stored_along_lanes(self) -> bool:
        return self.lane in self.maps[SUMS][-1]

    @property
    def reduced(self) -> tuple[int, ...]:
        """Returns the indices of the summed dimensions in the order of the weights, channels last."""
        parallel = set(chain.from_iterable(self.maps[SUMS]))
        inside = list(chain.from_iterable(self.maps[WEIGHTS]))
        return tuple(dimension for dimension in inside if dimension not in parallel)

    @property
    def shared(self) -> int | None:
        """Returns a dimension of the window along which several pixels of the tile read the same lanes.

        None if there is none. It is, for example, the rows of a window, if lanes are pixels of a row and the
        tile has several rows.
        """
        if self.lane in chain.from_iterable(self.maps[WEIGHTS]):
            return None
        several = set(filter(lambda dimension: self.sizes[dimension] > 1, self.sizes))
        for terms in self.maps[INPUT]:
            dimensions = several.intersection(terms)
            window = dimensions.intersection(self.reduced)
            if window and dimensions > window and self.lane not in terms:
                return min(window)
        return None

    def constants(self, number: int, element: TileElement) -> list[int]:
        """Returns the indices in operand ``number`` of the element at position ``element``.

        ``element``: index per dimension of the tile and the window, which both begin at the operand's first
        element.
        """
        indices = []
        for terms in self.maps[number]:
            position = 0
            for dimension in element.keys() & terms.keys():
                position += element[dimension] * terms[dimension]
            indices.append(position)
        return indices

    def pixels(self) -> Iterator[TileElement]:
        """Yields {dimension: index} for each pixel of the tile, with 0 along the lanes' dimension.

        The last dimension is the fastest.
        """
        dimensions = list(chain.from_iterable(self.maps[SUMS]))
        ranges = [[0] if dimension == self.lane else range(self.sizes[dimension]) for dimension in dimensions]
        for indices in product(*ranges):
            yield dict(zip(dimensions, indices, strict=True))

    def steps(self, number: int) -> int:
        """Returns the distance in elements between adjacent lanes in operand ``number``.

        0: all lanes read the same element.
        """
        return self.maps[number][-1].get(self.lane, 0)


def _terms(expression: ir.AffineExpr) -> Terms:
    if isinstance(expression, ir.AffineAddExpr):
        left = _terms(expression.lhs)
        right = _terms(expression.rhs)
        return {dimension: left.get(dimension, 0) + right.get(dimension, 0) for dimension in left | right}
    if isinstance(expression, ir.AffineMulExpr):
        factor = ir.AffineConstantExpr(expression.rhs).value
        return {dimension: number * factor for dimension, number in _terms(expression.lhs).items()}
    return {ir.AffineDimExpr(expression).position: 1}
