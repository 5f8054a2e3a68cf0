"""Products of bytes that are summed in 16 bits: exact where no sum can saturate."""

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.instruction_sets import AVX2, SETS
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.runtime.cpu.host import missing_sets, own_flags
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

STEPS, BYTES, LANES = 8, 32, 8
# (nibbles of even and of odd bytes, signed bytes likewise)
EXTREMES = (
    ((15, 15), (-128, -128)),
    ((15, 15), (127, 127)),
    ((15, 0), (-128, 127)),
    ((0, 15), (-128, 127)),
    ((15, 15), (-128, 127)),
    ((0, 0), (-128, -128)),
)


@pytest.mark.mlir
@pytest.mark.parametrize("emulates", [False, True], ids=["instructions", "vector code"])
def test_sums_of_eight_products_of_nibbles_and_bytes_do_not_saturate(emulates: bool) -> None:
    if not emulates and missing_sets([AVX2], own_flags()):
        pytest.skip(f"needs {' and '.join(sorted(SETS[AVX2].flags))}")
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(text_beside(__file__, "NIBBLES"), "nibbles")
        jitted = JittedModule(lower_to_llvm(module, emulates=emulates), ("f",))
    multiply = CompiledFunction(jitted.addresses["f"])
    rng = np.random.default_rng(0)
    drawn = [(rng.integers(0, 16, (STEPS, BYTES)), rng.integers(-128, 128, (STEPS, BYTES)))]
    whole = [[np.tile(pair, (STEPS, BYTES // 2)) for pair in pairs] for pairs in EXTREMES]
    for nibbles, numbers in [*drawn, *whole]:
        unsigned, signed = nibbles.astype(np.uint8), numbers.astype(np.int8)
        sums = rng.integers(-(2**20), 2**20, LANES).astype(np.int32)
        expected = sums + (nibbles * numbers).reshape(STEPS, LANES, 4).sum((0, 2))
        multiply(PackedArguments(*(array.ctypes.data for array in (unsigned, signed, sums))))
        np.testing.assert_array_equal(sums, expected)
