"""Recognizes the matmuls of functions: which problem a contraction is, and where C starts from zeros.

``contraction_of`` reads loops from indexing maps, ``problem_of`` compares them with the layouts;
``find_matmuls`` does so for a payload, ``model_contractions`` for a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import CandidateError, Stage, UsageError, failing_at
from tuner.core.problem import (
    BATCH_MATMUL,
    MATMUL,
    Matmul,
    Problem,
    narrow_output,
    natural_output,
    output_names,
)
from tuner.core.serialization import read_text
from tuner.mlir.bindings import Attribute, Op, Type, Value, WalkResult, ir
from tuner.mlir.effects.aliases import VIEWS, aliases_of, last_of, origins_of
from tuner.mlir.ir.reading import op_of, parents_of, walk, walk_ops
from tuner.mlir.passes import run_passes
from tuner.mlir.transform import new_context
from tuner.programs.lowering.read_program import ProgramPayload
from tuner.programs.request import named_in_errors
from tuner.programs.streams.gpux_ops import parse_with_gpux
from tuner.runtime.workers.worker import call_in_child
from tuner.tuning.campaign import NamedProblem, combined

# ------------------------------------------------------------------------------
# Which problem a contraction is: its loops sorted into batch, m, n and k, then compared with the layouts.
#
# Loops of one iteration do not count. Several loops of one kind become one where all operands have them next
# to each other in one order: a 1x1 convolution of (1, 14, 14, 64) is a matmul of 196 rows.


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
class ContractionLoops:
    """A sum of products over loops: which loops index the dimensions of A, B and C, and how long they are."""

    operands: tuple[tuple[int, ...], ...]  # loops of A, B, C by dimension
    extents: tuple[int, ...]  # iterations of each loop
    dtypes: tuple[str, str, str]  # MLIR's element types of A, B, C


def contraction_of(op: Op) -> ContractionLoops | None:
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
    return ContractionLoops(operands, extents, (a, b, c))


def problem_of(contraction: ContractionLoops) -> Problem:
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


# ------------------------------------------------------------------------------
# Finds the contractions of a model: which problems its functions contain, how often, under which names.
#
# Takes MLIR text with any number of functions, on tensors or memrefs; nothing is inlined or run. Named linalg
# operations are generalized first, so that one matcher handles ``linalg.matmul``, ``batch_matmul``,
# ``matvec``, ``vecmat``, their transposed and broadcast variants, 1x1 convolutions and a hand-written
# ``linalg.generic``.


GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class _Finder:
    """What a child process does: a value, so that it can be sent there."""

    text: str

    def __call__(self) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
        with failing_at(Stage.BIND):
            return contractions_in(self.text)


def model_contractions(file: Path) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    """Returns the problems in a file of MLIR, each once, and why contractions are left out: a line each.

    A problem has the names of the functions that it occurs in, and counts how often it is written there; the
    iterations of a loop around it do not count. The text is read in a child process. Raises UsageError for a
    file that cannot be read, that is no MLIR, and where no contraction is a problem.
    """
    text = read_text(file, "MLIR text")
    with named_in_errors(file.name, text):
        problems, left_out = call_in_child("model", _Finder(text), TIMEOUT_S)
    if not problems:
        why = f": {left_out[0]}" if left_out else ""
        raise UsageError(f"{file.name}: has no contraction of static sizes and known types{why}")
    return problems, left_out


def contractions_in(text: str) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    """Returns the problems in MLIR text, each once, and why contractions are left out: a line each.

    Raises UsageError for text that does not parse.
    """
    with new_context(), ir.Location.unknown():
        module = parse_with_gpux(text, "payload")
        run_passes(module, GENERALIZE)
        problems: list[NamedProblem] = []
        left_out: list[str] = []
        for op in walk(module.operation, "linalg.generic"):
            try:
                contraction = contraction_of(op)
                if contraction is not None:
                    problems.append(NamedProblem(problem_of(contraction), _function_of(op)))
            except UnknownContractionError as error:
                left_out.append(f"{_function_of(op)}: {error}")
    return combined(tuple(problems)), tuple(dict.fromkeys(left_out))


def _function_of(op: Op) -> str:
    for parent in parents_of(op):
        if parent.name == "func.func":
            return str(ir.StringAttr(parent.attributes["sym_name"]).value)
    return ""


# ------------------------------------------------------------------------------
# Finds the fill with zeros that turns ``C += A B`` into ``C = A B``.
#
# Searches backwards through one block of linalg on memrefs, up to the first operation that may access C or a
# view of C. A fill in another block, or by an operation other than a ``linalg.generic`` of a constant, is not
# found.


def zero_fill_before(op: Op, c: Value) -> Op | None:
    """Returns the operation that fills ``c`` with zeros before ``op`` in the same block, or None.

    None also if an operation between the two may access ``c``.
    """
    before = list(op.block.operations)
    index = next(number for number, other in enumerate(before) if other.operation == op)
    found = [aliases_of(origin) for origin in origins_of(c)]
    if any(each.is_kept for each in found):
        return None
    aliases = {value for each in found for value in each.values}
    for other in reversed([each.operation for each in before[:index]]):
        if _is_zero_fill(other) and other.operands[-1] == c:
            return other
        if _may_touch(other, aliases):
            return None
    return None


def _may_touch(op: Op, aliases: set[Value]) -> bool:
    found: list[bool] = []

    def visit(inner: Op) -> WalkResult:
        reads = inner.name not in VIEWS and any(value in aliases for value in inner.operands)
        if reads or inner.name in ("func.call", "gpu.wait"):
            found.append(True)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    walk_ops(op, visit)
    return bool(found)


def _is_zero_fill(op: Op) -> bool:
    """Returns whether a linalg.generic writes zero to every element of its only buffer."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or isinstance(op.operands[0].type, ir.MemRefType):
        return False
    block, constant = op.regions[0].blocks[0], op_of(op.operands[0], "arith.constant")
    if constant is None or last_of(block).operands[0] != block.arguments[0]:
        return False
    number = constant.attributes["value"]
    output = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[1]).value
    is_whole = output == ir.AffineMap.get_identity(output.n_dims)
    return is_whole and isinstance(number, ir.FloatAttr) and float(number.value) == 0.0


