"""What a refusal of the GPU means for a candidate."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.targets.gpu.simulated_cuda import device_with_a_clock
from tuner.core.errors import RAN, CandidateError, Stage
from tuner.core.gpu import DeviceError
from tuner.core.problem import Matmul, Problem
from tuner.payload.reference import output_dtype
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.targets.gpu.arrays import OUT_OF_MEMORY, GpuProblemArrays, allocating, failing_as


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


# The arrays of a problem on a device: judged whole, guards and inputs as well.

PROBLEM = Matmul(6, 5, 4, epilogue="bias_relu")


@pytest.fixture
def device() -> SimulatedDevice:
    return device_with_a_clock()


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def arrays_of(device: SimulatedDevice, problem: Problem = PROBLEM) -> GpuProblemArrays:
    arrays = GpuProblemArrays(device, problem, rng())
    arrays.fill(rng())
    return arrays


def download(device: SimulatedDevice, address: int, like: np.ndarray) -> np.ndarray:
    found = np.empty_like(like)
    device.copy(found.ctypes.data, address, found.nbytes, 0)
    device.synchronize_stream(0)
    return found


def upload(device: SimulatedDevice, address: int, array: np.ndarray) -> None:
    device.copy(address, array.ctypes.data, array.nbytes, 0)
    device.synchronize_stream(0)


def selected(device: SimulatedDevice, arrays: GpuProblemArrays) -> None:
    """Does what a kernel would: reads the inputs on the device, writes C there."""
    m, n, k = PROBLEM.sizes
    at = arrays.addresses
    a = download(device, at["a"], np.empty((m, k), np.float32))
    b = download(device, at["b"], np.empty((k, n), np.float32))
    bias = download(device, at["bias"], np.empty(n, np.float32))
    upload(device, at["c"], np.maximum(a @ b + bias, 0.0).astype(output_dtype(PROBLEM)))


def verify(
    device: SimulatedDevice, arrays: GpuProblemArrays, run: Callable[[int], None], again: bool
) -> None:
    """Compares what a run leaves: the first one, or one after a right one."""
    if again:
        selected(device, arrays)
        arrays.evaluate()
        arrays.verify_run(run, rng())
    else:
        run(0)
        arrays.evaluate()


def test_a_right_answer_is_right(device: SimulatedDevice) -> None:
    arrays = arrays_of(device)
    selected(device, arrays)
    assert arrays.evaluate().elements == 30
    arrays.verify_run(lambda stream: selected(device, arrays), rng())


def test_what_nobody_wrote_is_wrong(device: SimulatedDevice) -> None:
    arrays = arrays_of(device)
    with pytest.raises(CandidateError, match=r"30 of 30 elements are wrong.*found nan") as caught:
        arrays.evaluate()
    assert caught.value.stage is Stage.VERIFY


def test_what_was_right_once_is_not_taken_for_right_when_nothing_is_written_again(
    device: SimulatedDevice,
) -> None:
    arrays = arrays_of(device)
    selected(device, arrays)
    arrays.evaluate()
    with pytest.raises(CandidateError, match="30 of 30 elements are wrong"):
        arrays.verify_run(lambda stream: None, rng())


def test_fresh_inputs_want_a_fresh_answer(device: SimulatedDevice) -> None:
    arrays = arrays_of(device)
    selected(device, arrays)
    arrays.evaluate()
    old = download(device, arrays.addresses["c"], np.empty((6, 5), np.float32))
    arrays.fill(np.random.default_rng(7))
    with pytest.raises(CandidateError, match="elements are wrong"):
        arrays.verify_run(lambda stream: upload(device, arrays.addresses["c"], old), rng())


@pytest.mark.parametrize("offset", [-1, 6 * 5 * 4])
@pytest.mark.parametrize("again", [False, True])
def test_a_write_outside_of_c_is_seen(device: SimulatedDevice, offset: int, again: bool) -> None:
    arrays = arrays_of(device)

    def run(stream: int) -> None:
        selected(device, arrays)
        upload(device, arrays.addresses["c"] + offset, np.zeros(1, np.uint8))

    with pytest.raises(CandidateError, match="wrote 1 bytes outside of C"):
        verify(device, arrays, run, again)


@pytest.mark.parametrize("name", ["a", "b", "bias"])
@pytest.mark.parametrize("again", [False, True])
def test_an_input_that_was_written_is_seen(device: SimulatedDevice, name: str, again: bool) -> None:
    arrays = arrays_of(device)

    def run(stream: int) -> None:
        selected(device, arrays)
        upload(device, arrays.addresses[name], np.full(1, 77.0, np.float32))

    with pytest.raises(
        CandidateError, match=f"changed its input {'bias' if name == 'bias' else name.upper()}"
    ):
        verify(device, arrays, run, again)


def test_everything_is_freed_even_if_half_of_it_was_had(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays_of(device).close()
    assert device.counts.allocations == device.counts.frees == 4
    allocate = device.allocate

    def scarce(size_bytes: int, stream: int) -> int:
        if device.counts.allocations == 6:
            raise DeviceError("cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY")
        return allocate(size_bytes, stream)

    monkeypatch.setattr(device, "allocate", scarce)
    with pytest.raises(
        CandidateError, match=r"GiB of GPU memory for matmul 6x5x4 f32 nn bias_relu are not free"
    ):
        GpuProblemArrays(device, PROBLEM, rng())
    assert device.counts.allocations == device.counts.frees == 6


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "tf32", "f64", "i8"])
def test_before_a_sample_one_number_has_another_top_bit_and_none_after_it(
    device: SimulatedDevice, dtype: str
) -> None:
    arrays, stream = arrays_of(device, Matmul(6, 5, 4, dtype)), device.create_stream()
    item_bytes = arrays.problem.input_bytes
    sizes = {"a": 24, "b": 20}
    was = {
        name: download(device, arrays.addresses[name], np.empty((sizes[name], item_bytes), np.uint8))
        for name in sizes
    }
    arrays.prepare_sample(rng(), stream)
    device.synchronize_stream(stream)
    changed = [
        was[name][row] ^ now[row]
        for name in sizes
        for now in [download(device, arrays.addresses[name], was[name])]
        for row in np.flatnonzero((was[name] != now).any(axis=1))
    ]
    assert [bits.tolist() for bits in changed] == [[0] * (item_bytes - 1) + [0x80]]
    arrays.end_sample(rng(), stream, is_evaluated=False)
    for name in sizes:
        assert np.array_equal(download(device, arrays.addresses[name], was[name]), was[name])


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8"])
def test_c_of_a_sample_that_writes_nothing_is_nan_or_is_found_wrong(
    device: SimulatedDevice, dtype: str
) -> None:
    arrays, stream = arrays_of(device, Matmul(6, 5, 4, dtype)), device.create_stream()
    found = set()
    for seed in range(8):
        arrays.prepare_sample(np.random.default_rng(seed), stream)
        with pytest.raises(
            CandidateError, match=r"30 of 30 elements are NaN|elements looked at are wrong"
        ) as caught:
            arrays.end_sample(rng(), stream, is_evaluated=True)
        found.add("are NaN" in caught.value.reason)
    assert found == {True, False}
