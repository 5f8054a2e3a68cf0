"""``tuner.quantized_matmul`` computes what its payload says, of every format, size and scheme."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.mlir.ops.one_op import line_of
from tests.mlir.ops.quantized import Case, arrays_of, compiled, multiplied
from tuner.core.quantization import BY_GROUP, BY_ROW, LEAST_GROUP, WeightFormat, quantized_text
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.runtime.cpu.host import describe_machine

W4 = WeightFormat(4, 32)
CASE = Case((3, 40, 64), "f32", W4, "f32", {"scheme": "singles", "tile_m": 2, "tile_n": 32})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draws a format, sizes, and knobs that fit these."""
    group = draw(st.sampled_from((0, 16, 32, 64, 128)))
    k = draw(st.integers(1, 140)) if not group else group * draw(st.integers(1, 4))
    activations = draw(st.sampled_from(("", BY_ROW, *([BY_GROUP] if group else []))))
    scale = draw(st.sampled_from(("f16", "bf16", "f32")))
    bits = draw(st.sampled_from((4, 8)))
    if group == LEAST_GROUP:
        bits, activations = 8, ""
    weights = WeightFormat(bits, group, scale, draw(st.booleans()), activations)
    dtype = draw(st.sampled_from(("f32", "bf16")))
    output = draw(st.sampled_from(("f32", "bf16"))) if dtype == "bf16" else "f32"
    has_pairs = dtype == "bf16" and not activations and describe_machine().multiplies_pairs
    schemes = ["singles", *(("dots", "bytes") if activations else ("scaled",))] + ["pairs"] * has_pairs
    scheme = draw(st.sampled_from(schemes))
    lanes = 16 if scheme == "pairs" else draw(st.sampled_from((8, 16)))
    if scheme in ("dots", "bytes") and draw(st.booleans()):
        words = {"words": 1}
    else:
        words = {}
    blocks = [
        each for each in (32, 64, 128) if k % each == 0 and each < k and (not group or each % group == 0)
    ]
    knobs: dict[str, int | str] = {
        "scheme": scheme,
        "tile_m": draw(st.sampled_from((1, 2, 3))),
        "tile_n": lanes * draw(st.integers(1, 2)),
        "lanes": lanes,
        "block_k": draw(st.sampled_from((0, *blocks))) if output == "f32" else 0,
        "prefetch": draw(st.sampled_from((0, 4096))),
        **words,
    }
    return Case((draw(st.integers(1, 5)), draw(st.integers(1, 40)), k), dtype, weights, output, knobs)


@settings(max_examples=10)
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
@example(case=CASE, seed=0)
def test_a_product_is_the_references(case: Case, seed: int) -> None:
    arrays = arrays_of(case, np.random.default_rng(seed))
    expected = evaluate(case.text, arrays)[0]
    assert worst_error(expected, multiplied(case, arrays)) <= 1.0


@settings(max_examples=8)
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_the_payload_itself_computes_the_reference(case: Case, seed: int) -> None:
    arrays = arrays_of(case, np.random.default_rng(seed))
    expected = evaluate(case.text, arrays)[0]
    assert worst_error(expected, multiplied(dataclasses.replace(case, knobs={}), arrays)) <= 1.0


@settings(max_examples=12)
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_numbers_of_all_sizes_are_multiplied(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, *weights = arrays_of(case, rng)
    special = np.array([0.0, -0.0, 1e-38, 1e-45, -3e-31, 65504.0, -1e20, 1.0, np.inf, np.nan], np.float32)
    finite = special[:8]
    a[...] = rng.choice(finite, a.shape).astype(a.dtype)
    expected = evaluate(case.text, (a, *weights))[0]
    found = multiplied(case, (a, *weights))
    is_finite = np.isfinite(expected.value) & (np.abs(expected.value) < 1e37)
    assert (
        worst_error(
            dataclasses.replace(
                expected, value=expected.value[is_finite], tolerance=expected.tolerance[is_finite]
            ),
            found[is_finite],
        )
        <= 1.0
    )


# (scheme, type of A, quantization of A)
SCHEMES = (
    ("singles", "f32", ""),
    ("scaled", "f32", ""),
    ("pairs", "bf16", ""),
    ("tiles", "bf16", ""),
    ("dots", "f32", BY_ROW),
    ("dots", "f32", BY_GROUP),
)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("scheme", "dtype", "activations"), SCHEMES)
def test_no_sum_overflows_before_it_is_scaled(scheme: str, dtype: str, activations: str, bits: int) -> None:
    """A row of the largest numbers, one with a single of them, one of the smallest, and a usual one."""
    if scheme == "pairs" and not describe_machine().multiplies_pairs:
        pytest.skip("needs products of pairs of bf16")
    weights = WeightFormat(bits, 32, "f32", bits == 8, activations)
    tile = {"tile_m": 16, "tile_n": 32} if scheme == "tiles" else {"tile_m": 2, "tile_n": 32, "lanes": 16}
    case = Case((4, 40, 64), dtype, weights, "f32", {"scheme": scheme, **tile})
    a, integers, scales, *points = arrays_of(case, np.random.default_rng(0))
    scales = scales.astype(np.float32) * np.float32(1e-3)
    a[0] = (np.sign(a[0].astype(np.float32)) * 3.3e38).astype(a.dtype)
    a[1, 7] = 3e38
    a[2] = (a[2].astype(np.float32) * 1e-28).astype(a.dtype)
    arrays = (a, integers, scales, *points)
    found = multiplied(case, arrays, emulates=scheme == "tiles")
    assert worst_error(evaluate(case.text, arrays)[0], found) <= 1.0


