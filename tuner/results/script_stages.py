"""The texts of a script's compilation: payload before and after the script, IR, code, assembly.

``script_stages`` compiles a script that was given, ``trial_stages`` the one of a stored trial. Both run in
child processes; ``lowered_stages`` is what runs there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, TunerError
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.core.trials import StoredTrial
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.backends import Backends

if TYPE_CHECKING:
    from tuner.db.store import Store


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

    Any ``last`` after PAYLOAD gives at least the texts up to CODE. Compiles in child processes. SOURCE is the
    payload before the script, PAYLOAD after it; then on a CPU "loops", on a GPU "kernels" (outlined) and
    "nvvm" (the LLVM dialect for GPUs); CODE is LLVM dialect or PTX, ASSEMBLY machine code if a disassembler
    is installed.
    A stage that fails ends the texts; ``failure`` says why.
    """
    backend = backends.target(target)
    texts = {SOURCE: backend.source(problem, script.text), SCRIPT: script.text}
    if last in texts:
        return ScriptStages(texts, "")
    try:
        texts[PAYLOAD] = backends.apply(script.text, texts[SOURCE])
        if last == PAYLOAD:
            return ScriptStages(texts, "")
        assembly_of = backend.assembly if last == ASSEMBLY else _no_assembly
        work = partial(_lowered_and_disassembled, backend.code, assembly_of, target, problem, script)
        lowered = call_in_child("lower", work, TIMEOUT_S, is_named=False)
    except TunerError as error:
        return ScriptStages(texts, str(error))
    return ScriptStages(texts | lowered.texts, lowered.failure)


def _no_assembly(_code: str, _program: KernelCode | None) -> str:
    return ""


def _lowered_and_disassembled(
    code_of: CodeOf, assembly_of: AssemblyOf, target: TargetName, problem: Problem, script: Script
) -> ScriptStages:
    stages = lowered_stages(code_of, target, problem, script)
    if stages.failure:
        return stages
    try:
        disassembled = assembly_of(stages.texts[CODE], None)
    except CandidateError as error:
        return ScriptStages(stages.texts, error.reason)
    if disassembled:
        return ScriptStages(stages.texts | {ASSEMBLY: disassembled}, "")
    return stages


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


def trial_stages(backends: Backends, store: "Store", trial: StoredTrial) -> Iterator[tuple[str, str]]:
    """Yields (stage, text) of a trial: script, payload, IR after each lowering stage, code, assembly.

    The trial is compiled again; GPU code is read from the database. Ends before the first stage that fails,
    and after the payload of a failed trial without GPU code. Yields nothing for a trial without a script.
    """
    if not trial.script:  # a replay, or binding failed
        return
    yield SCRIPT, trial.script_text
    record = trial.record
    backend = backends.target(record.target)
    try:
        source = backend.source(record.problem, trial.script_text)
        payload = _applied(backends, trial.script_text, source)
        if not payload:
            return
        yield PAYLOAD, payload
        program = store.code(trial.id)
        if program is None and record.status == "failed":  # the script may hang the compiler
            return
        script = Script(trial.script_text, record.script_sha256)
        stages = lowered_stages(backend.code, record.target, record.problem, script).texts
        compiled = stages.pop(CODE, "")
        yield from stages.items()
        code = compiled if program is None else program.text
        texts = ((CODE, code), (ASSEMBLY, code and backend.assembly(code, program)))
    except CandidateError:
        return
    yield from ((stage, text) for stage, text in texts if text)


def _applied(backends: Backends, script: str, source: str) -> str:
    try:
        return backends.apply(script, source)
    except TunerError:  # which stage fails is in the trial's record
        return ""