# ------------------------------------------------------------------------------
# Finds the matmuls of a function on memrefs: contractions that a ``Problem`` can describe.
#
# Takes linalg on memrefs; returns the operations whose indexing maps, iterator types and body match ``C += A
# B`` in a known layout. Named operations are generalized first, so that one matcher handles ``linalg.matmul``
# with any maps, ``linalg.contract`` and a hand-written ``linalg.generic``. Not matched, and therefore lowered
# to loops: batched or dynamic shapes, other element types, layouts other than nn, nt and tn, and matmuls
# inside kernels.


MATMUL_DTYPES = (
    "f32",
    "f64",
    "f16",
    "bf16",
)  # tf32 is f32 that a user chose to round; no payload states this
ITERATORS = {"m": "parallel", "n": "parallel", "k": "reduction"}


@dataclass(frozen=True)
class MatmulMatch:
    """A ``linalg.generic`` that computes ``C += A B``, with its operands and its matmul problem."""

    op: Op  # linalg.generic: C += A B
    problem: Problem
    a: Value
    b: Value
    c: Value
    zero_fill: Op | None  # the fill of C before ``op``, which turns ``+=`` into ``=``


def find_matmuls(payload: ProgramPayload) -> list[MatmulMatch]:
    """Returns the matmuls of a payload's entry function in program order, also those in loops.

    Generalizes named linalg operations to ``linalg.generic``, in place. Matmuls inside kernels, and shapes,
    types or layouts that a problem cannot describe, are omitted.

    Raises CandidateError(COMPILE) for a matmul whose output is one of its factors: the result would depend on
    the order of iterations.
    """
    run_passes(payload.module, GENERALIZE)
    matches = (_match(op) for op in walk(payload.function, "linalg.generic") if not _is_in_kernel(op))
    return [match for match in matches if match is not None]


