"""Arrays and programs on a GPU, and what a refusal of the GPU means for a candidate."""

import ctypes
import gc
from dataclasses import replace

import numpy as np
import pytest

from tests.gpu.target.simulated_cuda import download, upload
from tests.support.stub_driver import StubDriver
from tests.targets.evaluation import fails, rng
from tests.texts import text_beside
from tuner.core.compiled_code import BufferMap, KernelBuffer, KernelCode, Launch, TensorMapLayout
from tuner.core.errors import RAN, CandidateError, DeviceError, Stage
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.target import arrays as module
from tuner.gpu.target.arrays import Arguments, GpuProblemArrays, LoadedKernels, allocating, failing_as
from tuner.payload.reference import output_dtype


def refusal(error_name: str) -> DeviceError:
    return DeviceError(f"cuLaunchKernel: {error_name}", error_name)


@pytest.mark.parametrize("stage", [Stage.LOAD, Stage.RUN, Stage.MEASURE])
def test_a_refusal_fails_the_candidate_at_its_stage(stage: Stage) -> None:
    with fails(stage, match=r"^cuLaunchKernel: CUDA_ERROR_INVALID_VALUE$"), failing_as(stage):
        raise refusal("CUDA_ERROR_INVALID_VALUE")


@pytest.mark.parametrize(
    "name", ["ILLEGAL_ADDRESS", "LAUNCH_FAILED", "ECC_UNCORRECTABLE", "MISALIGNED_ADDRESS"]
)
def test_an_error_that_takes_the_context_ends_the_process_even_from_load(name: str) -> None:
    with pytest.raises(CandidateError, match=name) as caught, failing_as(Stage.LOAD):
        raise refusal(f"CUDA_ERROR_{name}")
    assert caught.value.stage in RAN


def test_other_errors_pass_and_a_lack_of_memory_reports_what_for() -> None:
    with pytest.raises(ZeroDivisionError), failing_as(Stage.RUN):
        _ = 1 // 0
    with pytest.raises(DeviceError, match="INVALID_VALUE"), allocating("scratch", 1, Stage.LOAD):
        raise refusal("CUDA_ERROR_INVALID_VALUE")
    reason = r"^1\.50 GiB of GPU memory for scratch are not free: CUDA_E"
    with fails(Stage.LOAD, match=reason), failing_as(Stage.RUN), allocating("scratch", 3 << 29, Stage.LOAD):
        raise refusal(module.OUT_OF_MEMORY)


# The arrays of a problem on a device: judged whole, guards and inputs as well.
PROBLEM = Matmul(6, 5, 4, epilogue="bias_relu")


def arrays_of(device: SimulatedDevice, problem: Problem = PROBLEM) -> GpuProblemArrays:
    arrays = GpuProblemArrays(device, problem, rng())
    arrays.fill(rng())
    return arrays


def selected(device: SimulatedDevice, arrays: GpuProblemArrays) -> None:
    """Does what a kernel would: reads the inputs on the device, writes C there."""
    m, n, k = PROBLEM.sizes
    shapes = (("a", (m, k)), ("b", (k, n)), ("bias", (n,)))
    a, b, bias = (download(device, arrays.addresses[at], np.empty(s, np.float32)) for at, s in shapes)
    upload(device, arrays.addresses["c"], np.maximum(a @ b + bias, 0.0).astype(output_dtype(PROBLEM)))


def test_what_nobody_wrote_or_wrote_again_is_wrong(device: SimulatedDevice) -> None:
    arrays = arrays_of(device)
    with fails(Stage.VERIFY, match=r"30 of 30 elements are wrong.*found nan"):
        arrays.evaluate()
    selected(device, arrays)
    arrays.evaluate()
    old = download(device, arrays.addresses["c"], np.empty((6, 5), np.float32))
    with pytest.raises(CandidateError, match="30 of 30 elements are wrong"):
        arrays.verify_run(lambda stream: None, rng())
    arrays.fill(np.random.default_rng(7))  # other inputs want another C
    with pytest.raises(CandidateError, match="elements are wrong"):
        arrays.verify_run(lambda stream: upload(device, arrays.addresses["c"], old), rng())


