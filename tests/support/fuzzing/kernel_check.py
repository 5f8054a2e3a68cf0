"""Compiles and runs kernels in a child process: a crash becomes a Failure."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Artifact, Script
from tuner.core.problem import Problem
from tuner.core.problem_classes import TextProblem
from tuner.core.records import Verdict
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.runtime.cpu.faulting_memory import FaultingMemory
from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.worker import Worker
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import LoadedKernel

Array = npt.NDArray[Any]
COMPILE_TIMEOUT_S, RUN_TIMEOUT_S = 60.0, 60.0
MEMORY_BYTES = 4 << 30


class KernelService:
    """The service of the child process: compiles, then verifies."""

    def __init__(self, threads: int, emulates: bool) -> None:
        self._compiler = CpuCompiler(emulates=emulates)
        self._evaluator = CpuEvaluator(threads)

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns the artifact. Raises CandidateError."""
        return self._compiler.compile(problem, script)

    def verify(self, problem: Problem, artifact: Artifact, seed: int) -> Verdict:
        """Verifies as a run does, then with every array, aligned or not, next to pages that fault."""
        rng = np.random.default_rng(seed)
        loaded = self._evaluator.load(problem, artifact)
        verdict = self._evaluator.verify(problem, loaded, rng)
        assert isinstance(loaded, LoadedKernel)
        if isinstance(problem, TextProblem):  # whose arrays lie next to such pages already
            return verdict
        for is_at_end in (True, False):
            _verify_fenced(self._evaluator, problem, loaded, is_at_end, rng)
        return verdict


class KernelCheck:
    """Checks kernels one by one in a child process, with AMX and VNNI emulated where that is wanted."""

    def __init__(self, threads: int, *, emulates: bool = False) -> None:
        factory = Factory("tests.support.fuzzing.kernel_check:KernelService", (threads, emulates))
        self._worker = Worker(ServiceSpec("kernels", factory), MEMORY_BYTES)

    def check(self, problem: Problem, script: Script, seed: int) -> tuple[Verdict | Failure, float]:
        """Returns verdict or failure of the script, and the seconds of its compilation."""
        compiled = self._worker.ask(
            "compile", problem, script, stage=Stage.COMPILE, timeout_s=COMPILE_TIMEOUT_S
        )
        if isinstance(compiled.value, Failure):
            return compiled.value, compiled.seconds
        evaluated = self._worker.ask(
            "verify", problem, compiled.value, seed, stage=Stage.RUN, timeout_s=RUN_TIMEOUT_S
        )
        if isinstance(evaluated.value, Failure):
            self.close()  # the kernel may have damaged its process
        assert isinstance(evaluated.value, Verdict | Failure)
        return evaluated.value, compiled.seconds

    def close(self) -> None:
        """Ends the child."""
        self._worker.kill()


def fenced(array: Array, is_at_end: bool) -> Array:
    """Returns a copy of the array next to pages that fault: after its last byte, or before its first."""
    memory = FaultingMemory(array.nbytes, is_read_only=False)
    start = memory.start(array.nbytes, 1, at_end=is_at_end)
    copy = memory.written[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _verify_fenced(
    evaluator: CpuEvaluator, problem: Problem, loaded: LoadedKernel, is_at_end: bool, rng: np.random.Generator
) -> None:
    inputs = draw(problem, draw_base(problem, rng), rng)
    output = fenced(inputs.output_before, is_at_end)
    arrays = (*(fenced(array, is_at_end) for array in inputs.arrays), output)
    team = evaluator._thread_team()  # noqa: SLF001 - the only way to arrays of our own
    prepared = loaded.calls(arrays)  # which must live as long as the call
    team.repeat(prepared.calls, 1)
    verdict, worst = compare(inputs, output)
    if not verdict.max_error <= 1.0:
        raise CandidateError(Stage.VERIFY, f"on unaligned arrays: {worst}")
