"""The simulated GPU as a kind of target, and what types GPUs take."""

import pytest

from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.fusions import FLOAT8S
from tuner.core.gpu import chip_of
from tuner.core.problem import INPUT_DTYPES, Matmul
from tuner.mlir.fingerprint import SIMULATOR_SOURCES, sources_sha256
from tuner.targets.gpu import cuda, simulator_target
from tuner.targets.gpu.simulator_target import KIND
from tuner.targets.interface import TargetBackend

PROBLEM = Matmul(16, 16, 16)
TARGET = TargetName("simulator", "sm_90")


def test_it_is_always_there_and_gives_no_times() -> None:
    status = KIND.status()
    assert (status.name, status.is_available, status.is_timed) == ("simulator", True, False)
    assert status.chip == ""
    assert "ptxas" in status.reason
    machine = KIND.outcomes.machine(TARGET)
    assert machine.name == "simulator sm_90"
    assert dict(machine.limits())["max_shared_bytes"] == chip_of("sm_90").max_shared_bytes
    with pytest.raises(TunerError, match="the simulator has no clock"):
        KIND.outcomes.baseline(PROBLEM, 1, 0)
    with pytest.raises(TunerError, match="the simulator has no clock"):
        KIND.outcomes.roofline(PROBLEM, 1)


@pytest.mark.mlir
def test_a_verdict_is_of_this_simulator_and_the_compiler_reports_its_assembler() -> None:
    compiler = KIND.outcomes.compiler(TARGET)
    assert compiler.pipeline_sha256 == sources_sha256(SIMULATOR_SOURCES)
    assert dict(compiler.packages).keys() == {"numba-cuda-mlir", "ptxas"}


def test_the_source_for_a_gpu_has_true_sizes_and_the_buffers_that_the_script_adds() -> None:
    source = KIND.source(PROBLEM, "// workspace: 2 32 64\nmodule {}")
    assert "%a: memref<16x16xf32>" in source
    assert "%slices: memref<2x32x64xf32>" in source


@pytest.mark.parametrize("kind", [cuda.KIND, simulator_target.KIND], ids=lambda kind: str(kind.name))
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
def test_chips_before_sm_89_take_all_but_8_bit_floats(kind: TargetBackend, dtype: str) -> None:
    problem = Matmul(8, 8, 8, dtype)
    for chip in ("sm_89", "sm_90", "sm_90a", "sm_120"):
        kind.require_types(problem, TargetName(kind.name, chip))
    for chip in ("sm_80", "sm_86"):
        target = TargetName(kind.name, chip)
        if dtype not in FLOAT8S:
            kind.require_types(problem, target)
            continue
        message = f"^dtype: found '{dtype}', allowed f32, f64, .*, i8 on {chip}; sm_89 and later take it$"
        with pytest.raises(UsageError, match=message):
            kind.require_types(problem, target)
