"""Math operations that have no C library function give what numpy gives, on the host."""

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import TargetName

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.host_code")


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