def _is_in_kernel(op: Op) -> bool:
    return any(each.name == "gpu.launch" for each in parents_of(op))


def _match(op: Op) -> MatmulMatch | None:
    if len(op.operands) != 3 or not _has_sum_of_products(op):
        return None
    types = [value.type for value in op.operands]
    if not all(isinstance(each, ir.MemRefType) and each.has_static_shape for each in types):
        return None
    letters = _letters(op)
    if letters is None:
        return None
    a, b, c = op.operands
    if letters[0] in ("kn", "nk"):
        a, b, letters = b, a, (letters[1], letters[0])
    if c in (a, b):
        raise CandidateError(
            Stage.COMPILE, "payload: a matmul writes into its own input: C needs memory of its own"
        )
    problem = _problem(a.type, b.type, c.type, letters)
    return None if problem is None else MatmulMatch(op, problem, a, b, c, zero_fill_before(op, c))


def _problem(a: Type, b: Type, c: Type, letters: tuple[str, str]) -> Problem | None:
    dtype, output = str(a.element_type), str(c.element_type)
    is_known = letters in LAYOUTS and dtype in MATMUL_DTYPES and str(b.element_type) == dtype
    if not is_known or output not in output_names(dtype) or 0 in (*a.shape, *b.shape):
        return None
    m, n = c.shape
    k = a.shape[letters[0].index("k")]
    return Matmul(m, n, k, dtype, LAYOUTS[letters], output="" if output == natural_output(dtype) else output)


def _letters(op: Op) -> tuple[str, str] | None:
    """Names the dimensions of A and B, as in ("mk", "kn"); None if an operand has not two of the three."""
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    if any(each.n_dims != 3 or len(list(each.results)) != 2 for each in maps):
        return None
    positions = [_positions(each) for each in maps]
    if any(each is None or len(set(each)) != 2 for each in positions):
        return None
    row, column = positions[2]  # type: ignore[misc] # checked above
    names = {row: "m", column: "n", ({0, 1, 2} - {row, column}).pop(): "k"}
    iterators = [_iterator(each) for each in ir.ArrayAttr(op.attributes["iterator_types"])]
    if any(iterators[dimension] != ITERATORS[letter] for dimension, letter in names.items()):
        return None
    first, second = ("".join(names[each] for each in operand) for operand in positions[:2])  # type: ignore[union-attr]
    return first, second


def _positions(mapping: ir.AffineMap) -> list[int] | None:
    results = list(mapping.results)
    if not all(isinstance(each, ir.AffineDimExpr) for each in results):
        return None
    return [int(each.position) for each in results]


def _iterator(attribute: Attribute) -> str:
    return str(attribute).removeprefix("#linalg.iterator_type<").removesuffix(">")


def _has_sum_of_products(op: Op) -> bool:
    """Returns whether the body yields ``c + a * b``, with or without extending the factors first."""
    if len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    total = op_of(last_of(block).operands[0], "arith.addf")
    if total is None or arguments[2] not in total.operands:
        return False
    (product,) = [each for each in total.operands if each != arguments[2]] or [None]
    product = None if product is None else op_of(_widened_operand(product), "arith.mulf")
    if product is None:
        return False
    factors = [_widened_operand(each) for each in product.operands]
    return factors in (arguments[:2], arguments[1::-1])


def _widened_operand(value: Value) -> Value:
    """Returns the operand of the ``arith.extf`` that defines a value, else the value itself."""
    extension = op_of(value, "arith.extf")
    return value if extension is None else extension.operands[0]
