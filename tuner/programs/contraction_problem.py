"""Which problem a contraction is: its loops sorted into batch, m, n and k, then compared with the layouts.

Loops of one iteration do not count. Several loops of one kind become one where all operands have them next to
each other in one order: a 1x1 convolution of (1, 14, 14, 64) is a matmul of 196 rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.errors import UsageError
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem, narrow_output
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.rewrite.definitions import op_of

LAYOUTS = {("mk", "kn"): "nn", ("mk", "nk"): "nt", ("km", "kn"): "tn"}
DTYPES = {  # MLIR's name -> Problem.dtype
    **{name: name for name in ("f32", "f64", "f16", "bf16", "i8")},
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
}
SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
WIDENED = ("arith.extf", "arith.extsi")
Words = tuple[str, str, str]  # the kinds of the loops of A, B and C, in the order of their dimensions


class UnknownContractionError(Exception):
    """A contraction that no problem describes; the text says why."""


@dataclass(frozen=True)
class Contraction:
    """A sum of products over loops: which loops index the dimensions of A, B and C, and how long they are."""

    operands: tuple[tuple[int, ...], ...]  # loops of A, B, C by dimension
    extents: tuple[int, ...]  # iterations of each loop
    dtypes: tuple[str, str, str]  # MLIR's element types of A, B, C


def contraction_of(op: Op) -> Contraction | None:
    """Returns the contraction that a ``linalg.generic`` computes; None for another computation.

    Raises UnknownContractionError for a sum of products that is none of static sizes over plain dimensions.
    """
    if not _is_sum_of_products(op):
        return None
    types = [value.type for value in op.operands]
    if not all(isinstance(each, ir.ShapedType) and each.has_rank for each in types):
        raise UnknownContractionError("an operand is no array")
    shapes = [tuple(each.shape) for each in types]
    if any(size < 0 for shape, each in zip(shapes, types, strict=True) for size in shape) or not all(
        each.has_static_shape for each in types
    ):
        raise UnknownContractionError("its sizes are not static")
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    extents = _extents(maps, shapes)
    operands = tuple(tuple(_loop(result, extents) for result in mapping.results) for mapping in maps)
    a, b, c = (str(each.element_type) for each in types)
    return Contraction(operands, extents, (a, b, c))


def problem_of(contraction: Contraction) -> Problem:
    """Returns the problem that a contraction is. Raises UnknownContractionError, with why it is none."""
    a, b, c = (
        tuple(loop for loop in operand if loop >= 0 and contraction.extents[loop] > 1)
        for operand in contraction.operands
    )
    kinds = _kinds(a, b, c)
    sizes = dict.fromkeys("bmnk", 1)
    for loop, kind in kinds.items():
        sizes[kind] *= contraction.extents[loop]
    words = (_word(a, kinds), _word(b, kinds), _word(c, kinds))
    _require_one_order((a, b, c), kinds)
    layout, is_swapped = _layout(words)
    m, n = (sizes["n"], sizes["m"]) if is_swapped else (sizes["m"], sizes["n"])
    dtype, output = _types(contraction.dtypes)
    try:
        return Problem(
            BATCH_MATMUL if sizes["b"] > 1 else MATMUL,
            (m, n, sizes["k"]),
            dtype,
            layout,
            output=narrow_output(dtype, output),
            batch=sizes["b"],
        )
    except UsageError as error:
        raise UnknownContractionError(error.message) from None


def _kinds(a: Sequence[int], b: Sequence[int], c: Sequence[int]) -> dict[int, str]:
    """Returns the kind of each loop: b, m, n or k."""
    kinds = {}
    for loop in dict.fromkeys((*a, *b, *c)):
        where = (loop in a, loop in b, loop in c)
        known = {
            (True, True, True): "b",
            (True, False, True): "m",
            (False, True, True): "n",
            (True, True, False): "k",
        }
        if where not in known:
            raise UnknownContractionError("a dimension of one operand alone: it is summed or repeated")
        kinds[loop] = known[where]
    return kinds


def _word(operand: Sequence[int], kinds: dict[int, str]) -> str:
    """Returns the kinds of an operand's dimensions, neighbours of one kind as one: "bmk"."""
    letters = [kinds[loop] for loop in operand]
    word = "".join(letter for place, letter in enumerate(letters) if letters[place - 1 : place] != [letter])
    if len(set(word)) != len(word):
        raise UnknownContractionError(f"rows or columns are apart in an operand: {''.join(letters)}")
    return word


