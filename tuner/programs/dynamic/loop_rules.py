"""The rules of linalg operations for a dynamic size: where padding needs nothing, and where it needs a mask.

A parallel loop of more iterations computes more elements, which are padding. A reduction over a size that
depends on n would add padding to elements that count: it needs a mask (``ReductionOverN``). A body must not
fail for padding: an index into a tensor, or a divisor of integers, that padding gives is refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuner.core.dynamic_sizes import LinearSize
from tuner.mlir.bindings import Op, Value, indexing_maps_of, ir
from tuner.mlir.ir.building import dimensions
from tuner.mlir.ir.reading import constant_of, op_of, walk_where
from tuner.programs.dynamic.size_analysis import KnownSizes, reads_size, refusal
from tuner.programs.fusions.operations import GENERIC, body_of, defining, inits_of, is_parallel, is_tensor

# linalg operations that add products of two operands: zeros in both leave the sums as they are
PRODUCTS = (
    *("linalg.matmul", "linalg.batch_matmul", "linalg.matvec", "linalg.vecmat", "linalg.batch_matvec"),
    *("linalg.batch_vecmat", "linalg.dot", "linalg.batch_reduce_matmul", "linalg.contract"),
)
ALLOWED = ("arith.", "math.", "linalg.index", "linalg.yield", "tensor.extract")
DIVISIONS = (
    *("arith.divsi", "arith.divui", "arith.ceildivsi", "arith.ceildivui", "arith.floordivsi"),
    *("arith.remsi", "arith.remui"),
)
MULTIPLIES = ("arith.mulf", "arith.muli")
ADDS = ("arith.addf", "arith.addi")
EXTENDS = ("arith.extf", "arith.extsi", "arith.extui")
# of an index: 0 stays 0
KEEP_ZERO = (*EXTENDS, "arith.trunci", "arith.index_cast", "arith.index_castui")


@dataclass(frozen=True, eq=False)
class ReductionOverN:
    """A linalg operation that reduces over sizes which depend on n, and so needs masks."""

    op: Op
    loops: tuple[tuple[int, LinearSize], ...]  # number of each such loop, and how many iterations count
    is_product: bool  # a sum of products of two operands


def loop_maps(op: Op) -> list[ir.AffineMap]:
    """Returns the indexing maps of a linalg operation. Raises UsageError for an operation without maps."""
    maps = indexing_maps_of(op)
    if maps is None:
        raise refusal(op, "there is no rule by which its result is right at a padded size")
    return maps


def note_loops(op: Op, known: KnownSizes) -> ReductionOverN | None:
    """Records the shapes of a linalg operation's results; returns its reduction over sizes that depend on n.

    None if no reduced loop depends on n. Raises UsageError for an operation that could fail on padding, or
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
    if op.name == GENERIC:
        _require_safe_body(op, known, sizes)
    summed = _reduced_loops(op, maps)
    reduced = {loop: size for loop, size in dynamic.items() if loop in summed}
    if not reduced:
        return None
    for mapping in maps:
        _require_alone(op, mapping, reduced, "reduces")
    is_product = op.name in PRODUCTS or (op.name == GENERIC and _adds_products(op))
    return ReductionOverN(op, tuple(reduced.items()), is_product)


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


def _require_safe_body(op: Op, known: KnownSizes, sizes: Sequence[LinearSize | None]) -> None:
    block = op.regions[0].blocks[0]
    for inner in walk_where(op, lambda nested: nested != op):
        if not inner.name.startswith(ALLOWED):
            raise refusal(inner, "allowed in loops over n: arith, math, linalg.index and tensor.extract")
        if inner.name in DIVISIONS and not constant_of(inner.operands[1]):
            raise refusal(inner, "a divisor that padding may make 0: allowed a constant")
        if inner.name != "tensor.extract":
            continue
        tensor, *indices = inner.operands
        for index, length in zip(indices, known.shape(tensor), strict=True):
            loop = op_of(index, "linalg.index")
            if loop is not None:
                iterations = sizes[ir.IntegerAttr(loop.attributes["dim"]).value]
                is_inside = iterations is not None and iterations.at(known.size) <= length.at(known.size)
            else:
                is_inside = _is_inside(index, op, block, known)
            if not is_inside:
                raise refusal(inner, "an index that padding may put outside of the tensor")


def _is_inside(index: Value, op: Op, block: ir.Block, known: KnownSizes) -> bool:
    """Returns whether an index is inside of its tensor for padding, too, if it is for counted elements.

    True for an index that does not change with the loops, and for an element of a tensor whose padding is 0.
    """
    if isinstance(index.owner, ir.Block):
        if index.owner != block:
            return False
        element = op.operands[index.arg_number]
        return element in known.zero_padded
    inner = index.owner.operation
    if inner.block != block:
        return not reads_size(index, known)
    if inner.name in KEEP_ZERO:
        return _is_inside(inner.operands[0], op, block, known)
    return bool(inner.name == "arith.constant")
