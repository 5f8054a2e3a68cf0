"""Lowering up to a step: the text reads again, and what is GPUX or has tokens runs to the same results."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, UsageError
from tuner.programs.request import STEPS, DeviceOptions, LoweringStep, ProgramOptions, ProgramRequest

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

EXAMPLES = Path(__file__).parents[2] / "examples"
# A loop in which the host reads what a kernel wrote, and a branch.
HOST_READS = text_beside(__file__, "HOST_READS")


@cache
def lowered(text: str, step: LoweringStep, chip: str = "sm_90", **arguments: object) -> str:
    from tuner.programs.service import lower

    options = ProgramOptions(DeviceOptions(**arguments))  # type: ignore[arg-type]
    request = ProgramRequest(text, TargetName("simulator", chip), None, options)
    return lower(request, step).text


def reads_again(text: str) -> bool:
    from tuner.mlir.bindings import ir
    from tuner.mlir.transform import new_context
    from tuner.programs.streams.gpux_ops import parse_with_gpux

    with new_context(), ir.Location.unknown():
        return bool(parse_with_gpux(text, "lowered").operation.verify())


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", [step for step in STEPS if step != "ptx"])
@pytest.mark.parametrize("name", ["two_matmuls", "softmax"])
def test_each_step_reads_again(name: str, step: LoweringStep) -> None:
    assert reads_again(lowered((EXAMPLES / f"{name}.mlir").read_text(), step))


@pytest.mark.parametrize("step", ["async", "streams", "gpux", "llvm"])
def test_a_program_that_names_its_streams_is_lowered_too(step: LoweringStep) -> None:
    assert reads_again(lowered((EXAMPLES / "gpux_own_streams.mlir").read_text(), step))


def test_the_steps_say_what_they_are() -> None:
    of = {step: lowered(HOST_READS, step) for step in STEPS}
    assert "gpu.memcpy  %" in of["device-memory"]
    assert "async" not in of["device-memory"]
    assert "gpu.launch_func async" in of["async"]
    assert "mgpuStreamSynchronize" in of["streams"]
    assert of["gpux"].count('"gpux.create_stream"') == of["gpux"].count('"gpux.destroy_stream"') == 1
    assert "mgpu" not in of["gpux"]
    assert "gpu.binary" in of["llvm"]
    assert of["ptx"].lstrip().startswith("//")
    assert ".entry main_kernel" in of["ptx"]


def test_the_ptx_is_for_the_chip() -> None:
    assert ".target sm_80" in lowered(HOST_READS, "ptx", "sm_80")


def test_the_form_of_the_hosts_code_may_be_chosen() -> None:
    assert "mgpuStreamCreate" in lowered(HOST_READS, "llvm", form="tokens")
    assert "mgpuStreamCreate" not in lowered(HOST_READS, "llvm")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", ["device-memory", "async", "gpux"])
def test_what_was_lowered_runs_to_the_same_results(step: LoweringStep) -> None:
    import tuner
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice
    from tuner.simulator.device.streams import ORDERS

    texts = (HOST_READS, lowered(HOST_READS, step))
    functions = [tuner.compile_program(text, "simulator") for text in texts]
    programs = [each.program for each in functions if isinstance(each, DeviceFunction)]
    assert len(programs) == len(texts)
    for order in ORDERS:
        for program in programs:
            array = np.arange(4, dtype=np.float32) + 1
            assert DeviceFunction(program, SimulatedDevice("sm_90", order))(array, 3) == 14.0
            assert array.tolist() == [8.0, 16.0, 24.0, 32.0]


@pytest.mark.slow
def test_gpux_of_matmuls_runs_to_the_same_results() -> None:
    import tuner

    source = (EXAMPLES / "async_matmul.mlir").read_text()
    rng = np.random.default_rng(0)
    a, b = rng.random((84, 32), np.float32), rng.random((32, 84), np.float32)
    found, expected = np.zeros((84, 84), np.float32), np.zeros((84, 84), np.float32)
    tuner.compile_program(source, "simulator")(a, b, expected)
    tuner.compile_program(lowered(source, "gpux"), "simulator")(a, b, found)
    assert np.array_equal(found, expected)
    assert np.allclose(found, a @ b, atol=1e-4)


def test_device_memory_of_a_program_that_has_it_is_refused() -> None:
    with pytest.raises(CandidateError, match="found device-memory for a program that names its streams"):
        lowered((EXAMPLES / "gpux_own_streams.mlir").read_text(), "device-memory")


def test_a_program_without_kernels_has_no_ptx() -> None:
    with pytest.raises(CandidateError, match="no kernel: nothing in it runs on a device"):
        lowered("func.func @f() { return }", "ptx")


def test_a_payload_that_does_not_parse_is_the_users_mistake() -> None:
    with pytest.raises((UsageError, CandidateError), match="payload"):
        lowered("func.func @f( {", "async")
