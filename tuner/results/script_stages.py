"""The texts of a script's compilation: payload before and after the script, IR, code, assembly."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, TunerError
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.backends import Backends

SOURCE = "source"
SCRIPT = "script"
PAYLOAD = "payload"
CODE = "code"
ASSEMBLY = "assembly"
SCRIPT_STAGES = (SOURCE, SCRIPT, PAYLOAD, "loops", "kernels", "nvvm", CODE, ASSEMBLY)
TIMEOUT_S = 600.0  # LLVM takes minutes for a script that unrolls everything

CodeOf = Callable[[TargetName, Problem, Script], str]
AssemblyOf = Callable[[str, KernelCode | None], str]


@dataclass(frozen=True)
class ScriptStages:
    """The texts after the stages that were reached, in their order, and why the next one failed."""

    texts: dict[str, str]  # by the stage's name
    failure: str  # "" if all were reached


def script_stages(
    backends: Backends, target: TargetName, problem: Problem, script: Script, last: str = ASSEMBLY
) -> ScriptStages:
    """Returns the texts after each stage up to ``last``, one of ``SCRIPT_STAGES``.

    Compiles in child processes. Source: the payload before the script. Payload: after the script. On a CPU
    then loops; on a GPU kernels (outlined) and nvvm (the LLVM dialect for GPUs). Code: LLVM dialect, or PTX.
    Assembly: machine code, if a disassembler is installed. A stage that fails ends the texts; ``failure``
    says why.
    """
    kind = backends.target(target)
    texts = {SOURCE: kind.source(problem, script.text), SCRIPT: script.text}
    if last in texts:
        return ScriptStages(texts, "")
    try:
        texts[PAYLOAD] = backends.apply(script.text, texts[SOURCE])
        if last == PAYLOAD:
            return ScriptStages(texts, "")
        shown_code = kind.assembly if last == ASSEMBLY else _no_assembly
        work = partial(_lowered_stages, kind.code, shown_code, target, problem, script)
        found = call_in_child("lower", work, TIMEOUT_S, is_named=False)
    except TunerError as error:
        return ScriptStages(texts, str(error))
    return ScriptStages(texts | found.texts, found.failure)


def _no_assembly(_code: str, _program: KernelCode | None) -> str:
    return ""


def _lowered_stages(
    code_of: CodeOf, assembly_of: AssemblyOf, target: TargetName, problem: Problem, script: Script
) -> ScriptStages:
    found = lowered_stages(code_of, target, problem, script)
    if found.failure:
        return found
    try:
        disassembled = assembly_of(found.texts[CODE], None)
    except CandidateError as error:
        return ScriptStages(found.texts, error.reason)
    if disassembled:
        return ScriptStages(found.texts | {ASSEMBLY: disassembled}, "")
    return found


def lowered_stages(code_of: CodeOf, target: TargetName, problem: Problem, script: Script) -> ScriptStages:
    """Compiles a script in this process; returns the IR after each stage of the lowering, and the code.

    If a stage fails, ``failure`` of the result says why.
    """
    from tuner.mlir.passes import kept_stages  # loads MLIR

    with kept_stages() as kept:
        try:
            code = code_of(target, problem, script)
        except CandidateError as error:
            return ScriptStages(dict(kept), error.reason)
    return ScriptStages(dict(kept) | {CODE: code}, "")
