"""Matchers of contractions in the transform dialect: which op of a program an entry of a library is for.

A matcher compares extents, the numbers of bits of the element types and whether they are floats. It cannot
see indexing maps, so it is given ops of one layout only, which ``transform.structured.match`` finds by
attribute. It must not ask for a result, which an op on buffers does not have: MLIR 22 and 23 crash.
"""

from dataclasses import dataclass

from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem

ANY, PARAM, VALUE = "!transform.any_op", "!transform.param<i64>", "!transform.any_value"
LINALG = {MATMUL: "linalg.matmul", BATCH_MATMUL: "linalg.batch_matmul"}
# dtype -> bits of A and B, bits of C, and the two ops of the contraction's body
BODIES = {
    "f32": (32, 32, "arith.mulf", "arith.addf"),
    "f64": (64, 64, "arith.mulf", "arith.addf"),
    "i8": (8, 32, "arith.muli", "arith.addi"),
    "bf16": (16, 32, "arith.mulf", "arith.addf"),
}
AMBIGUOUS = ("bf16",)  # no matcher tells it from f16


@dataclass(frozen=True)
class MatchedContraction:
    """What an op must be for a schedule: its name, layout, extents and element types."""

    operation: str  # MATMUL or BATCH_MATMUL
    layout: str
    dtype: str
    sizes: tuple[int, int, int]  # (m, n, k)
    batch: int | None = None  # matrices; None: a matmul, or a batch_matmul of any number of matrices

    @property
    def linalg(self) -> str:
        return LINALG[self.operation]

    @property
    def extents(self) -> tuple[int | None, ...]:
        """Returns the extents of the op's loops in their order; None for one that may have any extent."""
        return self.sizes if self.operation == MATMUL else (self.batch, *self.sizes)


def contractions_of(problem: Problem) -> tuple[MatchedContraction, ...]:
    """Returns the contractions that a schedule of a problem is for; () where none can be recognized.

    The schedule of a matmul is for a batch of such matmuls as well, the schedule of a batch only for a batch
    of as many matrices. Batches are of layout nn: MLIR 22 loses the indexing maps of others on the way to
    single matrices.
    """
    m, n, k = problem.sizes
    given = (problem.layout, problem.dtype, (m, n, k))
    batch = problem.batch if problem.operation == BATCH_MATMUL else None
    batches = (MatchedContraction(BATCH_MATMUL, *given, batch),) if problem.layout == "nn" else ()
    return batches if problem.operation == BATCH_MATMUL else (MatchedContraction(MATMUL, *given), *batches)


def matcher(name: str, contraction: MatchedContraction) -> str:
    """Returns a named sequence ``@name`` that yields an op if it is the contraction, else fails.

    The op must be of the contraction's name and layout already.
    """
    input_bits, output_bits, multiply, add = BODIES[contraction.dtype]
    bitwidth = "transform.match.structured.elemental_bitwidth"
    lines = [f'      transform.match.structured.body %s {{contraction = ["{multiply}", "{add}"]}} : {ANY}']
    for axis, extent in enumerate(contraction.extents):
        if extent is not None:
            lines += [
                f"      %dim{axis} = transform.match.structured.dim %s[{axis}] : ({ANY}) -> {PARAM}",
                *_compared(f"%dim{axis}", extent),
            ]
    for kind, index, bits in (("input", 0, input_bits), ("input", 1, input_bits), ("init", 0, output_bits)):
        value = f"%{kind}{index}"
        lines += [
            f"      {value} = transform.match.structured.{kind} %s[{index}] : ({ANY}) -> {VALUE}",
            f"      {value}_bits = {bitwidth} {value} : ({VALUE}) -> {PARAM}",
            *_compared(f"{value}_bits", bits),
        ]
    body = "\n".join(lines)
    return f"""  transform.named_sequence @{name}(%op: {ANY} {{transform.readonly}}) -> {ANY} {{
    %matched = transform.match.structured failures(propagate) %op : ({ANY}) -> {ANY} {{
    ^bb0(%s: {ANY}):
{body}
      transform.match.structured.yield %s : {ANY}
    }}
    transform.yield %op : {ANY}
  }}
"""


def _compared(value: str, number: int) -> tuple[str, str]:
    constant = f"{value}_wanted"
    return (
        f"      {constant} = transform.param.constant {number} : i64 -> {PARAM}",
        f"      transform.match.param.cmpi eq {value}, {constant} : {PARAM}",
    )
