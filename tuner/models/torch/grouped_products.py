"""Products of groups of rows with a matrix for each group, as of the experts of a mixture.

How many rows a group has is known when it is called. The matrices are packed once; code is compiled for a
few numbers of rows, and a group takes the next greater one. The rows after its own are then computed in vain:
they belong to the next group, which is computed later and writes them again.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch.fx import Node

from tuner.core.dynamic_sizes import size_ladder
from tuner.core.errors import CandidateError, UsageError
from tuner.models.run.fused_program import FusedFunction
from tuner.models.torch.compiled_products import ELEMENTS, Product, compiled_product
from tuner.models.torch.module_parts import CompiledOperators
from tuner.models.torch.program import array_of

# operators of rows (all, k), matrices (groups, k, n) and the end of each group
GROUPED = frozenset({"aten::_grouped_mm", "transformers::grouped_mm_fallback"})
OPERANDS = 3
# that code is compiled for; a weight that does not fit in caches takes as long for 1 to 32 rows, about
ROWS = size_ladder(1, 64, of_doubling=4)


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one group, from ``start`` on, computed by the code for ``rows`` rows."""

    group: int
    start: int
    rows: int

    @property
    def end(self) -> int:
        """Returns the index of the first row after the piece; it may be beyond the last row of the group."""
        return self.start + self.rows


class GroupedCode:
    """Code for a product of a fixed number of rows, and each group's matrix, packed for the code.

    Codes that pack a matrix in the same way share its memory.
    """

    def __init__(self, product: Product, matrices: torch.Tensor) -> None:
        image = compiled_product(product)
        self._function = FusedFunction(image.code, image.weights)
        self._packed = []
        self.addresses: list[list[int]] = []  # of each group's packed matrix
        for matrix in matrices:
            packed = image.with_weights([array_of(matrix.contiguous())]).weights
            self._packed.append(packed)
            self.addresses.append([array.ctypes.data for array in packed])

    def run(self, group: int, argument: int, result: int) -> None:
        """Computes the product of rows at the address ``argument`` with a group's matrix, into ``result``.

        Addresses are not checked. ``group``: index of the group.
        """
        self._function.run_into([argument], [result], self.addresses[group])


class GroupedProduct(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A product of rows with constant matrices, of which each group of consecutive rows has its own."""

    def __init__(self, operator: Callable[..., torch.Tensor], matrices: torch.Tensor, rows: int) -> None:
        """Compiles code for up to ``rows`` rows of all groups, and packs ``matrices``: (groups, k, n).

        ``operator``: of PyTorch, which is called where the ends of groups are out of order. Raises UsageError
        or CandidateError where there is no such code.
        """
        super().__init__()
        self._operator = operator
        self._matrices = matrices
        element = ELEMENTS[matrices.dtype]
        _, k, n = matrices.shape
        self._of_rows: dict[int, GroupedCode] = {}
        for size in _sizes(rows):
            self._of_rows[size] = GroupedCode(Product(element, size, n, k, is_weight=True), matrices)

    @property
    def codes(self) -> tuple[GroupedCode, ...]:
        """Returns the code for each number of rows."""
        return tuple(self._of_rows.values())

    def forward(self, rows: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Returns (all, n): each of the ``rows``, (all, k), times its group's matrix, (k, n).

        The rows of group i end before row ``ends[i]``, and begin where the group before ends. Rows after the
        last group give 0. Where ``ends`` does not ascend or exceeds the rows, PyTorch's operator is called.
        """
        count = rows.shape[0]
        bounds = [0, *ends.tolist()]
        if sorted(bounds) != bounds or bounds[-1] > count:
            return self._operator(rows, self._matrices, ends)
        held = rows.detach().contiguous()
        result = held.new_empty((count, self._matrices.shape[2]))
        row_bytes = held.shape[1] * held.element_size()
        result_bytes = result.shape[1] * result.element_size()
        for piece in _pieces(bounds, tuple(self._of_rows)):
            if piece.end > count:
                self._compute_last(piece, held[piece.start :], result[piece.start :])
                continue
            argument = held.data_ptr() + piece.start * row_bytes
            written = result.data_ptr() + piece.start * result_bytes
            self._of_rows[piece.rows].run(piece.group, argument, written)
        result[bounds[-1] :] = 0
        return result

    def _compute_last(self, piece: Piece, rows: torch.Tensor, result: torch.Tensor) -> None:
        """Writes the product of ``rows``, which are fewer than the piece's, by way of copies of its size."""
        held = rows.new_zeros((piece.rows, rows.shape[1]))
        held[: len(rows)] = rows
        computed = result.new_empty((piece.rows, result.shape[1]))
        self._of_rows[piece.rows].run(piece.group, held.data_ptr(), computed.data_ptr())
        result.copy_(computed[: len(rows)])


def _sizes(rows: int) -> tuple[int, ...]:
    """Returns the numbers of rows to compile for, where all groups together have ``rows``."""
    return ROWS[: bisect_left(ROWS, rows) + 1]


def _pieces(bounds: Sequence[int], sizes: Sequence[int]) -> Iterator[Piece]:
    """Yields pieces of rows that cover each group; ``sizes``: rows of a piece, ascending.

    A group ends in the smallest piece that covers its last rows, which may have more rows than are left.
    """
    for group, (start, end) in enumerate(pairwise(bounds)):
        while start < end:
            least = bisect_left(sizes, end - start)
            size = sizes[min(least, len(sizes) - 1)]
            yield Piece(group, start, size)
            start += size


def grouped_products(
    nodes: Sequence[Node], constant: Callable[[Node], torch.Tensor | None]
) -> CompiledOperators:
    """Returns, by node, the compiled grouped products of a graph, with the nodes of their rows and ends.

    ``constant``: returns the value of a node that depends on weights alone, else None. A product by matrices
    that are not constant, or one that cannot be compiled, is left out: PyTorch computes it.
    """
    products = {}
    for node in filter(_is_grouped, nodes):
        rows, matrices, ends = node.args
        value = constant(matrices)
        if value is None or not _is_supported(rows, value):
            continue
        try:
            product = GroupedProduct(node.target, value, _most_rows(rows))
        except (UsageError, CandidateError):
            continue
        products[node] = (product, (rows, ends))
    return products


def _is_grouped(node: Node) -> bool:
    schema: Any = getattr(node.target, "_schema", None)
    if schema is None or schema.name not in GROUPED or len(node.args) != OPERANDS or node.kwargs:
        return False
    return all(isinstance(operand, Node) for operand in node.args)


def _is_supported(rows: Node, matrices: torch.Tensor) -> bool:
    value = rows.meta["val"]
    if value.dtype != matrices.dtype or matrices.dtype not in ELEMENTS:
        return False
    has_elements = bool(_most_rows(rows)) and bool(matrices.numel())
    return has_elements and (value.dim(), matrices.dim()) == (2, 3)


def _most_rows(rows: Node) -> int:
    """Returns the number of rows; for a dynamic number, the rows of the largest compiled product."""
    size = rows.meta["val"].shape[0]
    if isinstance(size, int):
        return size
    return ROWS[-1]