OTHER = np.full(1, 77.0, np.float32)


@pytest.mark.parametrize(
    ("name", "offset", "written", "message"),
    [
        ("c", -1, np.zeros(1, np.uint8), "wrote 1 bytes outside of its outputs"),
        ("c", 6 * 5 * 4, np.zeros(1, np.uint8), "wrote 1 bytes outside of its outputs"),
        ("a", 0, OTHER, "changed its input A"),
        ("b", 0, OTHER, "changed its input B"),
        ("bias", 0, OTHER, "changed its input bias"),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_a_write_outside_of_c_or_to_an_input_is_seen_at_once_or_after_a_right_run(
    device: SimulatedDevice, name: str, offset: int, written: np.ndarray, message: str, again: bool
) -> None:
    arrays = arrays_of(device)

    def run(stream: int) -> None:
        selected(device, arrays)
        upload(device, arrays.addresses[name] + offset, written)

    if again:
        selected(device, arrays)
        arrays.evaluate()
    else:
        run(0)
    with pytest.raises(CandidateError, match=message):
        arrays.verify_run(run, rng()) if again else arrays.evaluate()


def test_half_of_it_is_freed_as_well(device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays_of(device).close()
    assert device.counts.allocations == device.counts.frees == 4
    allocate = device.allocate

    def scarce(size_bytes: int, stream: int) -> int:
        if device.counts.allocations == 6:
            raise refusal(module.OUT_OF_MEMORY)
        return allocate(size_bytes, stream)

    monkeypatch.setattr(device, "allocate", scarce)
    with pytest.raises(CandidateError, match="GiB of GPU memory for matmul 6x5x4 f32 nn bias_relu are not"):
        GpuProblemArrays(device, PROBLEM, rng())
    assert device.counts.allocations == device.counts.frees == 6


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "tf32", "f64", "i8"])
def test_one_number_has_another_top_bit_during_a_sample(device: SimulatedDevice, dtype: str) -> None:
    arrays, stream = arrays_of(device, Matmul(6, 5, 4, dtype)), device.create_stream()
    item_bytes = arrays.problem.input_bytes

    def inputs() -> np.ndarray:
        empty = ((name, np.empty((count, item_bytes), np.uint8)) for name, count in (("a", 24), ("b", 20)))
        return np.concatenate([download(device, arrays.addresses[name], like) for name, like in empty])

    before = inputs()
    arrays.prepare_sample(rng(), stream)
    device.synchronize_stream(stream)
    changed = before ^ inputs()
    assert changed[changed.any(axis=1)].tolist() == [[0] * (item_bytes - 1) + [0x80]]
    arrays.end_sample(rng(), stream, is_evaluated=False)
    assert np.array_equal(inputs(), before)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8"])
def test_c_of_a_sample_that_writes_nothing_is_nan_or_wrong(device: SimulatedDevice, dtype: str) -> None:
    arrays, stream = arrays_of(device, Matmul(6, 5, 4, dtype)), device.create_stream()
    found = set()
    for seed in range(8):
        arrays.prepare_sample(np.random.default_rng(seed), stream)
        message = r"30 of 30 elements are NaN|elements looked at are wrong"
        with pytest.raises(CandidateError, match=message) as caught:
            arrays.end_sample(rng(), stream, is_evaluated=True)
        found.add("are NaN" in caught.value.reason)
    assert found == {True, False}


# A program on a device: pointers arrive, zeros are zeros before every run, memory is given back.
BUFFERS = (
    KernelBuffer("c", 4, "output", is_zeroed=True),
    KernelBuffer("workspace", 6, "scratch"),  # no whole number of words
)
LAUNCH = Launch("count", (1, 1, 1), (1, 1, 1), 0, ("c", "workspace"))
PROGRAM = KernelCode("sm_90", text_beside(__file__, "PTX"), b"", (LAUNCH,), BUFFERS)


@pytest.fixture
def stub() -> StubDriver:
    return StubDriver()


def test_arguments_are_the_addresses_of_addresses(stub: StubDriver) -> None:
    launch = Launch("k", (1, 1, 1), (1, 1, 1), 0, ("b", "a", "b"))
    arguments = Arguments(launch, {"a": 0xA0, "b": 0xB0}, stub.open())
    pointers = ctypes.cast(arguments.address, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
    assert [pointers[index][0] for index in range(3)] == [0xB0, 0xA0, 0xB0]


def test_a_tensor_map_is_encoded_for_its_buffer_and_aligned() -> None:
    layout = TensorMapLayout((64, 8), (128,), (64, 8), 6, swizzle=3)
    launch = Launch("k", (1, 1, 1), (1, 1, 1), 0, ("a_map0", "b"), (BufferMap("a_map0", "a", layout),))
    device = SimulatedDevice("sm_90")
    arguments = Arguments(launch, {"a": 0xA00, "b": 0xB0}, device)
    pointers = ctypes.cast(arguments.address, ctypes.POINTER(ctypes.c_uint64))
    assert pointers[0] % 64 == 0
    assert ctypes.string_at(pointers[0], 128) == device.tensor_map(0xA00, layout)
    assert ctypes.c_uint64.from_address(pointers[1]).value == 0xB0


@pytest.mark.parametrize(("is_zeroed", "counted"), [(True, 1), (False, 12)])
def test_what_begins_as_zeros_does_so_in_every_run(stub: StubDriver, is_zeroed: bool, counted: int) -> None:
    device = stub.open()
    buffers = (replace(BUFFERS[0], is_zeroed=is_zeroed), BUFFERS[1])
    loaded = LoadedKernels(device, replace(PROGRAM, buffers=buffers))
    c = device.allocate(4, 0)
    device.fill(c, 10, 4, 1, 0)
    run = loaded.work({"c": c})
    run(0)
    run(0)
    assert ctypes.c_uint32.from_address(c).value == counted
    assert stub.errors == []


def test_scratch_that_keeps_zeros_is_zeroed_when_it_is_allocated_and_never_again(stub: StubDriver) -> None:
    counters = KernelBuffer("workspace", 8, "scratch", is_zeroed=True, keeps_zeros=True)
    device = stub.open()
    loaded = LoadedKernels(device, replace(PROGRAM, buffers=(BUFFERS[0], counters)))
    ((_, address),) = loaded._scratch.items()  # noqa: SLF001
    words = ctypes.c_uint64.from_address(address)
    assert words.value == 0
    words.value = 5
    loaded.poison()
    loaded.work({"c": device.allocate(4, 0)})
    assert words.value == 5


def test_scratch_memory_is_poisoned_to_its_last_byte(stub: StubDriver) -> None:
    device = stub.open()
    loaded = LoadedKernels(device, PROGRAM)
    loaded.poison()
    loaded.work({"c": device.allocate(4, 0)})(0)
    ((_, workspace),) = loaded._scratch.items()  # noqa: SLF001
    assert ctypes.string_at(workspace, 6) == b"\xff" * 6


@pytest.mark.parametrize("is_lost", [False, True])  # a warning of a finalizer that raised would be an error
def test_what_a_program_held_is_given_back_or_the_context_is_lost(stub: StubDriver, is_lost: bool) -> None:
    loaded = LoadedKernels(stub.open(), PROGRAM)
    assert stub.live_blocks == 1
    if is_lost:
        stub.fail("cuMemFreeAsync", 700)
    del loaded
    gc.collect()
    assert stub.calls("cuMemFreeAsync") == 1
    if not is_lost:
        assert (stub.live_blocks, stub.calls("cuModuleUnload")) == (0, 1)
