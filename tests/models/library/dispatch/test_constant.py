"""Products by a constant matrix: right for each number of rows, and never of a wrong array in silence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.models.library.dispatch.constant import ConstantMatmul
from tuner.payload.reference import Array
from tuner.results.database import open_or_create
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir
RNG = np.random.default_rng(0)


def product(b: Any, folder: Path) -> ConstantMatmul:
    database = folder / "results.db"
    open_or_create(database).close()
    return ConstantMatmul(b, real_backends(), database, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_is_right_for_each_number_of_rows(tmp_path: Path, dtype: Any) -> None:
    b: Array = RNG.standard_normal((40, 48)).astype(dtype)
    multiplied, wanted = product(b, tmp_path), b.copy()
    b[...] = 0  # it was copied
    for rows in (1, 5, 5):
        a = RNG.standard_normal((rows, 40)).astype(dtype)
        out = np.empty((rows, 48), dtype)
        assert multiplied(a, out) is out
        np.testing.assert_allclose(out, a.astype(np.float64) @ wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(multiplied(a[:, ::-1]), a[:, ::-1] @ wanted, rtol=1e-4, atol=1e-4)
    assert multiplied(np.empty((0, 40), dtype)).shape == (0, 48)


@pytest.mark.parametrize(
    ("b", "message"),
    [
        (np.ones((4, 4), np.int32), "^b: found no matrix of float32 or float64 numbers"),
        (np.ones((4, 4, 4), np.float32), "^b: found no matrix"),
        ([[1.0]], "^b: found no matrix"),
    ],
    ids=["type", "dimensions", "list"],
)
def test_what_is_no_matrix_of_floats_is_refused(b: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        product(b, tmp_path)


def test_an_array_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    multiplied = product(np.ones((4, 8), np.float32), tmp_path)
    for a in (np.ones((2, 5), np.float32), np.ones((2, 4)), np.ones(4, np.float32)):
        with pytest.raises(UsageError, match=r"^a: found no float32 matrix of 4 columns, as B has 4 rows$"):
            multiplied(a)
