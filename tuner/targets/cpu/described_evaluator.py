"""Verifies code for the processor of another machine, where this processor can run it."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.core.instruction_sets import missing_on
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.target import AbstractEvaluator, Artifact, Effort
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.targets.cpu.evaluator import CpuEvaluator, LoadedKernel

VERIFIED = (
    "verified is the code as compiled for this processor, with vectors in place of AMX tiles and VNNI dot "
    "products that it does not have; the code for the other one did not run"
)
NO_CLOCK = "code for another processor is not timed"


@dataclass(frozen=True)
class CompiledOnly:
    """Code that this processor cannot run, with the reason."""

    reason: str


@final
class DescribedEvaluator(AbstractEvaluator):
    """An evaluator that verifies code for another processor, where this processor can run it; never times."""

    is_timed = False

    def __init__(self, threads: int, pin_to: tuple[int, ...] = ()) -> None:
        """Takes the threads that a kernel may use, and the processors to pin the threads to, if any."""
        self._inner = CpuEvaluator(threads, pin_to)

    def load(self, problem: Problem, artifact: Artifact) -> LoadedKernel | CompiledOnly:
        """Returns the loaded code of an artifact; ``CompiledOnly`` where this processor cannot run it.

        Raises CandidateError(LOAD) where loading fails, and for more thread partitions than threads.
        """
        here = describe_machine()
        missing = missing_on(here, instructions_needed(artifact.host_code))
        if missing:
            return CompiledOnly(f"{here.processor} has no {' and no '.join(missing)}")
        return self._inner.load(problem, artifact)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Returns the verdict of ``CpuEvaluator``, or one of 0 elements for code that was compiled only.

        ``loaded`` is a result of ``load``. Raises CandidateError as ``CpuEvaluator.verify`` does.
        """
        if isinstance(loaded, CompiledOnly):
            return Verdict(0.0, 0, (f"compiled only, nothing was verified: {loaded.reason}",))
        verdict = self._inner.verify(problem, loaded, rng)
        return replace(verdict, notes=(*verdict.notes, VERIFIED))

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Always raises CandidateError(MEASURE): code for another processor is not timed."""
        raise CandidateError(Stage.MEASURE, NO_CLOCK)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Always raises CandidateError(MEASURE): code for another processor is not timed."""
        raise CandidateError(Stage.MEASURE, NO_CLOCK)
