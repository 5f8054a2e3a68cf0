"""Programs that torch-mlir exports give what torch gives, on the host and on the simulated GPU."""

import pytest

from benchmarks.program_compiler import compiler_of
from tuner.core.target_name import TargetName

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
pytest.importorskip("torch", reason=NO_TORCH)
corpus = pytest.importorskip("tests.programs.exports.corpus")
comparison = pytest.importorskip("tests.programs.exports.comparison")

CPU, SIMULATOR = TargetName("cpu"), TargetName("simulator", "sm_90")


def test_each_name_is_that_of_one_export() -> None:
    assert len(corpus.EXPORTS) == sum(len(exports) for exports in corpus.LISTS.values()) >= 60
    assert {*corpus.USUAL, *corpus.SIMULATED, *corpus.NOT_SIMULATED} <= corpus.EXPORTS.keys()


def test_a_program_on_the_host_gives_what_torch_gives(export_name: str) -> None:
    from tuner.programs.run.host_function import HostFunction

    made = corpus.built(export_name)
    program = HostFunction(compiler_of(CPU).compile(corpus.text_of(export_name)).code)
    results = program(*map(comparison.array_of, made.inputs))
    comparison.require_equal(results, made.expected, corpus.EXPORTS[export_name].tolerance)
    assert program.allocations == 0


def test_a_program_on_the_simulated_gpu_gives_what_torch_gives(simulated_name: str) -> None:
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    made = corpus.built(simulated_name)
    device = SimulatedDevice("sm_90")
    program = DeviceFunction(compiler_of(SIMULATOR).compile(corpus.text_of(simulated_name)).code, device)
    results = program(*map(comparison.array_of, made.inputs))
    comparison.require_equal(results, made.expected, corpus.EXPORTS[simulated_name].tolerance)
    program.close()
    assert device.reports == ()
