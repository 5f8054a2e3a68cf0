import pytest

from tests.mlir.kernels import parsed
from tests.programs.lower.device_programs import LOOP_WITH_HOST, host_text, main_function
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

drop_tokens = pytest.importorskip("tuner.programs.lower.streams.drop_tokens")
synchronous = pytest.importorskip("tuner.programs.lower.streams.synchronous")


def test_what_was_made_asynchronous_is_as_it_was() -> None:
    with main_function(LOOP_WITH_HOST) as (module, function):
        before = host_text(module)
        synchronous.wait_for_each(function)
        assert "gpu.wait" in host_text(module)
        drop_tokens.drop_tokens(function)
        assert module.operation.verify()
        assert host_text(module) == before


def test_a_token_that_control_flow_hands_on_is_refused() -> None:
    text = """func.func @main(%flag: i1) {
      %t = gpu.wait async
      %u = arith.select %flag, %t, %t : !gpu.async.token
      gpu.wait [%u]
      return
    }"""
    message = (
        r"^arith\.select at .*: found a token of gpu\.wait, allowed for gpu operations in the same block$"
    )
    with parsed(text) as module, pytest.raises(CandidateError, match=message) as failure:
        drop_tokens.drop_tokens(module.body.operations[0].operation)
    assert failure.value.stage is Stage.COMPILE
