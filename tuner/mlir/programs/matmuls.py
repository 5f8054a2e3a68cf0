"""Recognizes the matmuls of functions: which problem a contraction is, and where C starts from zeros.

``find_matmuls`` gives the MatmulMatch of each; ``problem_of`` makes the problem of the loops of a
contraction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from tuner.core.dtypes import FLOATS, IEEE, NUMBER_TYPES, narrow_output
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import VIEWS, aliases_of, last_of, origins_of
from tuner.mlir.ir.linalg import EXTEND_UNSIGNED, GENERALIZE, factor_extensions
from tuner.mlir.ir.reading import any_where, maps_in, op_of, parents_of, types_of, walk
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.payload import ProgramPayload

# Which problem a contraction is: its loops sorted into batch, m, n and k, then compared with the layouts.
#
# Loops of one iteration do not count. Several loops of one kind become one where all operands have them next
# to each other in one order: a 1x1 convolution of (1, 14, 14, 64) is a matmul of 196 rows.

LAYOUTS = {("mk", "kn"): "nn", ("mk", "nk"): "nt", ("km", "kn"): "tn"}
DTYPES = {mlir: row.name for mlir, row in NUMBER_TYPES.items() if row.sums}  # MLIR's name -> Problem.dtype
# of the matmuls that are replaced; no payload states how f32 is multiplied, a user does (``math``)
MATMUL_DTYPES = FLOATS
LoopLetters = tuple[str, str, str]  # the letters of the loops of A, B and C, by dimension: mk, kn, mn


class UnknownContractionError(Exception):
    """A sum of products that no ``Problem`` describes; the text says why."""


@dataclass(frozen=True)
class ContractionLoops:
    """A contraction, C += A B over loops: the loop of each dimension of A, B and C, and types."""

    operands: tuple[tuple[int, ...], ...]  # loops of A, B, C by dimension; -1: none
    extents: tuple[int, ...]  # iterations of each loop
    dtypes: tuple[str, str, str]  # MLIR's element types of A, B, C


def contraction_of(op: Op) -> ContractionLoops | None:
    """Returns the contraction that a ``linalg.generic`` computes; None for another computation.

    Raises UnknownContractionError for a sum of products with a size that is 0 or not static, or with indices
    that are not loops, such as those of strides and of windows of several elements.
    """
    extensions = factor_extensions(op)
    if extensions is None or EXTEND_UNSIGNED in extensions:
        return None
    types = types_of(op.operands)
    if not all(isinstance(type_, ir.ShapedType) and type_.has_rank for type_ in types):
        raise UnknownContractionError("an operand is not an array")
    shapes = [tuple(type_.shape) for type_ in types]
    if not all(type_.has_static_shape for type_ in types) or min(chain.from_iterable(shapes), default=0) < 0:
        raise UnknownContractionError("its sizes are not static")
    maps = maps_in(op)
    iterations = [0] * maps[0].n_dims  # from the dimensions that a loop alone indexes
    for mapping, shape in zip(maps, shapes, strict=True):
        for result, size in zip(mapping.results, shape, strict=True):
            if isinstance(result, ir.AffineDimExpr):
                iterations[int(result.position)] = size
    if 0 in iterations:
        raise UnknownContractionError("a dimension has no elements, or no operand has its size")
    extents = tuple(iterations)
    operands = tuple(tuple(_loop(result, extents) for result in mapping.results) for mapping in maps)
    a, b, c = (str(type_.element_type) for type_ in types)
    return ContractionLoops(operands, extents, (a, b, c))


def problem_of(contraction: ContractionLoops) -> Problem:
    """Returns the problem of a contraction. Raises UnknownContractionError if no ``Problem`` describes it."""
    a, b, c = (
        tuple(loop for loop in operand if loop >= 0 and contraction.extents[loop] > 1)
        for operand in contraction.operands
    )
    return _problem((a, b, c), contraction)[0]


def matmul_of(op: Op, math: str = IEEE) -> tuple[Problem, bool] | None:
    """Returns the matmul that an operation computes on matrices, C += A B, and whether its first input is B.

    ``math``: how f32 is multiplied, a key of ``MATH``. None for other operations, element types and layouts.
    """
    contraction = _contraction_of_matrices(op)
    if contraction is None:
        return None
    return _matmul(contraction, math)


def _contraction_of_matrices(op: Op) -> ContractionLoops | None:
    try:
        contraction = contraction_of(op)
    except UnknownContractionError:
        return None
    if contraction is None or not isinstance(op.operands[2].type.element_type, ir.FloatType):
        return None
    *_, c = contraction.operands
    are_matrices = len(contraction.extents) == 3 and all(
        len(loops) == len(set(loops)) == 2 and -1 not in loops for loops in contraction.operands
    )
    expected = [loop in c for loop in range(3)]  # a loop is parallel if and only if it indexes C
    parallel = expected
    iterators = op.attributes.get("iterator_types")  # named operations have none
    if iterators is not None:
        parallel = [
            str(iterator) == "#linalg.iterator_type<parallel>" for iterator in ir.ArrayAttr(iterators)
        ]
    if are_matrices and parallel == expected:
        return contraction
    return None


def _matmul(contraction: ContractionLoops, math: str) -> tuple[Problem, bool] | None:
    try:
        problem, is_swapped = _problem(contraction.operands, contraction)
    except UnknownContractionError:
        return None
    if problem.dtype in MATMUL_DTYPES:
        return (problem.multiplied_as(math), is_swapped)
    return None


def _problem(operands: tuple[tuple[int, ...], ...], contraction: ContractionLoops) -> tuple[Problem, bool]:
    """Returns the problem of a contraction, and whether A and B change places (C^T = B^T A^T).

    ``operands``: the loops that index A, B and C. Raises UnknownContractionError if no ``Problem`` describes
    it.
    """
    a, b, c = operands
    letter_of = {  # whether A, B and C have a loop -> the letter of its size
        (True, True, True): "b",
        (True, False, True): "m",
        (False, True, True): "n",
        (True, True, False): "k",
    }
    letters = {loop: letter_of.get((loop in a, loop in b, loop in c), "") for loop in (*a, *b, *c)}
    if "" in letters.values():
        raise UnknownContractionError("a dimension of one operand alone: it is summed or repeated")
    sizes = dict.fromkeys("bmnk", 1)
    for loop, letter in letters.items():
        sizes[letter] *= contraction.extents[loop]
    loop_letters = (_word(a, letters), _word(b, letters), _word(c, letters))
    for letter in "bmnk":
        orders = {tuple(loop for loop in operand if letters[loop] == letter) for operand in operands}
        if len(orders - {()}) > 1:
            raise UnknownContractionError("dimensions of one kind have another order in each operand")
    layout, is_swapped = _layout(loop_letters)
    m, n = (sizes["n"], sizes["m"]) if is_swapped else (sizes["m"], sizes["n"])
    first, second, output = contraction.dtypes
    if first != second or first not in DTYPES:
        raise UnknownContractionError(f"the types {first} and {second} of its inputs are not known together")
    dtype = DTYPES[first]
    try:
        problem = MatmulProblem(
            BATCH_MATMUL if sizes["b"] > 1 else MATMUL,
            (m, n, sizes["k"]),
            dtype,
            layout,
            output=narrow_output(dtype, output),
            batch=sizes["b"],
        )
    except UsageError as error:
        raise UnknownContractionError(error.message) from None
    return problem, is_swapped


def _word(operand: Sequence[int], letters: dict[int, str]) -> str:
    """Returns the letters of an operand's dimensions, neighbours of one letter as one: "bmk".

    Raises UnknownContractionError if dimensions of one letter are not neighbours.
    """
    spelled = "".join(letters[loop] for loop in operand)
    word = "".join(letter for letter, _ in groupby(spelled))
    if len(set(word)) != len(word):
        raise UnknownContractionError(f"rows or columns are apart in an operand: {spelled}")
    return word


def _layout(loop_letters: LoopLetters) -> tuple[str, bool]:
    """Returns (layout, whether A and B change places: C^T = B^T A^T) of a product.

    ``loop_letters``: of the loops that index A, B and C, such as ("mk", "kn", "mn"). A matrix times a vector
    changes places where that makes the vector one row of A (m is 1). Raises UnknownContractionError for
    another layout than nn, nt and tn.
    """
    if any("b" in word[1:] for word in loop_letters):
        raise UnknownContractionError("the batch is not the first dimension")
    batches = {"b" in word for word in loop_letters}
    if len(batches) > 1:
        raise UnknownContractionError("an operand is shared by a batch whose other operand is not")
    a, b, c = (word.removeprefix("b") for word in loop_letters)
    exchange = str.maketrans("mn", "nm")
    swapped = (b.translate(exchange), a.translate(exchange), c.translate(exchange))
    tries = [(False, (a, b, c)), (True, swapped)]
    if c == "m":  # C is a column: prefer the exchange, by which m becomes 1
        tries.reverse()
    for is_swapped, (first, second, result) in tries:
        for (left, right), layout in LAYOUTS.items():
            if _fits(first, left) and _fits(second, right) and _fits(result, "mn"):
                return layout, is_swapped
    raise UnknownContractionError(f"the layout is not nn, nt or tn: A {a or '1'}, B {b or '1'}, C {c or '1'}")


def _fits(word: str, whole_word: str) -> bool:
    """Returns whether ``word`` is ``whole_word``, perhaps without letters of dimensions of size 1."""
    return word == "".join(letter for letter in whole_word if letter in word)


def _loop(result: ir.AffineExpr, extents: tuple[int, ...]) -> int:
    """Returns the loop of a dimension, -1 for none; raises UnknownContractionError for a window or stride."""
    if isinstance(result, ir.AffineConstantExpr):
        return -1
    if isinstance(result, ir.AffineDimExpr):
        return int(result.position)
    if isinstance(result, ir.AffineAddExpr):
        loops = [_loop(side, extents) for side in (result.lhs, result.rhs)]
        kept = [loop for loop in loops if loop >= 0 and extents[loop] > 1]
        if len(kept) <= 1:
            if kept:
                return kept[0]
            return max(loops)
        raise UnknownContractionError("a window of more than one element moves over an operand")
    raise UnknownContractionError(f"an operand is indexed by {result}: a stride, or no plain dimension")


def zero_fill_before(op: Op, c: Value) -> Op | None:
    """Returns the operation that fills ``c`` with zeros before ``op`` in the same block.

    None where there is none, where ``c`` may be accessed between the two, or where its address may be stored.
    """
    before = list(op.block.operations)
    index = next(index for index, other in enumerate(before) if other.operation == op)
    by_origin = list(map(aliases_of, origins_of(c)))
    if any(origin.is_kept for origin in by_origin):
        return None
    aliases = set(chain.from_iterable(origin.values for origin in by_origin))

    def may_access(inner: Op) -> bool:
        accesses = inner.name not in VIEWS and any(value in aliases for value in inner.operands)
        # A callee may access C, and work of the GPU may access it until a wait.
        return accesses or inner.name in ("func.call", "gpu.wait")

    for other in reversed([operation.operation for operation in before[:index]]):
        if _is_zero_fill(other) and other.operands[-1] == c:
            return other
        if any_where(other, may_access):
            return None
    return None


def _is_zero_fill(op: Op) -> bool:
    if op.name != "linalg.generic" or len(op.operands) != 2 or isinstance(op.operands[0].type, ir.MemRefType):
        return False
    block = op.regions[0].blocks[0]
    constant = op_of(op.operands[0], "arith.constant")
    if constant is None or last_of(block).operands[0] != block.arguments[0]:
        return False
    number = constant.attributes["value"]
    output = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[1]).value
    is_whole = output == ir.AffineMap.get_identity(output.n_dims)
    return is_whole and isinstance(number, ir.FloatAttr) and float(number.value) == 0.0


@dataclass(frozen=True)
class MatmulMatch:
    """A ``linalg.generic`` that computes ``C += A B``, with its operands and its matmul problem."""

    op: Op  # linalg.generic: C += A B
    problem: Problem
    a: Value
    b: Value
    c: Value
    zero_fill: Op | None  # the fill of C before ``op``, which turns ``+=`` into ``=``


def find_matmuls(payload: ProgramPayload, math: str = IEEE) -> list[MatmulMatch]:
    """Returns the matmuls of a payload's entry function in program order, also those in loops.

    ``math``: how f32 is multiplied, a key of ``MATH``; the problems have the type of that mode.
    Generalizes named linalg operations in place. Omits matmuls inside kernels, and those that no ``Problem``
    describes. Raises CandidateError(COMPILE) for a matmul whose output is one of its factors: the
    result would depend on the order of iterations.
    """
    run_passes(payload.module, GENERALIZE)
    generics = walk(payload.function, "linalg.generic")
    matches = (
        _match(op, math) for op in generics if "gpu.launch" not in [parent.name for parent in parents_of(op)]
    )
    return [match for match in matches if match is not None]


def _match(op: Op, math: str) -> MatmulMatch | None:
    if not all(isinstance(operand.type, ir.MemRefType) for operand in op.operands):
        return None
    contraction = _contraction_of_matrices(op)
    if contraction is None:
        return None
    a, b, c = op.operands
    if c in (a, b):
        raise CandidateError(
            Stage.COMPILE, "payload: a matmul writes into its own input: C needs memory of its own"
        )
    matmul = _matmul(contraction, math)
    if matmul is None:
        return None
    problem, is_swapped = matmul
    a, b = (b, a) if is_swapped else (a, b)
    return MatmulMatch(op, problem, a, b, c, zero_fill_before(op, c))


def problems_of(payload: ProgramPayload, math: str = IEEE) -> tuple[Problem, ...]:
    """Returns the distinct matmul problems of a program in order; generalizes linalg operations in place.

    ``math``: how f32 is multiplied, a key of ``MATH``.
    Raises CandidateError(COMPILE) for a matmul whose output is one of its factors.
    """
    return tuple(dict.fromkeys(match.problem for match in find_matmuls(payload, math)))
