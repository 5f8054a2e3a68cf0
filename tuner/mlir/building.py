"""Builds payload ops at the current insertion point, in the few forms that this project's ops need."""

from collections.abc import Callable, Sequence
from typing import Any

from tuner.mlir.bindings import ir


def create(
    name: str, results: Sequence[Any] = (), operands: Sequence[Any] = (), **attributes: Any
) -> ir.Operation:
    """Creates an op of any dialect; attributes are given as attributes."""
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=dict(attributes)
    )


def value(name: str, result: Any, *operands: Any, **attributes: Any) -> Any:
    """Creates an op of one result and returns it."""
    return create(name, [result], operands, **attributes).results[0]


def index(number: int) -> Any:
    """Returns a constant of type index."""
    kind = ir.IndexType.get()
    return value("arith.constant", kind, value=ir.IntegerAttr.get(kind, number))


def zero(kind: Any) -> Any:
    """Returns the constant zero of a float type, or of a vector of one."""
    if isinstance(kind, ir.VectorType):
        splat = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 0.0))
        return value("arith.constant", kind, value=splat)
    return value("arith.constant", kind, value=ir.FloatAttr.get(kind, 0.0))


def affine(expression: Any, *symbols: Any) -> Any:
    """Returns an affine expression over symbols s0, s1, ... as an index."""
    mapping = ir.AffineMapAttr.get(ir.AffineMap.get(0, len(symbols), [expression]))
    return value("affine.apply", ir.IndexType.get(), *symbols, map=mapping)


def symbol(number: int) -> Any:
    """Returns the affine symbol of that number."""
    return ir.AffineExpr.get_symbol(number)


def plus(base: Any, distance: int) -> Any:
    """Returns ``base + distance`` of type index."""
    if distance == 0:
        return base
    return value("arith.addi", ir.IndexType.get(), base, index(distance))


def is_less(left: Any, right: Any) -> Any:
    """Returns the truth of ``left < right``, both signed."""
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)  # arith's slt
    return value("arith.cmpi", ir.IntegerType.get_signless(1), left, right, predicate=predicate)


def integers(numbers: Sequence[int]) -> Any:
    """Returns an array attribute of 64-bit integers."""
    kind = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(kind, number) for number in numbers])


def piece(vector: Any, offset: int, size: int) -> Any:
    """Returns ``size`` neighbours of a 1-D vector; the vector itself where that is all of it."""
    kind = ir.VectorType(vector.type)
    if kind.shape[0] == size:
        return vector
    part = ir.VectorType.get([size], kind.element_type)
    places = {"offsets": integers([offset]), "sizes": integers([size]), "strides": integers([1])}
    return value("vector.extract_strided_slice", part, vector, **places)


def branch(
    condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None, result: Any = None
) -> Any:
    """Creates ``scf.if``. With a result type, both callables build a value of it, and it is returned."""
    results = [] if result is None else [result]
    op = ir.Operation.create("scf.if", results=results, operands=[condition], regions=2)
    for region, build in zip(op.regions, (then, otherwise), strict=True):
        if build is not None:
            with ir.InsertionPoint(region.blocks.append()):
                built = build()
                create("scf.yield", [], [] if result is None else [built])
    return None if result is None else op.results[0]
