"""The child process that owns the GPU of a measuring session: its service, and the parent's handle of it.

A candidate may crash the child process, which fails this candidate only.
"""

from dataclasses import dataclass, replace
from typing import final

from tuner.core.errors import RAN, CandidateError, Failure, Stage
from tuner.core.interfaces import Artifact, Effort, FinalTimes
from tuner.core.problem import Problem
from tuner.core.remote_results import CUBIN, PTX, PendingTrial
from tuner.payload.reference import WHOLE_FLOP, compare_sampled
from tuner.runtime.workers.protocol import GPU_CALLS, REFERENCE_FLOP_PER_S, Factory, Limits, ServiceSpec
from tuner.runtime.workers.services import (
    Announce,
    Evaluation,
    EvaluationService,
    Group,
    gpu_library_environment,
)
from tuner.runtime.workers.worker import Worker, child_memory_bytes
from tuner.targets.gpu.evaluator import GpuEvaluator

# ------------------------------------------------------------------------------
# The service of the child process that owns the GPU; a candidate may crash the process.


@dataclass(frozen=True)
class EvaluatedCode:
    """The evaluation of a candidate (verdict and time), and which code ran: CUBIN or PTX."""

    evaluation: Evaluation
    code: str  # CUBIN or PTX


class MeasuringService:
    """The service of the child process that verifies and times GPU programs.

    A cubin that the driver does not load is replaced by the program's PTX.
    """

    def __init__(self, announce: Announce, evaluator: Factory) -> None:
        self._service = EvaluationService(announce, evaluator)

    def evaluate(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> EvaluatedCode:
        """Verifies and times a GPU program; returns its evaluation and which code ran, CUBIN or PTX.

        ``seed`` is that of the inputs. Raises CandidateError where the candidate fails; where neither cubin
        nor PTX can be loaded, it is the error of the cubin.
        """
        program = artifact.program
        assert program is not None
        try:
            evaluation = self._service.evaluate(problem, artifact, effort, seed)
            return EvaluatedCode(evaluation, CUBIN if program.cubin else PTX)
        except CandidateError as error:
            if error.stage is not Stage.LOAD or not program.cubin or not program.ptx:
                raise
            refused = error
        try:
            bare = replace(artifact, program=replace(program, cubin=b""))
            return EvaluatedCode(self._service.evaluate(problem, bare, effort, seed), PTX)
        except CandidateError as error:
            raise (refused if error.stage is Stage.LOAD else error) from error

    def remeasure(self, problem: Problem, group: Group, effort: Effort, seed: int) -> FinalTimes:
        """Times the programs of a group interleaved; returns their times in the group's order.

        The time of a program that does not load is None.
        """
        return self._service.remeasure(problem, group, effort, seed)


def gpu_evaluator(chip: str) -> GpuEvaluator:
    """Returns the evaluator that verifies and times programs of ``chip`` on this machine's GPU.

    Of problems above 2**40 flop only a sample of C's rows is compared with the reference.
    """
    return GpuEvaluator(chip, compare=compare_sampled)


def gpu_evaluator_factory(chip: str) -> Factory:
    """Returns a factory with which a child process builds the ``gpu_evaluator`` of ``chip``."""
    return Factory("tuner.library.bundle.gpu_child:gpu_evaluator", (chip,))


def measuring_spec(evaluator: Factory) -> ServiceSpec:
    """Returns the spec of a child process that serves a MeasuringService with the given evaluator."""
    factory = Factory("tuner.library.bundle.gpu_child:MeasuringService", (evaluator,))
    return ServiceSpec("measure", factory, gpu_library_environment(), announces=True)


# ------------------------------------------------------------------------------
# The parent's handle of the child process that owns the GPU: a crash fails one candidate only.


COLD_S = 40.0  # to start a process, create a context, draw and upload inputs, on a busy machine
WARM_S = 15.0  # to load code, draw inputs and compare, where process and context exist
SLOWEST_FLOP_PER_S = 2e11  # 0.3 % of an H200's f32 without tensor cores; a slower kernel counts as a hang
LIMITS = Limits(slowest_flop_per_s=SLOWEST_FLOP_PER_S, calls=GPU_CALLS)


@final
class GpuChild:
    """A child process that verifies and times GPU programs of one problem.

    If the process crashes or has to be killed, it is replaced; only one candidate fails.
    """

    def __init__(self, problem: Problem, evaluate: Factory) -> None:
        self._problem = problem
        self._worker = Worker(measuring_spec(evaluate), child_memory_bytes(problem))
        self._is_warm = False

    def evaluate(
        self, trial: PendingTrial, effort: Effort, seed: int, within_s: float
    ) -> EvaluatedCode | Failure | None:
        """Verifies and times one candidate in the child process; returns the evaluation or a Failure.

        None: ``within_s`` seconds were over before the candidate ended or counted as a hang. ``seed`` is that
        of the inputs.
        """
        limit_s = hang_limit_s(self._problem, effort, 1, self._is_warm)
        evaluated = self._asked("evaluate", artifact_of(trial, CUBIN), effort, seed, within_s, limit_s)
        assert not isinstance(evaluated, FinalTimes)
        return evaluated

    def remeasure(
        self, artifacts: tuple[Artifact, ...], effort: Effort, seed: int, within_s: float
    ) -> FinalTimes:
        """Times several programs interleaved with cuBLAS; returns times in the order of the programs.

        None for a program that does not load; the baseline is None where cuBLAS does not work. ``times`` is
        () where timing fails, and once ``within_s`` seconds are over. ``seed`` is that of the inputs.
        """
        group = Group(artifacts, has_baseline=True)
        limit_s = hang_limit_s(self._problem, effort, group.size, is_warm=False)  # also compares cuBLAS's C
        found = self._asked("remeasure", group, effort, seed, within_s, limit_s)
        return found if isinstance(found, FinalTimes) else FinalTimes(())

    def close(self) -> None:
        """Kills the child process, whatever it is doing."""
        self._worker.kill()

    def _asked(
        self, method: str, work: object, effort: Effort, seed: int, within_s: float, limit_s: float
    ) -> EvaluatedCode | Failure | FinalTimes | None:
        timeout_s = min(limit_s, max(within_s, 0.1))
        news = self._worker.ask(
            method, self._problem, work, effort, seed, stage=Stage.RUN, timeout_s=timeout_s
        )
        if news.is_doubtful:  # an earlier candidate may be the cause: repeat in a fresh process
            self._is_warm = False
            limit_s += COLD_S + reference_limit_s(self._problem)
            return self._asked(method, work, effort, seed, within_s - news.seconds, limit_s)
        has_run = isinstance(news.value, Failure) and news.value.stage in RAN
        if has_run:
            self._worker.kill()
        self._is_warm = not has_run and (self._is_warm or not isinstance(news.value, Failure))
        is_cut = has_run and within_s < limit_s and news.seconds >= within_s  # too early for a hang
        value: EvaluatedCode | Failure | FinalTimes = news.value
        return None if is_cut else value


def hang_limit_s(problem: Problem, effort: Effort, programs: int, is_warm: bool) -> float:
    """Returns the seconds after which the evaluation of ``programs`` programs counts as a hang.

    ``is_warm``: the child process and its GPU context exist already, which allows less time.
    """
    start_s = WARM_S if is_warm else COLD_S + reference_limit_s(problem)
    return start_s + programs * LIMITS.timing_s(problem, effort, effort.stop_above_s)


def reference_limit_s(problem: Problem) -> float:
    """Returns the seconds that the float64 reference product of a problem may take on the host."""
    return min(problem.flop, WHOLE_FLOP) / REFERENCE_FLOP_PER_S


def artifact_of(trial: PendingTrial, code: str) -> Artifact:
    """Returns a candidate's compiled program as an artifact to load on a GPU.

    ``code`` CUBIN: with machine code if the program has any; other values: PTX only, which the driver
    compiles.
    """
    program = trial.program if code == CUBIN else replace(trial.program, cubin=b"")
    return Artifact("", trial.artifact_sha256, program=program)
