"""What a script requires: instruction sets of the processor, transform ops of tuner, a payload that fits."""

import re
from dataclasses import dataclass

from tuner.core.interfaces import Partition
from tuner.core.problem import MATMUL, Problem
from tuner.core.processors import AMX_BF16, AMX_INT8, AVX512, AVX512_BF16, VNNI
from tuner.payload.cpu import MAPS, partitions_in
from tuner.space.scripts.matchers import ANY, FUNCTION, PARAM, MatchedContraction, maps_attribute, matcher

# ------------------------------------------------------------------------------
# Which instruction sets the code of a transform script needs: those of the ops that it calls.
#
# Vectors of any width need none, since LLVM compiles them for every processor.


PRODUCTS = {"bf16": AMX_BF16, "i8": AMX_INT8}  # of tiles, by dtype of the operands
# Transform op -> {dtype of the operands: instruction set}; "" is any dtype
OPS = {
    "tuner.amx_block": PRODUCTS,
    "tuner.vnni_block": {"": VNNI},
    "transform.apply_patterns.x86.vector_contract_to_amx_dot_product": PRODUCTS,
    "transform.apply_patterns.x86.vector_contract_to_packed_type_dot_product": {"bf16": AVX512_BF16},
}
VNNI_BLOCK = re.compile(r'"tuner\.vnni_block"\s*\([^)]*\)\s*(<?\{[^}]*\})?')  # with its attributes
PAIRS = re.compile(r'"tuner\.pair_block"\s*\([^)]*\)\s*<?\{[^}]*\bdots = 1\b')  # which are dot products
IN_256_BITS = re.compile(r"\blanes = 8\b")  # AVX-VNNI has these; 16 lanes, the default, are AVX-512


def instructions_needed(script: str, dtype: str) -> tuple[str, ...]:
    """Returns the names of the instruction sets without which a script's code cannot run; () for none.

    Lines that begin with ``//`` do not count. ``dtype``, of the operands, decides the kind of AMX products.
    """
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    needed = {sets.get(dtype, sets.get("")) for op, sets in OPS.items() if op in code}
    if any(not IN_256_BITS.search(attributes) for attributes in VNNI_BLOCK.findall(code)):
        needed.add(AVX512)
    if PAIRS.search(code):
        needed.add(AVX512_BF16)
    return tuple(sorted(name for name in needed if name))


# ------------------------------------------------------------------------------
# Makes a bound CPU script fit payloads of other programs, or refuse them with one line.
#
# A script is bound and timed on the payload of its problem, whose function is called ``matmul``. Exported, it
# finds its function by what is computed there, whatever the function is called and whether its result is
# cleared first:
#
#   %func_matmul = transform.structured.match ops{["func.func"]} attributes{sym_name = "matmul"} in %root
#   becomes
#   %fit_matmul = transform.structured.match ops{["linalg.matmul"]} attributes{indexing_maps = ...}
#     filter_operand_types = [tensor<64x33xf32>, tensor<33x96xf32>, tensor<64x96xf32>] in %root
#   ...                      // refuses unless this is one op, alone in its function, which reads buffers
#   %func_matmul = transform.get_parent_op %fit_matmul {op_name = "func.func"}
#
# All later steps stay as they were timed. Where no op fits, each step that compares an extent or a type fails
# with the value that it found; its location says what the script is for. ``mlir-opt`` prints both in one
# line.


UNFIT = "tuner.unfit"  # marks the matmuls of a payload of which none fits; nothing else is changed then


def with_guard(script: str, problem: Problem) -> str:
    """Returns a bound CPU script that finds its payload by the contraction in it, and refuses any other.

    A script that looks for functions in another way than the shipped strategies do is returned as it is.
    Raises UsageError for a script whose list of partitions is malformed.
    """
    matches = list(FUNCTION.finditer(script))
    partitions = {partition.entry: partition for partition in partitions_in(script, problem)}
    if not matches or {match["name"] for match in matches} - partitions.keys():
        return script
    guards = [_Guard(problem, partitions[match["name"]]) for match in matches]
    text = script
    for match, guard in zip(reversed(matches), reversed(guards), strict=True):
        text = text[: match.start()] + guard.steps(match["handle"]) + text[match.end() :]
    body, end, rest = text.rstrip("\n").rpartition("}")
    return f"{body}{''.join(guard.sequences() for guard in guards)}{end}{rest}\n"


