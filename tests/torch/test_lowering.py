"""torch-mlir runs in a child process: a crash is a refusal, in one line, and weights are never sent there."""

import pytest

from tuner.core.errors import UsageError

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'torch>=2.6'")

from tests.texts import text_beside
from tuner.torch.lowering import first_line, lower_in_child, lower_in_process

pytestmark = pytest.mark.mlir

CRASHING = text_beside(__file__, "CRASHING")
WEIGHTED = text_beside(__file__, "WEIGHTED")
NEGATED = """func.func @main(%x: !torch.vtensor<[4],si64>) -> !torch.vtensor<[4],si64> {
  %y = torch.aten.neg %x : !torch.vtensor<[4],si64> -> !torch.vtensor<[4],si64> loc("integers aten.neg":1:0)
  return %y : !torch.vtensor<[4],si64>
}"""


@pytest.mark.slow
def test_a_crash_of_torch_mlir_is_a_refusal() -> None:
    for _ in range(2):  # the second finds the thread's child gone
        with pytest.raises(UsageError, match="torch-mlir refuses the module: killed by SIGSEGV"):
            lower_in_child(CRASHING)
    assert "dense_resource<weight>" in lower_in_child(WEIGHTED)


def test_bytes_of_weights_stay_here() -> None:
    lowered = lower_in_process(WEIGHTED)
    assert "torch" not in lowered
    assert lowered.endswith(WEIGHTED[WEIGHTED.index("\n{-#") :])


def test_integers_that_would_be_floats_are_refused() -> None:
    with pytest.raises(UsageError, match=r"refuses the module: aten\.neg would compute integers as floats"):
        lower_in_process(NEGATED)
    floats = NEGATED.replace("integers ", "")
    assert "arith.sitofp" in lower_in_process(floats)  # torch-mlir alone is wrong


def test_what_does_not_lower_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^torch-mlir refuses the module: error: [^\n]+$"):
        lower_in_process(NEGATED.replace("torch.aten.neg", "torch.aten.no_such"))


def test_a_line_that_ends_with_error_does_not_hide_what_is_wrong() -> None:
    lines = "Could not guard on Eq(u0, 1)\n\nThe following call raised this error:\n  if x.sum() > 0:"
    assert first_line(RuntimeError(lines)) == "Could not guard on Eq(u0, 1)"
