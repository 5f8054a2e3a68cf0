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
    return MeasuringService(
        announced.append, Factory("tests.library.bundle.test_service:PickyEvaluator", (refused,))
    )


def artifact(cubin: bytes = CUBIN_CODE) -> Artifact:
    return Artifact("", "", program=program(cubin=cubin))


def test_cublas_in_the_child_chooses_for_itself() -> None:
    assert ("NVIDIA_TF32_OVERRIDE", None) in measuring_spec(Factory("of:anything")).environment


def test_machine_code_runs_where_it_is_taken() -> None:
    announced: list[str] = []
    assert service(announced).evaluate(PROBLEM, artifact(), Effort(), 0).code == CUBIN
    assert announced == ["timing"]


def test_ptx_runs_where_there_is_nothing_else() -> None:
    assert service([]).evaluate(PROBLEM, artifact(b""), Effort(), 0).code == PTX


def test_ptx_runs_where_machine_code_is_not_taken() -> None:
    assert service([], cubin=Stage.LOAD).evaluate(PROBLEM, artifact(), Effort(), 0).code == PTX


def test_where_neither_is_taken_the_reason_is_that_of_the_machine_code() -> None:
    with pytest.raises(CandidateError, match="no cubin here"):
        service([], cubin=Stage.LOAD, ptx=Stage.LOAD).evaluate(PROBLEM, artifact(), Effort(), 0)


def test_ptx_that_loses_the_context_is_the_reason() -> None:
    with pytest.raises(CandidateError, match="no ptx here"):
        service([], cubin=Stage.LOAD, ptx=Stage.RUN).evaluate(PROBLEM, artifact(), Effort(), 0)


@pytest.mark.parametrize("stage", [Stage.RUN, Stage.VERIFY, Stage.MEASURE])
def test_what_failed_later_is_not_tried_again_as_ptx(stage: Stage) -> None:
    with pytest.raises(CandidateError, match="no cubin here"):
        service([], cubin=stage).evaluate(PROBLEM, artifact(), Effort(), 0)


def test_remeasurement_leave_out_what_does_not_load() -> None:
    refusing = service([], cubin=Stage.LOAD)
    bare = replace(artifact(), program=program())
    assert refusing.remeasure(PROBLEM, Group((artifact(), bare)), Effort(), 0) == FinalTimes((None, timed()))


LARGE = Matmul(4096, 4096, 4096)


def test_a_hang_after_a_fast_candidate_is_found_out_soon() -> None:
    known = Effort(stop_above_s=1e-3)
    assert hang_limit_s(LARGE, known, 1, is_warm=True) < 20
    assert hang_limit_s(LARGE, Effort(), 1, is_warm=False) < 150


@pytest.mark.parametrize("is_warm", [False, True])
def test_more_time_is_given_to_more_work(is_warm: bool) -> None:
    small, large = (hang_limit_s(problem, Effort(), 1, is_warm) for problem in (PROBLEM, LARGE))
    assert small < large < hang_limit_s(LARGE, Effort(), 8, is_warm)


def test_a_process_that_starts_anew_is_given_time_for_that() -> None:
    assert (
        hang_limit_s(PROBLEM, Effort(), 1, is_warm=False)
        > hang_limit_s(PROBLEM, Effort(), 1, is_warm=True) + 20
    )


def test_the_reference_of_a_huge_problem_is_not_waited_for_whole() -> None:
    huge = Matmul(65536, 65536, 65536)
    assert hang_limit_s(huge, Effort(stop_above_s=1.0), 1, is_warm=False) < 400


def test_an_artifact_has_its_machine_code_or_only_its_ptx() -> None:
    trial = pending(0, code=program("ptx", cubin=b"cubin"))
    assert artifact_of(trial, CUBIN).program == trial.program
    assert artifact_of(trial, PTX).program == replace(trial.program, cubin=b"")
