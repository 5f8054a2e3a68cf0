"""A bound script of the shipped CPU strategies in two halves: steps on tensors, then steps on buffers.

In a library many schedules share one bufferization of the whole module: each first half runs on the function
of its contraction, then the module is bufferized, then each second half runs.
"""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.core.interfaces import Partition
from tuner.core.problem import Problem
from tuner.payload.cpu import ENTRY
from tuner.space.scripts.guard import guard
from tuner.space.scripts.header import code_lines, within_columns

# What is around the halves, a copy of what strategies/_matmul_cpu.mlir.j2 prints; that they are equal is
# tested by tests/space/scripts/test_script_halves.py.
ALIASES = """!op = !transform.any_op
!loop = !transform.op<"scf.for">
!size = !transform.param<i64>
"""
FUNCTION = "%function"
BUFFERS_FUNCTION = "%on_buffers"
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
WITHOUT_COPIES = BUFFERIZE.replace(', memcpy_op = "linalg.copy"', "")  # of a script that makes none
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
    """The text of a bound script before (``tensors``) and after (``buffers``) its bufferization.

    Lines, each with its line break. The handle of the function is FUNCTION in the first half, which also
    uses ``%matmul``, and BUFFERS_FUNCTION in the second.
    """

    tensors: str
    buffers: str

    @property
    def _has_copies(self) -> bool:
        """True if bufferization makes copies: of packed panels, of their padding, or of padded tiles."""
        of_panels = '"linalg.copy"' in self.buffers or '["tensor.pad"]' in self.tensors
        return of_panels or "buffer_loop_hoisting" in self.buffers

    def script(self, problem: Problem) -> str:
        """Returns the whole script of the halves, to take a schedule out of a library."""
        whole = Partition(ENTRY, 0, 0, *problem.sizes[:2])
        bufferize = BUFFERIZE if self._has_copies else WITHOUT_COPIES
        body = f"{self.tensors}{bufferize}{self.buffers}"
        return f"{HEAD}{FIND}{body}{END}\n{within_columns(guard(problem, whole))}}}\n"


def halves_of(script: str, problem: Problem) -> ScriptHalves | Refusal:
    """Returns the halves of a bound script; a Refusal that says why if the script has none.

    ``ScriptHalves.script`` must give the same script, apart from comments and blank lines.
    """
    if "include @the_matmul_" in script:
        return Refusal("it is for several partitions of C, one for each thread")
    bufferization = BUFFERIZE if BUFFERIZE in script else WITHOUT_COPIES
    tensors, bufferize, buffers = script.partition(FIND)[2].partition(bufferization)
    halves = ScriptHalves(tensors, buffers.partition(END)[0])
    if not bufferize or _code(halves.script(problem)) != _code(script):
        return Refusal("its steps are not those of a shipped strategy: one matmul, one bufferization")
    return halves


def _code(script: str) -> str:
    return "\n".join(line for line in code_lines(script) if line.strip())
