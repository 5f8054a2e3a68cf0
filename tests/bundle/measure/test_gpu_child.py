from dataclasses import replace

import pytest

from tests.bundle.values import PROBLEM, pending, program
from tuner.bundle.measure.gpu_child import allowed_s, artifact_of
from tuner.core.measured_elsewhere import CUBIN, PTX
from tuner.core.problem import Matmul
from tuner.core.target import Effort

LARGE = Matmul(4096, 4096, 4096)


def test_a_hang_behind_a_fast_candidate_is_found_out_soon() -> None:
    known = Effort(stop_above_s=1e-3)
    assert allowed_s(LARGE, known, 1, is_warm=True) < 20
    assert allowed_s(LARGE, Effort(), 1, is_warm=False) < 150


@pytest.mark.parametrize("is_warm", [False, True])
def test_more_time_is_given_to_more_work(is_warm: bool) -> None:
    small, large = (allowed_s(problem, Effort(), 1, is_warm) for problem in (PROBLEM, LARGE))
    assert small < large < allowed_s(LARGE, Effort(), 8, is_warm)


def test_a_process_that_starts_anew_is_given_time_for_that() -> None:
    assert allowed_s(PROBLEM, Effort(), 1, is_warm=False) > allowed_s(PROBLEM, Effort(), 1, is_warm=True) + 20


def test_the_reference_of_a_huge_problem_is_not_waited_for_whole() -> None:
    huge = Matmul(65536, 65536, 65536)
    assert allowed_s(huge, Effort(stop_above_s=1.0), 1, is_warm=False) < 400


def test_an_artifact_has_its_machine_code_or_only_its_ptx() -> None:
    trial = pending(0, code=program("ptx", cubin=b"cubin"))
    assert artifact_of(trial, CUBIN).program == trial.program
    assert artifact_of(trial, PTX).program == replace(trial.program, cubin=b"")
