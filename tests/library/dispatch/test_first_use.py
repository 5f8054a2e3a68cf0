from typing import cast

import numpy as np
import pytest

from tests.library.dispatch.rules import configurations, space
from tuner.core.candidate import Candidate
from tuner.core.problem import Matmul, Problem
from tuner.library.dispatch.first_use import (
    BoundCandidate,
    KernelLoader,
    MatmulCall,
    baseline_name,
    numpy_product,
    time_first_use,
)
from tuner.payload.reference import Array

PROBLEM = Matmul(6, 40, 24, layout="nt")


def refused(_a: Array, _b: Array, _out: Array | None, reason: str) -> Array:
    raise AssertionError(reason)


def bound(script_text: str = "") -> BoundCandidate:
    (direct,) = space().projected(PROBLEM, (configurations()[1].candidate,)).candidates
    assert direct is not None
    if script_text:
        return BoundCandidate(Candidate.of("broken", {}), script_text)
    return BoundCandidate(direct, space().script(PROBLEM, direct).text)


def test_the_baseline_is_named_with_its_threads() -> None:
    assert baseline_name().rpartition(" x")[2].isdecimal() or baseline_name() == f"numpy {np.__version__}"


@pytest.mark.mlir
def test_what_fails_is_left_out_with_its_reason_and_the_rest_is_timed() -> None:
    found, calls = time_first_use(PROBLEM, (bound("no MLIR"), bound()), KernelLoader(1), refused)
    broken, direct = found.timed
    assert broken.median_s is None
    assert broken.failure.startswith("bind: script: error")
    assert direct.median_s is not None
    assert found.baseline_s > 0
    assert [*calls] == [direct.configuration.candidate]
    rng = np.random.default_rng(0)
    a = rng.standard_normal((6, 24)).astype(np.float32)
    b = rng.standard_normal((40, 24)).astype(np.float32).T
    assert np.allclose(
        calls[direct.configuration.candidate](a, b, None), numpy_product(a, b, None), atol=1e-4
    )


class WrongLoader:
    """Loads a kernel that leaves the last element out."""

    def loaded(self, _problem: Problem, _script_text: str, _otherwise: object) -> MatmulCall:
        def call(a: Array, b: Array, out: Array | None) -> Array:
            assert out is not None
            kept = out[-1, -1].copy()
            np.matmul(a, b, out=out)
            out[-1, -1] = kept
            return out

        return call


def test_a_wrong_kernel_is_neither_timed_nor_used() -> None:
    found, calls = time_first_use(PROBLEM, (bound(),), cast(KernelLoader, WrongLoader()), refused)
    (wrong,) = found.timed
    assert wrong.median_s is None
    assert wrong.failure.startswith("verify: ")
    assert calls == {}
    assert found.fastest((wrong.configuration.candidate,)) is None
    assert found.why_baseline == wrong.failure
