import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.gpu import modules

pytestmark = pytest.mark.mlir


MODULE = text_beside(__file__, "MODULE")


def inlined(callee: str, around: str = "") -> str:
    text = MODULE.replace("%y = func.call @twice", f"%y = func.call @{callee}")
    with parsed(text) as module:
        modules.inline_device_functions(module)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize(("callee", "additions"), [("twice", 1), ("four_times", 2)])
def test_what_a_kernel_calls_becomes_its_custom_ops(callee: str, additions: int) -> None:
    text = inlined(callee)
    assert "func.call" not in text
    assert "func.func" not in text
    assert text.count("arith.addf") == additions


@pytest.mark.parametrize("callee", ["declared", "branches", "round"])
def test_what_cannot_be_inlined_is_named(callee: str) -> None:
    allowed = "allowed a function of its gpu.module with one block, which does not call itself"
    with pytest.raises(CandidateError, match=f"^func.call at .*: found a call of @{callee}, {allowed}$"):
        inlined(callee)
