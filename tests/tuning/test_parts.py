"""The real parts, each as little as shows that it is wired."""

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
    assert [status.name for status in real_composition().targets()] == ["cpu"]


def test_the_source_of_a_problem_is_a_payload() -> None:
    assert "linalg.matmul" in real_composition().source(PROBLEM, "module {}")


@pytest.mark.mlir
def test_the_compiler_tells_its_packages() -> None:
    assert dict(real_composition().compiler("cpu").packages).keys() == {"numba-cuda-mlir", "torch-mlir"}


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
    vendor = real_composition().vendor(PROBLEM, 1, 0)
    assert "Prescott" not in vendor.name
    assert vendor.threads == 1
    assert vendor.measurement.median_s > 0
