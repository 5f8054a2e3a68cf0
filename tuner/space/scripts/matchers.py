"""Matchers of contractions in the transform dialect: they find the op that a schedule is for.

A matcher compares extents, the numbers of bits of the element types and whether they are floats. It cannot
see indexing maps, so it is given ops of one layout only, which ``transform.structured.match`` finds by
attribute. It must not ask for a result, which an op on buffers does not have: MLIR 22 and 23 crash.
"""

from dataclasses import dataclass, replace

from tuner.core.dtypes import FLOATS, number_type
from tuner.core.interfaces import Partition
from tuner.core.problem import BATCH_MATMUL, MATMUL, OF_BATCHES, Problem
from tuner.payload.cpu import has_epilogue, maps_attribute, tensor_type

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
    given = (problem.layout, problem.dtype, (m, n, k))
    batch = problem.batch if problem.lead else None
    batches = (MatchedContraction(BATCH_MATMUL, *given, batch),) if problem.layout == "nn" else ()
    if problem.lead:
        return batches
    return (MatchedContraction(MATMUL, *given), *batches)


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


# The guard of a bound script: sequences that find the matmul that the script is for, and refuse all else.
#
# Upstream has no op for a message: a comparison fails, and its location says what was wanted. ``mlir-opt``
# prints both in one line, of which this is an example::
#
#     error: loc("this schedule is for one linalg.matmul, tensor<24x32xf32> * tensor<32x64xf32> to
#     tensor<24x64xf32>; such matmuls"): expected parameter to be equal to 1, got 0


def guard_name(partition: Partition) -> str:
    """Returns the name of a partition's guard sequence: ``the_matmul``.

    For a part of C ``the_matmul_64x32``.
    """
    return f"the_{partition.entry}"


def guard(problem: Problem, partition: Partition, has_second_kernel: bool = False) -> str:
    """Returns the text of the sequence ``@the_<entry>``, such as ``@the_matmul``, for a partition's function.

    The sequence yields the only linalg.matmul of the partition's sizes, layout and types, on tensors. It
    fails for a payload without such an op, or if the function has other ops than the epilogue.
    ``has_second_kernel``: the epilogue is in another function, which adds up parts of K.
    """
    part = replace(problem, sizes=(partition.m, partition.n, problem.sizes[2]))
    a, b = (tensor_type(shape[-2:], part.stored_dtype) for shape in (part.a_shape, part.b_shape))
    c = tensor_type(part.c_shape[-2:], part.accumulator)
    wanted_a = f"transposed {a}" if problem.layout == "tn" else a
    wanted_b = f"transposed {b}" if problem.layout == "nt" else b
    wanted = f"this schedule is for one linalg.matmul, {wanted_a} * {wanted_b} to {c}"
    ops = '["linalg.matmul"]'
    expected = ""
    number = "%one"
    alone = "this schedule is for a function with one linalg.matmul"
    if has_epilogue(problem) and not has_second_kernel:
        alone += f" and one linalg.generic ({problem.epilogue} to {problem.result_dtype})"
        ops = '["linalg.matmul", "linalg.generic"]'
        number = "%two"
        expected = "    %two = transform.param.constant 2 : i64 -> !size\n"
    return f"""  // Finds the matmul that the steps are for; where a payload has none, its line says so.
  transform.named_sequence @{guard_name(partition)}(%root: !op {{transform.readonly}}) -> !op {{
    %matmul = transform.structured.match ops{{["linalg.matmul"]}}
      attributes{{{maps_attribute(MATMUL, problem.layout)}}}
      filter_operand_types = [{a}, {b}, {c}] in %root : (!op) -> !op
    %found = transform.num_associations %matmul : (!op) -> !size
    %one = transform.param.constant 1 : i64 -> !size
    transform.match.param.cmpi eq %found, %one : !size
      loc("{wanted}; such matmuls")
    %function = transform.get_parent_op %matmul {{op_name = "func.func"}} : (!op) -> !op
    %ops = transform.structured.match ops{{{ops}}} in %function : (!op) -> !op
    %there = transform.num_associations %ops : (!op) -> !size
{expected}    transform.match.param.cmpi eq %there, {number} : !size loc("{alone}; such ops")
    transform.yield %matmul : !op
  }}
"""
