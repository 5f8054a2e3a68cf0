"""Makes matmuls of ``linalg.generic`` that sum products, in place: of an einsum, of ``linalg.contract``."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import GENERIC, inits_of, inputs_of, is_free, is_tensor, loop_sizes
from tuner.mlir.ir.linalg import EXTEND_UNSIGNED, factor_extensions
from tuner.mlir.ir.reading import maps_in
from tuner.models.fusions.generics import collapse, expand, reshaped, transposed
from tuner.models.fusions.matmul_forms import matmul
from tuner.models.fusions.payload import TensorPayload

BIT = "i1"  # a named matmul of bits is "or" of "and"
Loops = list[int]  # of more than one iteration


@dataclass(frozen=True)
class Contraction:
    """A generic as a matmul: its factors, and the loops that are its rows, columns, batches and sums.

    Loops of one iteration are in none of these groups.
    """

    left: Value
    right: Value
    loops: tuple[Loops, Loops, Loops]  # that dimensions of left, right and the result are
    batch: Loops
    rows: Loops
    columns: Loops
    summed: Loops
    is_unsigned: bool  # integers are extended with zeros


def contractions_as_matmuls(payload: TensorPayload) -> None:
    """Replaces generics that sum products of two tensors by matmuls or batch_matmuls, in place.

    Loops of one kind become one dimension; operands whose dimensions are in another order are transposed:

        %r = linalg.generic ins(%a, %b)  // indexed by (h, q, d), (k, h, d), (h, q, k); d is summed over
      becomes
        %t = linalg.generic ins(%b)  // transposed: h, d, k
        %r = linalg.batch_matmul ins(%a, %t) ...

    Not changed: products by vectors whose matrices are read row by row (of 64x4096 a matmul took 18 times as
    long), and generics that do more than multiply and add, or move a window over an operand.
    """
    for op in payload.ops:
        contraction = contraction_of(op)
        if contraction is not None:
            _replace(op, contraction)


def contraction_of(op: Op) -> Contraction | None:
    """Returns an operation as a matmul; None for one that ``contractions_as_matmuls`` leaves as it is."""
    if op.name != GENERIC or not all(map(is_tensor, op.operands)):
        return None
    extensions = factor_extensions(op)
    if extensions is None or len(extensions) > 1 or BIT in map(_element_of, op.operands):
        return None
    a, b, c = map(_loops, op.operands, maps_in(op))
    if a is None or b is None or c is None:
        return None
    kinds: dict[tuple[bool, bool, bool], Loops] = {}  # whether A, B and the result have a loop -> such loops
    for loop in dict.fromkeys((*c, *a, *b)):
        kinds.setdefault((loop in a, loop in b, loop in c), []).append(loop)
    batch = kinds.pop((True, True, True), [])
    rows = kinds.pop((True, False, True), [])
    columns = kinds.pop((False, True, True), [])
    summed = kinds.pop((True, True, False), [])
    if kinds or not summed:  # a loop of one operand alone is summed before, or repeated
        return None
    left, right = inputs_of(op)
    if not columns or (rows and c.index(columns[0]) < c.index(rows[0])):
        left, right, a, b, rows, columns = right, left, b, a, columns, rows
    if not columns or (not rows and b != [*batch, *summed, *columns]):
        return None
    is_unsigned = EXTEND_UNSIGNED in extensions
    return Contraction(left, right, (a, b, c), batch, rows, columns, summed, is_unsigned)


def _element_of(tensor: Value) -> str:
    return str(tensor.type.element_type)


def _loops(tensor: Value, mapping: ir.AffineMap) -> Loops | None:
    """Returns the loop that indexes each dimension of a tensor, dimensions of size 1 left out.

    None where a dimension is indexed by another expression, or two dimensions by one loop.
    """
    loops = []
    for size, result in zip(tensor.type.shape, mapping.results, strict=True):
        if size == 1:
            continue
        if not isinstance(result, ir.AffineDimExpr):
            return None
        loops.append(ir.AffineDimExpr(result).position)
    if len(set(loops)) < len(loops):
        return None
    return loops


def _replace(op: Op, contraction: Contraction) -> None:
    sizes = loop_sizes(op)
    batch = [contraction.batch] if contraction.batch else []
    left_loops, right_loops, loops = contraction.loops
    result = op.results[0]
    groups = [*batch, contraction.rows, contraction.columns]
    with ir.InsertionPoint(op), op.location:
        factors = [*batch, contraction.rows, contraction.summed]
        left = _grouped(contraction.left, left_loops, factors, sizes)
        factors = [*batch, contraction.summed, contraction.columns]
        right = _grouped(contraction.right, right_loops, factors, sizes)
        start = _grouped(inits_of(op)[0], loops, groups, sizes)
        product = matmul(left, right, start, is_unsigned=contraction.is_unsigned)
        result.replace_all_uses_with(_ungrouped(product, loops, groups, sizes, result.type.shape))
    op.erase()


def _grouped(tensor: Value, loops: Loops, groups: Sequence[Loops], sizes: Sequence[int]) -> Value:
    """Creates the tensor with one dimension for each group of loops; ``loops``: the loop of each dimension.

    ``sizes``: iterations of each loop.
    """
    shape = [prod(map(sizes.__getitem__, group)) for group in groups]
    if is_free(tensor):
        return reshaped(tensor, shape)
    order = list(chain(*groups))
    tensor = _collapsed(tensor, _joined(tensor.type.shape))
    if order != loops:
        tensor = transposed(tensor, list(map(loops.index, order)))
    tensor = _collapsed(tensor, _consecutive(groups))
    return _expanded(tensor, _joined(shape), shape)


def _ungrouped(
    tensor: Value, loops: Loops, groups: Sequence[Loops], sizes: Sequence[int], shape: Sequence[int]
) -> Value:
    """Creates the tensor of ``shape`` from a tensor that has one dimension for each group of loops.

    The inverse of ``_grouped``: ``loops``: the loop of each dimension of the result.
    """
    order = list(chain(*groups))
    tensor = _collapsed(tensor, _joined(tensor.type.shape))
    tensor = _expanded(tensor, _consecutive(groups), list(map(sizes.__getitem__, order)))
    if order != loops:
        tensor = transposed(tensor, list(map(order.index, loops)))
    return _expanded(tensor, _joined(shape), shape)


def _collapsed(tensor: Value, groups: list[Loops]) -> Value:
    if len(groups) == tensor.type.rank:
        return tensor
    return collapse(tensor, groups)


def _expanded(tensor: Value, groups: list[Loops], shape: Sequence[int]) -> Value:
    if len(shape) == tensor.type.rank:
        return tensor
    return expand(tensor, groups, shape)


def _joined(shape: Sequence[int]) -> list[Loops]:
    """Returns groups of dimensions with one larger than 1 each, which dimensions of size 1 join."""
    groups: list[Loops] = []
    leading: Loops = []
    for dimension, size in enumerate(shape):
        if size > 1:
            groups.append([*leading, dimension])
            leading = []
        elif groups:
            groups[-1].append(dimension)
        else:
            leading.append(dimension)
    return groups


def _consecutive(groups: Sequence[Loops]) -> list[Loops]:
    """Returns the groups that are not empty, their members replaced by 0, 1, 2 ... in order."""
    numbered: list[Loops] = []
    start = 0
    for group in filter(None, groups):
        numbered.append(list(range(start, start + len(group))))
        start += len(group)
    return numbered
