"""Verifies kernels in a child process, each in a fork of it: a kernel that faults costs a fork, no start."""

import os
import resource
import signal
from collections.abc import Callable

import numpy as np

from tuner.core.errors import CandidateError
from tuner.core.interfaces import Artifact, Effort
from tuner.core.problem import Problem
from tuner.targets.cpu.evaluator import CpuEvaluator

EFFORT = Effort(budget_s=0.01, min_samples=3, max_samples=6)


class ForkedVerification:
    """The service of the child process."""

    def verify(self, problem: Problem, artifact: Artifact) -> str:
        """Returns how the verification ends: "right", the reason of a failure, or the name of a signal."""
        evaluator, rng = CpuEvaluator(1), np.random.default_rng(0)
        loaded = evaluator.load(problem, artifact)
        return _in_fork(lambda: evaluator.verify(problem, loaded, rng))

    def verify_and_time(self, problem: Problem, artifact: Artifact) -> str:
        """Returns how verification and timing end, as ``verify`` does."""
        evaluator, rng = CpuEvaluator(1), np.random.default_rng(0)
        loaded = evaluator.load(problem, artifact)

        def work() -> None:
            evaluator.verify(problem, loaded, rng)
            evaluator.measure(problem, loaded, EFFORT, rng)

        return _in_fork(work)


def _in_fork(work: Callable[[], object]) -> str:
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            work()
            os.write(writer, b"right")
        except CandidateError as error:
            os.write(writer, f"{error.stage.value}: {error.reason}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as outcome:
        text = outcome.read()
    _, status = os.waitpid(process, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else text
