"""Matchers that find the contraction a script is for, and the split of a script where it bufferizes."""

import re
from dataclasses import dataclass

from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem
from tuner.payload.cpu import MAPS

# ------------------------------------------------------------------------------
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
LOOPS = {3: ("m", "n", "k"), 4: ("batch", "m", "n", "k")}  # by their number
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


def matcher(name: str, contraction: MatchedContraction, wanted: str = "") -> str:
    """Returns a named sequence ``@name`` that yields an op if it is the contraction, else fails.

    The op must be of the contraction's name and layout already. With ``wanted``, the steps that compare
    have it as their location, so that an error has both what was wanted and what was found.
    """
    input_bits, output_bits, multiply, add = BODIES[contraction.dtype]
    bitwidth = "transform.match.structured.elemental_bitwidth"
    lines = [f'      transform.match.structured.body %s {{contraction = ["{multiply}", "{add}"]}} : {ANY}']
    for axis, extent in enumerate(contraction.extents):
        if extent is not None:
            lines += [
                f"      %dim{axis} = transform.match.structured.dim %s[{axis}] : ({ANY}) -> {PARAM}",
                *_compared(f"%dim{axis}", extent, wanted, LOOPS[len(contraction.extents)][axis]),
            ]
    for kind, index, bits in (("input", 0, input_bits), ("input", 1, input_bits), ("init", 0, output_bits)):
        value = f"%{kind}{index}"
        lines += [
            f"      {value} = transform.match.structured.{kind} %s[{index}] : ({ANY}) -> {VALUE}",
            f"      {value}_bits = {bitwidth} {value} : ({VALUE}) -> {PARAM}",
            *_compared(f"{value}_bits", bits, wanted, f"bits of {'C' if kind == 'init' else 'AB'[index]}"),
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


def _compared(value: str, number: int, wanted: str, what: str) -> tuple[str, str]:
    constant = f"{value}_wanted"
    location = f' loc("{wanted}; its {what}")' if wanted else ""
    return (
        f"      {constant} = transform.param.constant {number} : i64 -> {PARAM}",
        f"      transform.match.param.cmpi eq {value}, {constant} : {PARAM}{location}",
    )


# ------------------------------------------------------------------------------
# A bound script of the shipped CPU strategies in two halves: what works on tensors, what works on buffers.
#
# In a library many schedules share one bufferization of the whole module, so the half before it runs on the
# function of each contraction, then the module is bufferized, then the half after it runs.


HEAD = "module attributes {transform.with_named_sequence} {\n  transform.named_sequence @__transform_main("
# The first step: the function of the whole problem. Scripts for several threads have one for each partition.
FUNCTION = re.compile(
    r"    (?P<handle>%\w+) = transform\.structured\.match ops\{\[\"func\.func\"\]\} "
    r"attributes\{sym_name = \"(?P<name>\w+)\"\} in %root : .*\n"
)
EMPTY = re.compile(r"    transform\.structured\.eliminate_empty_tensors %\w+ : .*\n")
BUFFERIZE = re.compile(
    r"    (?P<handle>%\w+) = transform\.bufferization\.one_shot_bufferize %\w+ .*\n",
)
END = "    transform.yield\n  }\n}\n"


@dataclass(frozen=True)
class ScriptHalves:
    """The steps of a bound script before and after its bufferization, each with the handle that it takes."""

    function: str  # handle of the function on tensors: "%func_matmul"
    tensors: str  # lines, each with its line break
    buffers_function: str  # handle of the function on buffers: "%buffers_matmul"
    buffers: str

    @property
    def script(self) -> str:
        """Returns the script that the halves are of, so that a schedule can be taken out of a library."""
        op = "!transform.any_op"
        return (
            f"{HEAD}%root: {op}) {{\n"
            f'    {self.function} = transform.structured.match ops{{["func.func"]}} '
            f'attributes{{sym_name = "matmul"}} in %root : ({op}) -> {op}\n'
            f"{self.tensors}"
            f"    transform.structured.eliminate_empty_tensors {self.function} : {op}\n"
            f"    {self.buffers_function} = transform.bufferization.one_shot_bufferize {self.function} "
            f'{{memcpy_op = "linalg.copy"}} : ({op}) -> {op}\n'
            f"{self.buffers}{END}"
        )


def halves_of(script: str) -> ScriptHalves | str:
    """Returns the halves of a bound script, or why it has none, as a clause.

    The halves are those from which the same script, but for comments and blank lines, can be put together.
    """
    text = "".join(
        line
        for line in script.splitlines(keepends=True)
        if line.strip() and not line.strip().startswith("//")
    )
    functions = list(FUNCTION.finditer(text))
    if len(functions) > 1:
        return f"it is for {len(functions)} partitions of C, one for each thread"
    bufferized = list(BUFFERIZE.finditer(text))
    if len(functions) != 1 or len(bufferized) != 1 or not text.startswith(HEAD) or not text.endswith(END):
        return "its steps are not those of a shipped strategy: one function, one bufferization"
    before = EMPTY.sub("", text[functions[0].end() : bufferized[0].start()])
    after = text[bufferized[0].end() : -len(END)]
    halves = ScriptHalves(functions[0]["handle"], before, bufferized[0]["handle"], after)
    if halves.script != text:
        return "its steps are not in the order of a shipped strategy"
    return halves
