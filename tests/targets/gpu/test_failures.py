"""What a refusal of the GPU means for a candidate."""

import pytest

from tuner.core.errors import RAN, CandidateError, Stage
from tuner.core.gpu import DeviceError
from tuner.targets.gpu.arrays import OUT_OF_MEMORY, allocating, failing_as


def refusal(error_name: str) -> DeviceError:
    return DeviceError(f"cuLaunchKernel: {error_name}", error_name)


@pytest.mark.parametrize("stage", [Stage.LOAD, Stage.RUN, Stage.MEASURE])
def test_a_refusal_fails_the_candidate_at_its_stage(stage: Stage) -> None:
    with (
        pytest.raises(CandidateError, match=r"^cuLaunchKernel: CUDA_ERROR_INVALID_VALUE$") as caught,
        failing_as(stage),
    ):
        raise refusal("CUDA_ERROR_INVALID_VALUE")
    assert caught.value.stage is stage


@pytest.mark.parametrize(
    "name", ["ILLEGAL_ADDRESS", "LAUNCH_FAILED", "ECC_UNCORRECTABLE", "MISALIGNED_ADDRESS"]
)
def test_an_error_that_takes_the_context_ends_the_process_even_from_load(name: str) -> None:
    with pytest.raises(CandidateError, match=name) as caught, failing_as(Stage.LOAD):
        raise refusal(f"CUDA_ERROR_{name}")
    assert caught.value.stage in RAN


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), failing_as(Stage.RUN):
        _ = 1 // 0


def test_a_lack_of_memory_reports_what_for() -> None:
    with (
        pytest.raises(
            CandidateError, match=r"^1\.50 GiB of GPU memory for scratch are not free: CUDA_E"
        ) as caught,
        failing_as(Stage.RUN),
        allocating("scratch", 3 << 29, Stage.LOAD),
    ):
        raise refusal(OUT_OF_MEMORY)
    assert caught.value.stage is Stage.LOAD


def test_another_refusal_while_allocating_is_reported_as_it_is() -> None:
    with pytest.raises(DeviceError, match="INVALID_VALUE"), allocating("scratch", 1, Stage.LOAD):
        raise refusal("CUDA_ERROR_INVALID_VALUE")
