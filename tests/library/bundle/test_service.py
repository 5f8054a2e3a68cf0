"""The process that owns the GPU: what it runs, and how long it is waited for."""

from dataclasses import replace

import numpy as np
import pytest

from tests.library.bundle.values import PROBLEM, pending, program, timed
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import AbstractEvaluator, Artifact, Effort, FinalTimes
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.remote_results import CUBIN, PTX
from tuner.library.bundle.gpu_child import MeasuringService, artifact_of, hang_limit_s, measuring_spec
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import Group

CUBIN_CODE = b"\x7fELF"


class PickyEvaluator(AbstractEvaluator):
    """Refuses some code at some stage."""

    def __init__(self, refused: dict[str, Stage]) -> None:
        self._refused = refused

    def load(self, problem: Problem, artifact: Artifact) -> object:
        assert artifact.program is not None
        code = CUBIN if artifact.program.cubin else PTX
        if code in self._refused:
            raise CandidateError(self._refused[code], f"no {code} here")
        return code

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        return Verdict(0.0, 1)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        return timed()

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        return tuple(timed() for _ in loaded)


def service(announced: list[str], **refused: Stage) -> MeasuringService:
    picky = Factory("tests.library.bundle.test_service:PickyEvaluator", (refused,))
    return MeasuringService(announced.append, picky)


def artifact(cubin: bytes = CUBIN_CODE) -> Artifact:
    return Artifact("", "", program=program(cubin=cubin))


def test_cublas_in_the_child_chooses_for_itself() -> None:
    assert ("NVIDIA_TF32_OVERRIDE", None) in measuring_spec(Factory("of:anything")).environment


@pytest.mark.parametrize(
    ("cubin", "refused", "found"),
    [
        (CUBIN_CODE, {}, CUBIN),
        (b"", {}, PTX),
        (CUBIN_CODE, {CUBIN: Stage.LOAD}, PTX),
        # where neither is taken the reason is that of the machine code, or of PTX that loses the context
        (CUBIN_CODE, {CUBIN: Stage.LOAD, PTX: Stage.LOAD}, "no cubin here"),
        (CUBIN_CODE, {CUBIN: Stage.LOAD, PTX: Stage.RUN}, "no ptx here"),
        # what failed later is not tried again
        *((CUBIN_CODE, {CUBIN: each}, "no cubin here") for each in (Stage.RUN, Stage.VERIFY, Stage.MEASURE)),
    ],
)
def test_machine_code_runs_where_it_can_else_ptx(cubin: bytes, refused: dict[str, Stage], found: str) -> None:
    announced: list[str] = []
    measuring = service(announced, **refused)
    if found in (CUBIN, PTX):
        assert measuring.evaluate(PROBLEM, artifact(cubin), Effort(), 0).code == found
        assert announced == ["timing"]
    else:
        with pytest.raises(CandidateError, match=found):
            measuring.evaluate(PROBLEM, artifact(cubin), Effort(), 0)


def test_remeasurement_leave_out_what_does_not_load() -> None:
    refusing = service([], cubin=Stage.LOAD)
    bare = replace(artifact(), program=program())
    assert refusing.remeasure(PROBLEM, Group((artifact(), bare)), Effort(), 0) == FinalTimes((None, timed()))


LARGE = Matmul(4096, 4096, 4096)


def test_a_hang_is_found_out_soon_and_more_time_is_given_to_more_work() -> None:
    known, huge = Effort(stop_above_s=1e-3), Matmul(65536, 65536, 65536)
    assert hang_limit_s(LARGE, known, 1, is_warm=True) < 20
    assert hang_limit_s(LARGE, Effort(), 1, is_warm=False) < 150
    for is_warm in (False, True):
        small, large = (hang_limit_s(problem, Effort(), 1, is_warm) for problem in (PROBLEM, LARGE))
        assert small < large < hang_limit_s(LARGE, Effort(), 8, is_warm)
    starting, warm = (hang_limit_s(PROBLEM, Effort(), 1, is_warm) for is_warm in (False, True))
    assert starting > warm + 20  # a process that starts anew
    assert hang_limit_s(huge, Effort(stop_above_s=1.0), 1, is_warm=False) < 400  # the reference, not whole


def test_an_artifact_has_its_machine_code_or_only_its_ptx() -> None:
    trial = pending(0, code=program("ptx", cubin=b"cubin"))
    assert artifact_of(trial, CUBIN).program == trial.program
    assert artifact_of(trial, PTX).program == replace(trial.program, cubin=b"")
