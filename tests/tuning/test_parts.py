"""The real parts, each as little as shows that it is wired."""

import subprocess
import sys

import pytest

from tuner.errors import TunerError, UsageError
from tuner.problem import Matmul
from tuner.tuning.parts import real_composition

PROBLEM = Matmul(16, 16, 16)
SOURCE = "func.func @f() {\n  return\n}\n"
RENAME = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %func = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.annotate %func "seen" : !transform.any_op
    transform.yield
  }
}
"""


def test_the_machine_is_this_one() -> None:
    machine = real_composition().machine()
    assert machine.physical_cores >= 1
    assert machine.memory_bytes > 2**20


def test_the_cpu_is_a_target() -> None:
    status = real_composition().targets()[0]
    assert (status.name, status.is_timed) == ("cpu", True)


def test_processors_come_first_and_simulations_give_no_times() -> None:
    assert [status.name for status in real_composition().targets()[:3]] == ["cpu", "cuda", "simulator"]
    assert not real_composition().is_timed("simulator:sm_90")
    assert real_composition().is_timed("cpu")


def test_a_gpu_target_has_a_machine_of_its_own() -> None:
    assert real_composition().target_machine("simulator:sm_80").name == "simulator sm_80"
    assert real_composition().target_machine("cuda:sm_90a").chip == "sm_90a"
    assert real_composition().target_machine("cpu") == real_composition().machine()


def test_the_source_of_a_problem_is_a_payload() -> None:
    assert "linalg.matmul" in real_composition().source("cpu", PROBLEM, "module {}")


def test_the_source_for_a_gpu_has_the_sizes_that_the_script_pads_to() -> None:
    source = real_composition().source("simulator:sm_90", PROBLEM, "// padding: 32 64 16\nmodule {}")
    assert "memref<32x16xf32" in source
    assert "tuner.bounds = array<i64: 16, 16>" in source


@pytest.mark.mlir
def test_the_compiler_tells_its_packages() -> None:
    assert dict(real_composition().compiler("cpu").packages).keys() == {"numba-cuda-mlir", "torch-mlir"}


@pytest.mark.mlir
def test_the_compiler_for_gpus_tells_its_assembler() -> None:
    packages = dict(real_composition().compiler("simulator:sm_90").packages)
    assert packages.keys() == {"numba-cuda-mlir", "ptxas"}


@pytest.mark.mlir
def test_a_script_is_applied_in_a_child() -> None:
    assert "func.func @f() attributes {seen}" in real_composition().apply(RENAME, SOURCE)


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("script", "payload"), [("module {", SOURCE), (RENAME, "nonsense"), (SOURCE, SOURCE)]
)
def test_text_that_is_no_script_or_payload_is_the_users_mistake(script: str, payload: str) -> None:
    with pytest.raises(UsageError, match=r"apply: (script|payload): "):
        real_composition().apply(script, payload)


@pytest.mark.mlir
def test_a_script_that_fails_is_told() -> None:
    broken = RENAME.replace('transform.annotate %func "seen"', "transform.loop.unroll %func { factor = 4 }")
    with pytest.raises(TunerError, match="apply: "):
        real_composition().apply(broken, SOURCE)


@pytest.mark.mlir
def test_the_vendor_is_measured_in_a_child_with_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    vendor = real_composition().vendor(PROBLEM, 1, 0, "cpu")
    assert "Prescott" not in vendor.name
    assert vendor.threads == 1
    assert vendor.measurement.median_s > 0


def test_the_compiler_of_the_cpu_is_told_without_importing_it() -> None:
    program = (
        "import sys; from tuner.tuning.parts import real_composition as parts;"
        "print(parts().compiler('cpu').fingerprint); sys.exit('numba_cuda_mlir' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "numba-cuda-mlir==" in told.stdout
