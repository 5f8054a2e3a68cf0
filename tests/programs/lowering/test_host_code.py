"""Streams of a program and math operations without a C function, on the host."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.lowering.compiled import host_function
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.host_code")


EXAMPLES = Path(__file__).parents[3] / "examples"
NUMBERS = np.arange(128, dtype=np.float32)


def test_streams_of_its_own_are_dropped() -> None:
    function = host_function((EXAMPLES / "gpux_own_streams.mlir").read_text())
    doubled, tripled = np.zeros(128, np.float32), np.zeros(128, np.float32)
    function(NUMBERS, NUMBERS + 1, doubled, tripled)
    np.testing.assert_array_equal(doubled, 2 * NUMBERS)
    np.testing.assert_array_equal(tripled, 3 * (NUMBERS + 1))
    assert function.allocations == 0


def test_a_stream_of_the_caller_is_no_argument_on_the_host() -> None:
    function = host_function((EXAMPLES / "gpux_users_stream.mlir").read_text())
    doubled = np.zeros(128, np.float32)
    function(NUMBERS, doubled)
    np.testing.assert_array_equal(doubled, 2 * NUMBERS)


def test_segments_may_be_spelled_as_they_once_were() -> None:
    text = (EXAMPLES / "gpux_users_stream.mlir").read_text()
    function = host_function(text.replace("operandSegmentSizes", "operand_segment_sizes"))
    doubled = np.zeros(128, np.float32)
    function(NUMBERS, doubled)
    np.testing.assert_array_equal(doubled, 2 * NUMBERS)


def test_an_op_that_gpux_does_not_have_is_refused() -> None:
    text = (EXAMPLES / "gpux_users_stream.mlir").read_text().replace('"gpux.wait"', '"gpux.flush"')
    with pytest.raises(
        CandidateError, match=r"^gpux\.flush at .*: found gpux\.flush, allowed gpux\.alloc, gpux\."
    ):
        host_function(text)


def test_a_stream_that_control_flow_chooses_is_forgotten() -> None:
    source, target = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    host_function(text_beside(__file__, "CHOSEN"))(source, target, True)
    assert np.array_equal(target, source)


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_the_magnitude_of_integers_is_numpys(bits: int) -> None:
    from tuner.programs.run.host_function import HostFunction

    kind = f"tensor<5xi{bits}>"
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
      %y = math.absi %x : {kind}
      return %y : {kind}
    }}"""
    least = -(2 ** (bits - 1))
    x = np.array([least, least + 1, -3, 0, 7], f"int{bits}")
    found = HostFunction(compiler_of(TargetName("cpu")).compile(text).code)(x)
    np.testing.assert_array_equal(found, np.abs(x))
