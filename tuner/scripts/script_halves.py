"""A bound script of the shipped CPU strategies in two halves: what works on tensors, what works on buffers.

In a library many schedules share one bufferization of the whole module, so the half before it runs on the
function of each contraction, then the module is bufferized, then the half after it runs.
"""

import re
from dataclasses import dataclass

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