@pytest.mark.parametrize("activations", [BY_ROW, BY_GROUP])
def test_scales_of_any_size_are_applied_in_the_payloads_order(activations: str) -> None:
    """A sum that is scaled to 1e38 is scaled by A's 1e-5 before the next is added."""
    case = Case((3, 40, 128), "f32", WeightFormat(4, 32, "f32", False, activations), "f32", CASE.knobs)
    a, integers, scales = arrays_of(case, np.random.default_rng(0))
    integers[...] = 7
    scales[...] = 1.5e34
    arrays = (np.abs(a.astype(np.float32)) * np.float32(1e-3), integers, scales)
    found = multiplied(case, arrays)
    assert worst_error(evaluate(case.text, arrays)[0], found) <= 1.0


@pytest.mark.parametrize("has_zero_points", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_signed_bytes_of_aarch64_multiply(bits: int, has_zero_points: bool) -> None:
    """By sdot, whose 8-bit weights are not moved by 128: sums start from 0."""
    weights = WeightFormat(bits, 32, "f16", has_zero_points, BY_GROUP)
    knobs: dict[str, int | str] = {"scheme": "dots", "tile_m": 2, "tile_n": 8, "lanes": 4}
    case = Case((5, 23, 96), "f32", weights, "f32", knobs)
    arrays = arrays_of(case, np.random.default_rng(0))
    assert "sdot" in compiled(case).llvm_text
    assert worst_error(evaluate(case.text, arrays)[0], multiplied(case, arrays, emulates=True)) <= 1


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("activations", ["", BY_ROW, BY_GROUP])
@pytest.mark.parametrize("sizes", [(16, 32, 64), (37, 70, 192), (5, 20, 64)], ids=str)
def test_tiles_multiply(sizes: tuple[int, int, int], activations: str, bits: int) -> None:
    weights = WeightFormat(bits, 32 if bits == 4 else 64, "f16", bits == 4, activations)
    knobs: dict[str, int | str] = {"scheme": "tiles", "tile_m": 32, "tile_n": 32, "block_k": 64 % sizes[2]}
    case = Case(sizes, "bf16", weights, "f32", knobs)
    arrays = arrays_of(case, np.random.default_rng(0))
    found = multiplied(case, arrays, emulates=True)
    assert worst_error(evaluate(case.text, arrays)[0], found) <= 1.0


# what all weights are, or those of even and of odd rows of K
LIMITS = {4: ((-8,), (7,), (-8, 7), (7, -8)), 8: ((-128,), (127,), (-128, 127))}


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("group", "k", "has_zero_points"), [(32, 64, False), (128, 256, True), (0, 150, False)]
)
def test_the_largest_products_do_not_saturate_in_words(
    bits: int, group: int, k: int, has_zero_points: bool
) -> None:
    """Each element of A is rounded to 127 or -127, and all weights have the same sign, or every other one."""
    weights = WeightFormat(bits, group, "f32", has_zero_points, BY_GROUP if group else BY_ROW)
    knobs: dict[str, int | str] = {"scheme": "dots", "tile_m": 4, "tile_n": 16, "lanes": 8, "words": 1}
    case = Case((4, 19, k), "f32", weights, "f32", knobs)
    a, integers, scales, *points = arrays_of(case, np.random.default_rng(0))
    a[...] = np.array([[1], [-1], [0.5], [-2]], np.float32)
    a[2, ::2] = -0.5
    for rows in LIMITS[bits]:
        for column, limit in enumerate(rows):
            integers[:, column :: len(rows)] = limit
        for zero_points in points:
            zero_points[...] = -limit - 1
        arrays = (a, integers, scales, *points)
        assert worst_error(evaluate(case.text, arrays)[0], multiplied(case, arrays)) <= 1.0


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("m", [1, 5, *(pytest.param(m, marks=pytest.mark.slow) for m in (2, 3, 70))])
def test_words_multiply_any_sizes(m: int, bits: int) -> None:
    """Ragged sizes, and runs of K that are no whole spans of 32."""
    for group, k in ((0, 1), (0, 37), (0, 72), (64, 128)):
        weights = WeightFormat(bits, group, "bf16", group > 0, BY_ROW)
        knobs: dict[str, int | str] = {"scheme": "dots", "tile_m": 3, "tile_n": 16, "lanes": 8, "words": 1}
        case = Case((m, 37, k), "bf16", weights, "bf16", knobs)
        arrays = arrays_of(case, np.random.default_rng(m))
        assert worst_error(evaluate(case.text, arrays)[0], multiplied(case, arrays)) <= 1.0


