"""Matchers of contractions in the transform dialect: they find the op that a schedule is for.

A matcher compares extents, the numbers of bits of the element types and whether they are floats. It cannot
see indexing maps, so it is given ops of one layout only, which ``transform.structured.match`` finds by
attribute. It must not ask for a result, which an op on buffers does not have: MLIR 22 and 23 crash.
"""

from dataclasses import dataclass

from tuner.core.dtypes import FLOATS, number_type
from tuner.core.problem import BATCH_MATMUL, MATMUL, OF_BATCHES, Problem

ANY = "!transform.any_op"
PARAM = "!transform.param<i64>"
VALUE = "!transform.any_value"
LINALG = {MATMUL: "linalg.matmul", BATCH_MATMUL: "linalg.batch_matmul"}
# Floats of equal width, which no matcher tells from one another: bf16 and f16.
AMBIGUOUS = tuple(
    name for name in FLOATS if [number_type(other).bits for other in FLOATS].count(number_type(name).bits) > 1
)


@dataclass(frozen=True)
class MatchedContraction:
    """The properties that an op must have for a schedule: its name, layout, extents and element types."""

    operation: str  # MATMUL or BATCH_MATMUL
    layout: str
    dtype: str
    sizes: tuple[int, int, int]  # (m, n, k)
    batch: int | None = None  # matrices; None: a matmul, or a batch_matmul of any number of matrices

    @property
    def linalg(self) -> str:
        """Returns the op's name, such as "linalg.matmul"."""
        return LINALG[self.operation]

    @property
    def has_batch(self) -> bool:
        return self.operation in OF_BATCHES

    @property
    def extents(self) -> tuple[int | None, ...]:
        """Returns the extents of the op's loops in their order; None for one that may have any extent."""
        if self.has_batch:
            return (self.batch, *self.sizes)
        return self.sizes


def contractions_of(problem: Problem) -> tuple[MatchedContraction, ...]:
    """Returns the contractions that a schedule of a problem fits; () if none can be recognized.

    The schedule of a matmul also fits a batch of such matmuls; the schedule of a batch fits only a batch of
    as many matrices. Batches are of layout nn: MLIR 22 loses the indexing maps of others on the way to single
    matrices.
    """
    m, n, k = problem.sizes
    properties = (problem.layout, problem.dtype, (m, n, k))
    batch = problem.batch if problem.lead else None
    batches = (MatchedContraction(BATCH_MATMUL, *properties, batch),) if problem.layout == "nn" else ()
    if problem.lead:
        return batches
    return (MatchedContraction(MATMUL, *properties), *batches)


def matcher(name: str, contraction: MatchedContraction) -> str:
    """Returns the text of a named sequence ``@name`` that yields an op if it is the contraction, else fails.

    The sequence must be given ops that have the contraction's name and layout already.
    """
    inputs = number_type(contraction.dtype)
    input_bits = inputs.bits
    output_bits = number_type(inputs.sums).bits
    ending = "f" if inputs.is_float else "i"
    multiply = f"arith.mul{ending}"
    add = f"arith.add{ending}"
    bitwidth = "transform.match.structured.elemental_bitwidth"
    lines = [f'      transform.match.structured.body %s {{contraction = ["{multiply}", "{add}"]}} : {ANY}']
    for axis, extent in enumerate(contraction.extents):
        if extent is not None:
            lines += [
                f"      %dim{axis} = transform.match.structured.dim %s[{axis}] : ({ANY}) -> {PARAM}",
                *_compared(f"%dim{axis}", extent),
            ]
    for role, index, bits in (("input", 0, input_bits), ("input", 1, input_bits), ("init", 0, output_bits)):
        value = f"%{role}{index}"
        lines += [
            f"      {value} = transform.match.structured.{role} %s[{index}] : ({ANY}) -> {VALUE}",
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
