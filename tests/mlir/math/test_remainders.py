"""``arith.remf`` in kernels, against C's fmod."""

import numpy as np
import pytest

from tests.mlir.math.kernel_math import COUNT, DTYPES, EDGES, computed, program_of
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_a_remainder_is_exact(kind: str) -> None:
    rng, dtype = np.random.default_rng(0), DTYPES[kind]
    with np.errstate(all="ignore"):
        x, y = (grid.ravel().astype(dtype) for grid in np.meshgrid(EDGES, EDGES))
        more = (rng.normal(size=(2, COUNT - len(x))) * 10 ** rng.uniform(-3, 3, (2, COUNT - len(x)))).astype(
            dtype
        )
        x, y = np.concatenate([x, more[0]]), np.concatenate([y, more[1]])
        expected = np.fmod(x, y)
    found = computed(f"%y = arith.remf %x0, %x1 : {kind}", x, y, types=(kind, kind), result=kind)
    np.testing.assert_array_equal(found, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def test_remainders_of_vectors_are_refused() -> None:
    op = """%v = vector.broadcast %x0 : f32 to vector<2xf32>
      %r = arith.remf %v, %v : vector<2xf32>
      %y = vector.extract %r[0] : f32 from vector<2xf32>"""
    with pytest.raises(CandidateError, match=r"arith\.remf of vector<2xf32>, allowed scalars"):
        program_of(op, ("f32",), "f32")