def test_words_are_the_integers_that_dot_products_make() -> None:
    """All bits of a result are the same: sums of integers are exact, and are scaled in the same order."""
    for bits, group in ((4, 32), (4, 0), (8, 64)):
        weights = WeightFormat(bits, group, activations=BY_ROW)
        found = []
        for scheme, words in (("dots", 0), ("dots", 1), ("bytes", 0), ("bytes", 1)):
            knobs = {**CASE.knobs, "scheme": scheme, "words": words}
            case = Case((5, 40, 192), "f32", weights, "f32", knobs)
            found.append(multiplied(case, arrays_of(case, np.random.default_rng(3))))
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)


def test_unpacked_bytes_multiply_blocks_of_k_and_ragged_panels() -> None:
    weights = WeightFormat(4, 64, has_zero_points=True, activations=BY_GROUP)
    for words, lanes in ((1, 8), (0, 16)):
        knobs: dict[str, int | str] = {"scheme": "bytes", "tile_m": 3, "tile_n": 2 * lanes, "lanes": lanes}
        case = Case((7, 53, 256), "f32", weights, "f32", {**knobs, "words": words, "block_k": 128})
        arrays = arrays_of(case, np.random.default_rng(0))
        assert worst_error(evaluate(case.text, arrays)[0], multiplied(case, arrays)) <= 1.0


def test_a_nan_in_a_row_makes_its_results_nan() -> None:
    for activations in ("", BY_ROW, BY_GROUP):
        weights = dataclasses.replace(W4, activations=activations)
        scheme = "dots" if activations else "singles"
        case = dataclasses.replace(CASE, weights=weights, knobs={**CASE.knobs, "scheme": scheme})
        a, *others = arrays_of(case, np.random.default_rng(0))
        a[1, 5] = np.nan
        found = multiplied(case, (a, *others))
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("scheme", ["dots", "singles"])
def test_several_threads_share_a_product(threads: int, scheme: str) -> None:
    weights = WeightFormat(4, 32, has_zero_points=True, activations=BY_GROUP)
    knobs: dict[str, int | str] = {"scheme": scheme, "tile_m": 4, "tile_n": 16}
    case = Case((8, 320, 256), "f32", weights, "f32", knobs)
    arrays = arrays_of(case, np.random.default_rng(0))
    found = multiplied(case, arrays, threads)
    assert worst_error(evaluate(case.text, arrays)[0], found) <= 1.0


def test_code_for_processors_without_the_instructions_is_equal() -> None:
    schemes = ((4, "dots", 0, BY_GROUP), (8, "dots", 0, BY_ROW), (4, "singles", 0, ""))
    of_words = ((4, "dots", 1, BY_GROUP), (8, "dots", 1, BY_ROW), (4, "bytes", 1, BY_GROUP))
    for bits, scheme, words, activations in (*schemes, *of_words):
        weights = WeightFormat(bits, 32, activations=activations)
        case = dataclasses.replace(
            CASE, weights=weights, knobs={**CASE.knobs, "scheme": scheme, "words": words}
        )
        arrays = arrays_of(case, np.random.default_rng(1))
        found = multiplied(case, arrays, emulates=True)
        assert worst_error(evaluate(case.text, arrays)[0], found) <= 1.0


def _line(**knobs: int | str) -> str:
    usual: dict[str, int | str] = {"scheme": "singles", "tile_m": 2, "tile_n": 16}
    return line_of("quantized_matmul", **(usual | knobs))


def _payload(activations: str = "", dtype: str = "f32") -> str:
    weights = WeightFormat(4, 32, activations=activations)
    return quantized_text((2, 16, 64), dtype, weights).replace("@fusion(", "@f(")


BECOMES = {"quantized_matmul": (_line(scheme="dots"), _payload(BY_GROUP))}
REFUSED = [
    (_line(scheme="dots"), _payload(), "found dots of activations that are not quantized"),
    (_line(scheme="pairs"), _payload(), "found pairs of f32 with 16 lanes, allowed bf16 with 16"),
    (_line(scheme="pairs", lanes=8), _payload(dtype="bf16"), "found pairs of bf16 with 8 lanes"),
    (_line(scheme="scaled"), _payload(BY_ROW), "found scaled with activations that are quantized"),
    (_line(words=1), _payload(), "found words of singles, allowed words of dots or bytes"),
    (_line(scheme="bytes"), _payload(), "found bytes of activations that are not quantized"),
    (_line(scheme="triples"), _payload(), "scheme: found 'triples', allowed dots, bytes, pairs, singles"),
    (_line(tile_n=24), _payload(), "found 2 x 24 sums in registers of 16, allowed whole registers"),
    (_line(block_k=48), _payload(), "block_k: found 48, allowed divisors of 64 and multiples of 32"),
    (_line(), "func.func @f() { return }", "found a function without tuner.quantization"),
    (_line(), _payload(BY_ROW).replace("math.roundeven", "math.floor"), "found other operations than those"),
]