@dataclass(frozen=True)
class _Guard:
    """The steps that find the function of one partition, which for one thread is the whole problem."""

    problem: Problem
    partition: Partition

    @property
    def name(self) -> str:
        return self.partition.entry

    @property
    def wanted(self) -> str:
        m, n, k = self.sizes
        return f"linalg.matmul {m}x{n}x{k} {self.problem.dtype} {self.problem.layout}"

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.partition.m, self.partition.n, self.problem.sizes[2]

    @property
    def types(self) -> tuple[str, str, str]:
        m, n, k = self.sizes
        a = f"{k}x{m}" if self.problem.layout == "tn" else f"{m}x{k}"
        b = f"{n}x{k}" if self.problem.layout == "nt" else f"{k}x{n}"
        source, sums = self.problem.stored_dtype, self.problem.accumulator
        return f"tensor<{a}x{source}>", f"tensor<{b}x{source}>", f"tensor<{m}x{n}x{sums}>"

    def steps(self, handle: str) -> str:
        """Returns the steps that give ``handle`` the function, or refuse."""
        name, maps = self.name, maps_attribute(MATMUL, self.problem.layout)
        all_of = 'transform.structured.match ops{["linalg.matmul"]}'
        result = f"({ANY}) -> {ANY}"
        reads = "".join(
            f"    %from_{operand}_{name} = transform.get_producer_of_operand %fit_{name}[{index}] : {result} "
            f'loc("{operand} of {self.wanted} must be read from a buffer, by bufferization.to_tensor")\n'
            for index, operand in enumerate("ABC")
        )
        return f"""    %fit_{name} = {all_of} attributes{{{maps}}}
      filter_operand_types = [{", ".join(self.types)}] in %root : {result}
    %fits_{name} = transform.num_associations %fit_{name} : ({ANY}) -> {PARAM}
    %all_{name} = {all_of} in %root : {result}
    transform.sequence %root : {ANY} failures(suppress) {{
    ^bb0(%payload: {ANY}):
      transform.include @mark_unfit_{name} failures(propagate) (%all_{name}, %fits_{name})
        : ({ANY}, {PARAM}) -> ()
      transform.yield
    }}
    %unfit_{name} = {all_of} attributes{{{UNFIT}, {maps}}} in %root : {result}
    transform.foreach %unfit_{name} : {ANY} {{
    ^bb0(%unfit: {ANY}):
      %checked = transform.include @is_{name} failures(propagate) (%unfit) : {result}
    }}
{self._other_layouts()}\
{_counted(f"%fits_{name}", 1, f"this script is for one {self.wanted} on tensors; how many there are")}\
{reads}\
    {handle} = transform.get_parent_op %fit_{name} {{op_name = "func.func"}} : {result}
{self._alone(handle, "linalg.matmul", f"a function with one {self.wanted}; its matmuls")}\
{self._alone_with_epilogue(handle)}"""

    def _other_layouts(self) -> str:
        """Returns the steps that refuse matmuls of another layout, where none fits."""
        steps = []
        for layout in sorted(MAPS.keys() - {self.problem.layout}):
            found = f"%{layout}_{self.name}"
            steps.append(
                f"""    {found} = transform.structured.match ops{{["linalg.matmul"]}}
      attributes{{{UNFIT}, {maps_attribute(MATMUL, layout)}}} in %root : ({ANY}) -> {ANY}
    {found}_count = transform.num_associations {found} : ({ANY}) -> {PARAM}
{_counted(f"{found}_count", 0, f"this script is for {self.wanted}; matmuls of layout {layout}")}"""
            )
        return "".join(steps)

    def sequences(self) -> str:
        name = self.name
        contraction = MatchedContraction(MATMUL, self.problem.layout, self.problem.dtype, self.sizes)
        return f"""  transform.named_sequence @mark_unfit_{name}(
      %all: {ANY} {{transform.readonly}}, %fits: {PARAM} {{transform.readonly}}) {{
    %none = transform.param.constant 0 : i64 -> {PARAM}
    transform.match.param.cmpi eq %fits, %none : {PARAM}
    transform.annotate %all "{UNFIT}" : {ANY}
    transform.yield
  }}
{matcher(f"is_{name}", contraction, f"this script is for {self.wanted}")}"""

    def _alone_with_epilogue(self, handle: str) -> str:
        """Returns the steps that refuse a function without the epilogue, which the schedule looks for."""
        if self.problem.epilogue == "none" and self.problem.result_dtype == self.problem.accumulator:
            return ""
        what = f"{self.wanted} with {self.problem.epilogue} to {self.problem.result_dtype}"
        return self._alone(handle, "linalg.generic", f"{what}; its linalg.generic ops")

    def _alone(self, handle: str, op: str, what: str) -> str:
        short = op.rpartition(".")[2]
        found = f"%{short}s_{self.name}"
        return f"""    {found} = transform.structured.match ops{{["{op}"]}} in {handle} : ({ANY}) -> {ANY}
    {found}_count = transform.num_associations {found} : ({ANY}) -> {PARAM}
{_counted(f"{found}_count", 1, f"this script is for {what}")}"""


def _counted(value: str, wanted: int, message: str) -> str:
    """Returns the steps that fail with ``message`` unless a parameter has the wanted value."""
    return f"""    {value}_wanted = transform.param.constant {wanted} : i64 -> {PARAM}
    transform.match.param.cmpi eq {value}, {value}_wanted : {PARAM} loc("{message}")
"""


CUSTOM_DIALECT = "tuner."  # prefix of tuner's transform ops


def custom_ops(script: str) -> tuple[str, ...]:
    """Returns tuner's ops that a script calls in generic syntax, sorted; () for a portable script."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    return tuple(sorted(set(re.findall(rf'"({re.escape(CUSTOM_DIALECT)}[\w.]+)"\s*\(', code))))
