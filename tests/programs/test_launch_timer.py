"""Every launch between two events of its stream, on the stand-in of the CUDA driver."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from benchmarks.program_compiler import compiler_of
from tuner.core.gpu import DeviceError

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.device")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def code() -> Any:
    """Gives two kernels on two streams, as PTX."""
    from benchmarks.fuzzing.program_check import SIMULATOR

    return compiler_of(SIMULATOR).compile((EXAMPLES / "gpux_own_streams.mlir").read_text(), None, None).code


def arrays() -> tuple[Any, ...]:
    return tuple(np.arange(128, dtype=np.float32) + number for number in range(4))


def test_launches_are_timed_and_results_stay_right(code: Any) -> None:
    from tuner.programs.execution import LaunchTimer
    from tuner.programs.run.device_function import DeviceFunction

    device = StubDriver().open()
    timer = LaunchTimer(device)
    program = DeviceFunction(code, timer.as_device())
    inputs = arrays()
    for _ in range(2):
        program(*inputs)
        times = timer.take()
        assert [each.kernel for each in times] == ["scale", "scale"]
        assert all(0 <= each.start_s <= each.stop_s for each in times)
        assert times[0].start_s <= times[1].start_s
    assert timer.take() == ()
    np.testing.assert_array_equal(inputs[2], 2 * np.arange(128))
    program.close()
    timer.close()


def test_whole_calls_and_their_kernels_are_timed(code: Any) -> None:
    from tuner.programs.execution import ROUNDS, time_on_device

    stub = StubDriver()
    times = time_on_device(stub.open(), code, arrays(), seed=0)
    assert times.call_s > 0
    assert times.streams == 3
    assert times.kernel_s > 0
    assert len(stub.launches) > 2 * ROUNDS


def test_a_device_that_refuses_is_reported(code: Any) -> None:
    from tuner.programs.execution import time_on_device

    stub = StubDriver()
    device = stub.open()
    stub.fail("cuEventElapsedTime", 999)
    with pytest.raises(DeviceError, match="cuEventElapsedTime"):
        time_on_device(device, code, arrays(), seed=0)
