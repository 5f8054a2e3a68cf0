"""Products that are made from those of another draw are the products, and few of them are computed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.fusion_runs import as_problem
from tests.mlir.attention_texts import Attention
from tests.mlir.convolution_texts import Convolution
from tuner.core.bounded import ExactSums, Float64, exact_sums
from tuner.core.dtypes import FLOATS
from tuner.core.matmul import Matmul
from tuner.mlir.fusions.function import fusion_arguments
from tuner.mlir.reference import products
from tuner.mlir.reference.fusion_reference import Expected, FusionReference, evaluate
from tuner.mlir.reference.products import KnownProduct
from tuner.targets.cpu.fusion_draws import Draw, FusionDraws, view_of

pytestmark = pytest.mark.mlir
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, 3.0, 1e-40)
FACTORS = (1.0, -1.0, 0.5, -2.0, 3.0, 2.0**40)


def changed(matrices: Float64, rng: np.random.Generator, count: int) -> Float64:
    """Returns matrices times factors of rows, with ``count`` other numbers in random places."""
    factors = rng.choice(FACTORS, (*matrices.shape[:-1], 1))
    other: Float64 = matrices * factors
    other.flat[rng.integers(other.size, size=count)] = rng.choice(NUMBERS, count)
    return other


def assert_equal(found: ExactSums, expected: ExactSums, element: str) -> None:
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12, atol=1e-12)
    if element in FLOATS:
        np.testing.assert_allclose(found.largest, expected.largest, rtol=1e-12, atol=1e-12)


@given(
    st.sampled_from([(), (3,), (2, 2)]),
    st.sampled_from([(1, 1), (9, 7), (40, 33)]),
    st.sampled_from([1, 8, 50]),
    st.sampled_from(["f32", "i32"]),
    st.integers(0, 6),
    st.integers(0, 2**32),
)
def test_a_product_made_from_a_known_one_is_the_product(
    batch: tuple[int, ...], sizes: tuple[int, int], depth: int, element: str, count: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    m, n = sizes
    a = rng.standard_normal((*batch, m, depth))
    b = rng.standard_normal((*batch, depth, n))
    known = KnownProduct()
    with np.errstate(all="ignore"):
        assert_equal(known(a, b, element), exact_sums(a, b, element), element)
        for _ in range(3):
            other_a = changed(a, rng, count)
            other_b = changed(b.swapaxes(-1, -2), rng, count).swapaxes(-1, -2)
            for left, right in ((other_a, b), (a, other_b), (other_a, other_b), (a, b)):
                assert_equal(known(left, right, element), exact_sums(left, right, element), element)


def draws_of(kind: str, text: str) -> FusionDraws:
    return FusionDraws(as_problem(kind, text), np.random.default_rng(0))


def views(text: str, draw: Draw) -> tuple[np.ndarray, ...]:
    return tuple(map(view_of, draw.inputs, fusion_arguments(text)))


def assert_same(found: tuple[Expected, ...], expected: tuple[Expected, ...]) -> None:
    for output, right in zip(found, expected, strict=True):
        slack = 1e-6 * np.where(np.isfinite(right.tolerance), right.tolerance, 0.0) + 1e-300
        assert np.array_equal(np.isnan(output.value), np.isnan(right.value))
        finite = np.isfinite(right.value)
        assert np.array_equal(output.value[~finite], right.value[~finite], equal_nan=True)
        assert (np.abs(output.value[finite] - right.value[finite]) <= slack[finite]).all()
        np.testing.assert_allclose(output.tolerance, right.tolerance, rtol=1e-6)


FUSIONS = {
    **{f"product {name}": ("contraction", texts.product(8, 40, 48, name)) for name in texts.EPILOGUES},
    "batch": ("contraction", texts.product(8, 40, 16, batch=3)),
    "bf16": ("contraction", texts.product(8, 40, 48, element="bf16", sums="f32")),
    "bytes": ("contraction", byte_texts.product(4, 16, 2048)),
    "one row": ("contraction", texts.product(1, 40, 16, "bias_relu")),
    "convolution": ("convolution", Convolution(epilogue="residual", images=3).text()),
    "attention": ("attention", Attention((12, 20, 16, 24)).text()),
    "softmax": ("rows", texts.softmax(9, 17)),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_what_is_expected_of_each_draw_is_what_a_reference_without_another_draw_expects(name: str) -> None:
    kind, text = FUSIONS[name]
    draws = draws_of(kind, text)
    for draw in draws.usual:
        assert_same(draw.expected, evaluate(text, views(text, draw)))
    seed = draws.first.inputs[0].size
    for draw in draws.special:
        assert_same(draw.expected, FusionReference(text).evaluate(views(text, draw), seed))


def test_of_all_usual_and_special_draws_one_product_is_computed_and_of_others_a_few_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[int] = []

    def counted(a: Float64, b: Float64, element: str) -> ExactSums:
        rows.append(a.shape[-2])
        return exact_sums(a, b, element)

    monkeypatch.setattr(products, "exact_sums", counted)
    problem = Matmul(64, 40, 48, epilogue="gelu", weights="constant")
    draws = FusionDraws(problem, np.random.default_rng(0))
    assert len(draws.usual) == 2
    assert len(draws.special) == 1
    assert rows == [64, 3]


def test_a_second_draw_has_other_results_and_the_same_weights() -> None:
    problem = Matmul(16, 40, 48, epilogue="residual", weights="constant")
    first, second = FusionDraws(problem, np.random.default_rng(0)).usual
    a, b, addend = range(3)
    assert np.array_equal(second.inputs[a], first.inputs[a] * np.float32(-0.5))
    assert second.inputs[b] is first.inputs[b]
    assert np.count_nonzero(second.inputs[addend] == first.inputs[addend]) == 0
    assert (second.expected[0].value != first.expected[0].value).all()
