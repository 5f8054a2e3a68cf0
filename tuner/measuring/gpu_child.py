"""The child process that owns the GPU, as its parent sees it: one candidate's loss is no other's."""

from dataclasses import replace
from typing import final

from tuner.errors import Failure, Stage
from tuner.measured_elsewhere import CUBIN
from tuner.measuring.service import Judged, measuring_spec
from tuner.pending import PendingTrial
from tuner.problem import Problem
from tuner.record import Measurement
from tuner.reference import reference_bytes
from tuner.sampled_reference import WHOLE_FLOP
from tuner.target import Artifact, Effort
from tuner.workers.limits import REFERENCE_FLOP_PER_S
from tuner.workers.protocol import Factory, Reply
from tuner.workers.supervisor import Worker

# A candidate that failed at one of these has run: it may have taken the GPU's context with it.
RAN = (Stage.RUN, Stage.VERIFY, Stage.MEASURE)
COLD_S = 40.0  # for a process, a context, inputs to draw and to upload, on a busy machine
WARM_S = 15.0  # for code to load, fresh inputs and comparing, where the rest is there
SLOWEST_FLOP_PER_S = 2e11  # 0.3 % of what an H200 does in f32 without tensor cores; what is slower hangs
CALLS = 60  # of a kernel that is slow but not hopeless: 20 warm samples, 20 cold ones, and around them
MEMORY_BYTES = 8 << 30  # beside the arrays of the problem: CUDA itself, numpy's temporaries


@final
class GpuChild:
    """Judges the programs of one problem; a process that was lost or had to be ended is replaced."""

    def __init__(self, problem: Problem, judge: Factory) -> None:
        self._problem = problem
        self._worker = Worker(measuring_spec(judge), MEMORY_BYTES + 2 * reference_bytes(problem))
        self._is_warm = False

    def judge(
        self, trial: PendingTrial, effort: Effort, seed: int, within_s: float
    ) -> Judged | Failure | None:
        """Returns what became of a candidate; None where ``within_s`` was over before that was known."""
        judged = self._asked("judge", artifact_of(trial, CUBIN), effort, seed, within_s, 1)
        assert not isinstance(judged, tuple)
        return judged

    def finals(
        self, artifacts: tuple[Artifact, ...], effort: Effort, seed: int, within_s: float
    ) -> tuple[Measurement | None, ...]:
        """Times programs again, interleaved; () where that failed or took too long."""
        times = self._asked("finals", artifacts, effort, seed, within_s, len(artifacts))
        return times if isinstance(times, tuple) else ()

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self._worker.kill()

    def _asked(
        self, method: str, work: object, effort: Effort, seed: int, within_s: float, programs: int
    ) -> Judged | Failure | tuple[Measurement | None, ...] | None:
        limit_s = allowed_s(self._problem, effort, programs, self._is_warm)
        self._worker.submit(
            method,
            *(self._problem, work, effort, seed),
            stage=Stage.RUN,
            timeout_s=min(limit_s, max(within_s, 0.1)),
        )
        while not isinstance(news := self._worker.wait(), Reply):
            self._worker.go_ahead()
        if news.is_doubtful:  # an earlier candidate may be to blame: again in a fresh process
            self._is_warm = False
            return self._asked(method, work, effort, seed, within_s - news.seconds, programs)
        has_run = isinstance(news.value, Failure) and news.value.stage in RAN
        if has_run:
            self._worker.kill()
        self._is_warm = not has_run and (self._is_warm or not isinstance(news.value, Failure))
        is_cut = has_run and within_s < limit_s and news.seconds >= within_s  # too early to call it a hang
        value: Judged | Failure | tuple[Measurement | None, ...] = news.value
        return None if is_cut else value


def allowed_s(problem: Problem, effort: Effort, programs: int, is_warm: bool) -> float:
    """Returns how long programs may take until they count as hanging."""
    compared_flop = min(problem.flop, WHOLE_FLOP)
    start_s = WARM_S if is_warm else COLD_S + compared_flop / REFERENCE_FLOP_PER_S
    call_s = effort.stop_above_s or problem.flop / SLOWEST_FLOP_PER_S
    return start_s + programs * (CALLS * call_s + 4 * effort.budget_s)


def artifact_of(trial: PendingTrial, code: str) -> Artifact:
    """Returns a candidate's program as a judge takes it, with its machine code or without."""
    program = trial.program if code == CUBIN else replace(trial.program, cubin=b"")
    return Artifact(program.ptx, trial.artifact_sha256, (), program=program)
