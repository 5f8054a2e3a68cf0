"""What a script makes of its payload, found in a warm child process: texts of stages, steps without effect.

A script that was submitted may crash or hang a compiler: nothing here runs in the caller's process.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Failure, OpPlace, Stage
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.results.differences import Stages
from tuner.results.script_stages import CODE, PAYLOAD, SCRIPT, lowered_stages
from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.worker import MEMORY_BYTES, Worker

if TYPE_CHECKING:
    from tuner.targets.target import Target


TIMEOUT_S = 60.0
FACTORY = Factory("tuner.results.regression.script_facts:ScriptFactsService")


@dataclass(frozen=True)
class ScriptFacts:
    """The texts after each stage of a script's compilation, and locations of its ops that changed nothing."""

    stages: Stages = ()  # (stage, text after it): script, payload, stages of the lowering, code
    idle: tuple[OpPlace, ...] = ()
    unknown: str = ""  # why the facts are missing, one line; "": they are known


@final
class ScriptFactsService:
    """The service of the child process that applies and compiles scripts to describe them."""

    def facts(self, target: "Target", name: TargetName, problem: Problem, script: Script) -> ScriptFacts:
        """Returns the facts of a script on a target. Raises CandidateError where it does not compile."""
        from tuner.mlir.effects.idle_steps import applied_script  # loads MLIR

        applied = applied_script(script.text, target.source(problem, script.text))
        lowered = lowered_stages(target.code, name, problem, script).texts
        code = lowered.pop(CODE, "")
        first = ((SCRIPT, script.text), (PAYLOAD, applied.payload))
        return ScriptFacts((*first, *lowered.items(), (CODE, code)), applied.idle)


class ScriptFactsChild:
    """Asks the child process for facts of scripts; ``close`` ends it. Use it in one thread."""

    def __init__(
        self, target: "Target", name: TargetName, timeout_s: float | None, memory_bytes: int | None
    ) -> None:
        self._target = target
        self._name = name
        self._timeout_s = timeout_s or TIMEOUT_S
        self._memory_bytes = memory_bytes or MEMORY_BYTES

    def facts(self, problem: Problem, script: Script) -> ScriptFacts:
        """Returns the facts of a script; where it cannot be described, ``unknown`` says why."""
        arguments = (self._target, self._name, problem, script)
        try:
            facts: ScriptFacts = self._worker.call(
                "facts", *arguments, stage=Stage.COMPILE, timeout_s=self._timeout_s
            )
        except CandidateError as error:
            return ScriptFacts(unknown=_reason(error.failure))
        return facts

    def close(self) -> None:
        self._worker.kill()

    @cached_property
    def _worker(self) -> Worker:
        return Worker(ServiceSpec("describe", FACTORY), self._memory_bytes)


def _reason(failure: Failure) -> str:
    return f"at stage {failure.stage.value}: {failure.reason}"