def _require_one_order(operands: tuple[tuple[int, ...], ...], kinds: dict[int, str]) -> None:
    """Raises UnknownContractionError where loops of one kind have another order in another operand."""
    for kind in "bmnk":
        orders = {tuple(loop for loop in operand if kinds[loop] == kind) for operand in operands}
        if len(orders - {()}) > 1:
            raise UnknownContractionError("dimensions of one kind have another order in each operand")


def _layout(words: Words) -> tuple[str, bool]:
    """Returns the layout, and whether A and B change places: C^T = B^T A^T.

    A dimension of one element can be anywhere: where m or n is missing, m is 1.
    """
    a, b, c = words
    if any("b" in word[1:] for word in words):
        raise UnknownContractionError("the batch is not the first dimension")
    batches = {"b" in word for word in words}
    if len(batches) > 1:
        raise UnknownContractionError("an operand is shared by a batch whose other operand is not")
    a, b, c = (word.removeprefix("b") for word in words)
    tries = [(False, (a, b, c)), (True, _swapped(a, b, c))]
    if c == "m":  # a matrix and a vector: m is 1, not n
        tries.reverse()
    for is_swapped, (first, second, result) in tries:
        for (left, right), layout in LAYOUTS.items():
            if _fits(first, left) and _fits(second, right) and _fits(result, "mn"):
                return layout, is_swapped
    found = f"A {a or '1'}, B {b or '1'}, C {c or '1'}"
    raise UnknownContractionError(f"the layout is none of nn, nt, tn: {found}")


def _swapped(a: str, b: str, c: str) -> Words:
    """Returns the words with A and B, and with them m and n, exchanged."""
    exchange = str.maketrans("mn", "nm")
    return b.translate(exchange), a.translate(exchange), c.translate(exchange)


def _fits(word: str, wanted: str) -> bool:
    """Returns whether a word is the wanted one, perhaps without dimensions of one element."""
    return word == "".join(letter for letter in wanted if letter in word)


def _types(found: tuple[str, str, str]) -> tuple[str, str]:
    a, b, c = found
    if a != b or a not in DTYPES:
        raise UnknownContractionError(f"the types {a} and {b} of its inputs are not known together")
    return DTYPES[a], c


def _extents(maps: Sequence[ir.AffineMap], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the iterations of each loop, from the dimensions that it alone indexes."""
    extents = [0] * maps[0].n_dims
    for mapping, shape in zip(maps, shapes, strict=True):
        for result, size in zip(mapping.results, shape, strict=True):
            if isinstance(result, ir.AffineDimExpr):
                extents[int(result.position)] = size
    if 0 in extents:
        raise UnknownContractionError("a dimension has no elements, or no operand has its size")
    return tuple(extents)


def _loop(result: ir.AffineExpr, extents: tuple[int, ...]) -> int:
    """Returns the loop that indexes a dimension, -1 for none; others of a sum have one iteration.

    Raises UnknownContractionError for a window, a stride and the like.
    """
    if isinstance(result, ir.AffineConstantExpr):
        return -1
    if isinstance(result, ir.AffineDimExpr):
        return int(result.position)
    if isinstance(result, ir.AffineAddExpr):
        loops = [_loop(side, extents) for side in (result.lhs, result.rhs)]
        kept = [loop for loop in loops if loop >= 0 and extents[loop] > 1]
        if len(kept) <= 1:
            return kept[0] if kept else max(loops)
        raise UnknownContractionError("a window of more than one element moves over an operand")
    raise UnknownContractionError(f"an operand is indexed by {result}: a stride, or no plain dimension")


def _is_sum_of_products(op: Op) -> bool:
    """Returns whether an operation of two inputs yields ``c + a * b``, also with both inputs widened."""
    if len(op.operands) != 3 or len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    total = last_of(block).operands
    if len(total) != 1:
        return False
    for add, multiply in SUMS.items():
        found = op_of(total[0], add)
        if found is None or arguments[2] not in found.operands:
            continue
        others = [each for each in found.operands if each != arguments[2]]
        product = op_of(_widened(others[0]), multiply) if len(others) == 1 else None
        if product is None:
            continue
        factors = [_widened(each) for each in product.operands]
        return factors in (arguments[:2], arguments[1::-1])
    return False


def _widened(value: Value) -> Value:
    """Returns the operand of the extension that defines a value, else the value itself."""
    for name in WIDENED:
        extension = op_of(value, name)
        if extension is not None:
            operand: Value = extension.operands[0]
            return operand
    return value
