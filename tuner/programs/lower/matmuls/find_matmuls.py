"""Finds the matmuls of a function on memrefs: contractions that a ``Problem`` can describe.

Takes linalg on memrefs; returns the operations whose indexing maps, iterator types and body match ``C += A
B`` in a known layout. Named operations are generalized first, so that one matcher handles ``linalg.matmul``
with any maps, ``linalg.contract`` and a hand-written ``linalg.generic``. Not matched, and therefore lowered
to loops: batched or dynamic shapes, other element types, layouts other than nn, nt and tn, and matmuls inside
kernels.
"""

from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul, Problem, natural_output, output_names
from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.walking import parents_of, walk
from tuner.programs.lower.matmuls.zero_fills import zero_fill_before
from tuner.programs.lower.read_program import ProgramPayload

GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"
DTYPES = ("f32", "f64", "f16", "bf16")  # tf32 is f32 that a user chose to round; no payload states this
LAYOUTS = {("mk", "kn"): "nn", ("mk", "nk"): "nt", ("km", "kn"): "tn"}
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
    if len(op.operands) != 3 or not _is_sum_of_products(op):
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
    is_known = letters in LAYOUTS and dtype in DTYPES and str(b.element_type) == dtype
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
    """Returns the loop dimension of each result of a map; None where a result is not a plain dimension."""
    results = list(mapping.results)
    if not all(isinstance(each, ir.AffineDimExpr) for each in results):
        return None
    return [int(each.position) for each in results]


def _iterator(attribute: Attribute) -> str:
    return str(attribute).removeprefix("#linalg.iterator_type<").removesuffix(">")


def _is_sum_of_products(op: Op) -> bool:
    """Returns whether the body yields ``c + a * b``, with or without extending the factors first."""
    if len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    total = op_of(last_of(block).operands[0], "arith.addf")
    if total is None or arguments[2] not in total.operands:
        return False
    (product,) = [each for each in total.operands if each != arguments[2]] or [None]
    product = None if product is None else op_of(_widened(product), "arith.mulf")
    if product is None:
        return False
    factors = [_widened(each) for each in product.operands]
    return factors in (arguments[:2], arguments[1::-1])


def _widened(value: Value) -> Value:
    """Returns the operand of the ``arith.extf`` that defines a value, else the value itself."""
    extension = op_of(value, "arith.extf")
    return value if extension is None else extension.operands[0]
