"""What a script is for: matchers and guards that find its matmul; its halves at its bufferization."""

from collections.abc import Iterable
from dataclasses import dataclass

from tuner.core.interfaces import Partition
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem
from tuner.payload.cpu import ENTRY, MAPS

# Matchers of contractions in the transform dialect: which op of another program an entry is for.
#
# A matcher compares extents, the numbers of bits of the element types and whether they are floats. It cannot
# see indexing maps, so it is given ops of one layout only, which ``transform.structured.match`` finds by
# attribute. It must not ask for a result, which an op on buffers does not have: MLIR 22 and 23 crash.


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


def maps_attribute(operation: str, layout: str) -> str:
    """Returns the attribute by which ops of a layout are found: ``indexing_maps = [affine_map<...>]``."""
    lead = "b, " if operation == BATCH_MATMUL else ""
    results = (*MAPS[layout], "(m, n)")
    maps = (f"affine_map<({lead}m, n, k) -> ({lead}{result[1:]}>" for result in results)
    return f"indexing_maps = [{', '.join(maps)}]"


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


# The guard of a bound script: named sequences that find the matmul the script is for, and refuse any other
# payload with one line.
# Upstream has no op for a message: a comparison fails, and its location says what was wanted. ``mlir-opt``
# prints both in one line.


def payload_sequences(
    problem: Problem, partitions: Iterable[Partition], has_second_kernel: bool = False
) -> tuple[str, ...]:
    """Returns the text of the sequence ``@the_matmul<entry>`` of each partition's function, in their order.

    A sequence yields the one linalg.matmul of the partition's sizes, layout and types, on tensors, which is
    alone in its function but for the epilogue. For a payload without it the sequence fails.
    ``has_second_kernel``: the epilogue is in another function, which adds up parts of K.
    """
    return tuple(_guard(problem, partition, has_second_kernel) for partition in partitions)


def guard_name(partition: Partition) -> str:
    """Returns the name of a partition's sequence: ``the_matmul``, or ``the_matmul_64x32`` of a part of C."""
    return f"the_{partition.entry}"


def _guard(problem: Problem, partition: Partition, has_second_kernel: bool) -> str:
    m, n, k = partition.m, partition.n, problem.sizes[2]
    a = f"tensor<{f'{k}x{m}' if problem.layout == 'tn' else f'{m}x{k}'}x{problem.stored_dtype}>"
    b = f"tensor<{f'{n}x{k}' if problem.layout == 'nt' else f'{k}x{n}'}x{problem.stored_dtype}>"
    c = f"tensor<{m}x{n}x{problem.accumulator}>"
    turned_a, turned_b = "transposed " * (problem.layout == "tn"), "transposed " * (problem.layout == "nt")
    wanted = f"this schedule is for one linalg.matmul, {turned_a}{a} * {turned_b}{b} to {c}"
    ops, expected, number = '["linalg.matmul"]', "", "%one"
    alone = "this schedule is for a function with one linalg.matmul"
    if has_epilogue(problem) and not has_second_kernel:
        alone += f" and one linalg.generic after it ({problem.epilogue} to {problem.result_dtype})"
        ops, number = '["linalg.matmul", "linalg.generic"]', "%two"
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


def has_epilogue(problem: Problem) -> bool:
    """Returns whether an elementwise operation follows the matmul: an epilogue, or a conversion of C."""
    return problem.epilogue != "none" or problem.result_dtype != problem.accumulator


# A bound script of the shipped CPU strategies in two halves: what works on tensors, what works on buffers.
#
# In a library many schedules share one bufferization of the whole module, so the half before it runs on the
# function of each contraction, then the module is bufferized, then the half after it runs.


ALIASES = """!op = !transform.any_op
!loop = !transform.op<"scf.for">
!size = !transform.param<i64>
"""
MATMUL_OF = """    %matmul = transform.structured.match ops{["linalg.matmul"]} in %function : (!op) -> !op
"""  # of a function in a library
HEAD = f"""{ALIASES}
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !op {{transform.consumed}}) {{
"""
FIND = """    %matmul = transform.include @the_matmul failures(propagate) (%root) : (!op) -> !op
    %function = transform.get_parent_op %matmul {op_name = "func.func"} : (!op) -> !op
"""
BUFFERIZE = """    transform.annotate %function "tuned" : !op
    %buffers = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %root
      {bufferize_function_boundaries = true, memcpy_op = "linalg.copy"} : (!op) -> !op
    %on_buffers = transform.structured.match ops{["func.func"]} attributes{tuned} in %buffers : (!op) -> !op
"""
SIMPLIFY = """  transform.named_sequence @simplify(%function: !op {transform.readonly}) {
    transform.apply_patterns to %function {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
    } {apply_cse} : !op
    transform.yield
  }
"""
END = f"    transform.yield\n  }}\n\n{SIMPLIFY}"


@dataclass(frozen=True)
class ScriptHalves:
    """The steps of a bound script before and after its bufferization: lines, each with its line break.

    Steps on tensors take ``%matmul`` and ``%function``; older libraries have other names, which are kept.
    """

    tensors: str
    buffers: str
    function: str = "%function"
    buffers_function: str = "%on_buffers"

    def script(self, problem: Problem) -> str:
        """Returns the script that the halves are of, so that a schedule can be taken out of a library."""
        guard = payload_sequences(problem, (Partition(ENTRY, 0, 0, *problem.sizes[:2]),))[0]
        find, bufferize = (
            FIND.replace("%function", self.function),
            BUFFERIZE.replace("%function", self.function),
        )
        bufferize = bufferize.replace("%on_buffers", self.buffers_function)
        return f"{HEAD}{find}{self.tensors}{bufferize}{self.buffers}{END}\n{guard}}}\n"


def halves_of(script: str, problem: Problem) -> ScriptHalves | str:
    """Returns the halves of a bound script, or why it has none, as a clause.

    The halves are those from which the same script, but for comments and blank lines, can be put together.
    """
    if "include @the_matmul_" in script:
        return "it is for several partitions of C, one for each thread"
    tensors, bufferize, buffers = script.partition(FIND)[2].partition(BUFFERIZE)
    halves = ScriptHalves(tensors, buffers.partition(END)[0])
    if not bufferize or _code(halves.script(problem)) != _code(script):
        return "its steps are not those of a shipped strategy: one matmul, one bufferization"
    return halves


def _code(script: str) -> str:
    """Returns a script without blank lines and lines that are comments."""
    lines = script.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() and not line.strip().startswith("//"))
