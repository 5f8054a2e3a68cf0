"""The child process that owns a session's GPU, and its handle: a crash fails one candidate only.

``MeasuringService`` runs in the child process; ``GpuChild`` is the parent's handle, which starts another
child after a crash or a hang, and asks again where an earlier program may be to blame.
"""

from dataclasses import dataclass, replace
from typing import final

from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Artifact, Effort, FinalTimes
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.remote_results import BINARY, TEXT, PendingTrial
from tuner.gpu.target.evaluator import GpuEvaluator
from tuner.payload.comparison import WHOLE_FLOP, compare_sampled
from tuner.runtime.workers import services
from tuner.runtime.workers.limits import GPU_CALLS, REFERENCE_FLOP_PER_S, Limits
from tuner.runtime.workers.protocol import Factory, Reply, ServiceSpec
from tuner.runtime.workers.worker import Worker, child_memory_bytes

COLD_S = 40.0  # to start a process, create a context, draw and upload inputs, on a busy machine
WARM_S = 15.0  # to load code, draw inputs and compare, where process and context exist
SLOWEST_FLOP_PER_S = 2e11  # 0.3 % of an H200's f32 without tensor cores; a slower kernel counts as a hang
LIMITS = Limits(slowest_flop_per_s=SLOWEST_FLOP_PER_S, calls=GPU_CALLS)


@dataclass(frozen=True)
class EvaluatedCode:
    """The time of a candidate, and which form of its code ran: its binary, or its PTX text."""

    measurement: Measurement
    code: str  # BINARY or TEXT


class MeasuringService:
    """Verifies and times GPU programs in a child process; PTX replaces a cubin that the driver rejects."""

    def __init__(self, announce: services.Announce, evaluator: Factory) -> None:
        self._service = services.EvaluationService(announce, evaluator)

    def evaluate(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> Reply:
        """Verifies and times a program; the value of the reply is an EvaluatedCode.

        If the driver rejects the program's binary, its PTX is loaded instead. Raises CandidateError: LOAD if
        the driver loads neither form, else of the stage that failed.
        """
        code = artifact.code
        try:
            reply = self._service.evaluate(problem, artifact, effort, seed)
            return replace(reply, value=EvaluatedCode(reply.value, BINARY if code.binary else TEXT))
        except CandidateError as error:
            if error.stage is not Stage.LOAD or not code.binary or not code.text:
                raise
            refused = error
        try:
            bare = replace(artifact, code=replace(code, binary=b""))
            reply = self._service.evaluate(problem, bare, effort, seed)
            return replace(reply, value=EvaluatedCode(reply.value, TEXT))
        except CandidateError as error:
            raise (refused if error.stage is Stage.LOAD else error) from error

    def remeasure(self, problem: Problem, group: services.Group, effort: Effort, seed: int) -> FinalTimes:
        """Times programs interleaved; one that fails has a Failure, and the others may then have no time."""
        return self._service.remeasure(problem, group, effort, seed)


def gpu_evaluator(chip: str) -> GpuEvaluator:
    """Returns the evaluator of ``chip`` on this GPU.

    Of problems above 2**40 flop, only a sample of C's rows is compared with the reference.
    """
    return GpuEvaluator(chip, compare=compare_sampled)


def gpu_evaluator_factory(chip: str) -> Factory:
    """Returns a factory by which a child process calls ``gpu_evaluator(chip)``."""
    return Factory("tuner.elsewhere.bundle.gpu_child:gpu_evaluator", (chip,))


def measuring_spec(evaluator: Factory) -> ServiceSpec:
    """Returns how to start a child process with a MeasuringService; ``evaluator`` makes its evaluator."""
    factory = Factory("tuner.elsewhere.bundle.gpu_child:MeasuringService", (evaluator,))
    return ServiceSpec("measure", factory, services.gpu_library_environment(), announces=True)


@final
class GpuChild:
    """A handle of the child process that runs GPU programs of one problem; it is restarted after a crash."""

    def __init__(self, problem: Problem, evaluate: Factory) -> None:
        self._problem = problem
        self._worker = Worker(measuring_spec(evaluate), child_memory_bytes(problem))
        self._is_warm = False

    def evaluate(self, trial: PendingTrial, effort: Effort, seed: int, within_s: float) -> Reply | None:
        """Returns a Reply with a candidate's EvaluatedCode or Failure; None if the time was too short for it.

        ``within_s``: seconds that are left. ``seed``: of the random inputs. A program that takes longer than
        its own limit is a Failure: it hangs.
        """
        limit_s = hang_limit_s(self._problem, effort, 1, self._is_warm)
        return self._reply_of("evaluate", artifact_of(trial, BINARY), effort, seed, within_s, limit_s)

    def remeasure(
        self, artifacts: tuple[Artifact, ...], effort: Effort, seed: int, within_s: float
    ) -> FinalTimes:
        """Times the programs and cuBLAS, the baseline, interleaved.

        A program that fails has a Failure in place of its time; the others may then have none. No times if
        the child process fails, or ``within_s`` seconds are over.
        """
        group = services.Group(artifacts, has_baseline=True)
        limit_s = hang_limit_s(self._problem, effort, group.size, is_warm=False)  # also compares cuBLAS's C
        reply = self._reply_of("remeasure", group, effort, seed, within_s, limit_s)
        if reply is not None and isinstance(reply.value, FinalTimes):
            return reply.value
        return FinalTimes(())

    def close(self) -> None:
        """Kills the child process, whatever it is doing."""
        self._worker.kill()

    def _reply_of(
        self, method: str, work: object, effort: Effort, seed: int, within_s: float, limit_s: float
    ) -> Reply | None:
        """Returns the child's reply; None if ``within_s`` ended it before its own limit ``limit_s``.

        Asks again, in a fresh process, where an earlier program may have caused the failure.
        """
        timeout_s = min(limit_s, max(within_s, 0.1))
        news = self._worker.ask(
            method, self._problem, work, effort, seed, stage=Stage.RUN, timeout_s=timeout_s
        )
        if news.is_doubtful:  # an earlier candidate may be the cause: repeat in a fresh process
            self._is_warm = False
            limit_s += COLD_S + reference_limit_s(self._problem)
            return self._reply_of(method, work, effort, seed, within_s - news.seconds, limit_s)
        is_broken = services.is_of_a_broken_process(news.value)
        if is_broken:
            self._worker.kill()
        self._is_warm = not is_broken and (self._is_warm or not isinstance(news.value, Failure))
        is_cut = is_broken and within_s < limit_s and news.seconds >= within_s  # too early for a hang
        if is_cut:
            return None
        return news


def hang_limit_s(problem: Problem, effort: Effort, programs: int, is_warm: bool) -> float:
    """Returns the seconds after which a number of programs, timed together with ``effort``, count as hanging.

    ``programs``: their number. ``is_warm``: the child process and its context exist, which shortens the
    limit.
    """
    start_s = WARM_S if is_warm else COLD_S + reference_limit_s(problem)
    return start_s + programs * LIMITS.timing_s(problem, effort, effort.stop_above_s)


def reference_limit_s(problem: Problem) -> float:
    """Returns the seconds that the float64 reference product of a problem may take on the host."""
    return min(problem.flop, WHOLE_FLOP) / REFERENCE_FLOP_PER_S


def artifact_of(trial: PendingTrial, form: str) -> Artifact:
    """Returns a trial's code to load: with its binary if ``form`` is BINARY, else the text (PTX) alone."""
    code = trial.program if form == BINARY else replace(trial.program, binary=b"")
    return Artifact(code, trial.artifact_sha256)
