"""``convolution_cpu``: fusions of convolutions with their epilogues compute what numpy computes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mlir.convolution_texts import Convolution
from tests.mlir.cpu.convolution_runs import (
    HERE,
    OF_BF16,
    computed,
    convolutions,
    drawn,
    error_of,
    problem_of,
    script_of,
    some_candidate,
)
from tuner.core.fusions import WeightPacking
from tuner.core.machine import Machine
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import compile_fusion
from tuner.mlir.ir.linalg import LAYOUTS
from tuner.space.scripts.choice import first_configuration

pytestmark = pytest.mark.mlir

AVX2 = Machine("any", "any", "avx2", False, 1, 1, 49152, 1 << 20, 1 << 25, 1 << 34)
WITH_PAIRS = replace(AVX2, isa="avx512", has_bf16=True)
# a processor with AMX computes most of these by tiles: test_convolution_tiles
PAIRS = replace(HERE, has_amx_bf16=False)
NEEDS_PAIRS = pytest.mark.skipif(not HERE.multiplies_pairs, reason="this processor has no AVX512-BF16")
FIRST, FEASIBLE = 40, 30  # examples


@pytest.mark.slow
@settings(max_examples=FIRST, deadline=None)
@given(convolution=convolutions())
def test_the_first_configuration_computes_the_convolution(convolution: Convolution) -> None:
    found = first_configuration(problem_of(convolution), HERE)
    assert found is not None, "a first configuration is for every size"
    candidate, script = found
    assert candidate.strategy == "convolution_cpu"
    assert error_of(convolution, script.text) <= 1


@pytest.mark.slow
@settings(max_examples=FEASIBLE, deadline=None)
@given(convolution=convolutions(), place=st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_the_convolution(convolution: Convolution, place: float) -> None:
    problem = problem_of(convolution)
    candidate = some_candidate(problem, place)
    assert error_of(convolution, script_of(problem, candidate)) <= 1, candidate


@NEEDS_PAIRS
@settings(max_examples=FIRST, deadline=None)
@given(convolution=convolutions("bf16"))
def test_the_first_configuration_computes_a_convolution_of_bf16(convolution: Convolution) -> None:
    found = first_configuration(problem_of(convolution), PAIRS)
    assert found is not None, "a first configuration is for every size"
    assert found[0].strategy == "convolution_cpu"
    assert error_of(convolution, found[1].text) <= 1


@NEEDS_PAIRS
@settings(max_examples=FEASIBLE, deadline=None)
@given(convolution=convolutions("bf16"), place=st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_a_convolution_of_bf16(convolution: Convolution, place: float) -> None:
    problem = problem_of(convolution)
    candidate = some_candidate(problem, place)
    assert error_of(convolution, script_of(problem, candidate)) <= 1, candidate


@NEEDS_PAIRS
@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.conv_2d_nhwc_hwcf"])
@pytest.mark.parametrize("is_weight", [True, False])
def test_nan_and_infinities_of_bf16_stay_in_their_windows(name: str, is_weight: bool) -> None:
    convolution = Convolution(
        name, channels=5, filters=17, height=3, width=19, element="bf16", is_weight=is_weight
    )
    inputs = drawn(convolution)
    channel = 1 if "nchw" in name else 3
    last = [slice(None)] * 4
    last[channel] = slice(4, 5)  # the odd channel, which is paired with zeros
    of_last = inputs[0][tuple(last)].reshape(-1)
    of_last[[7, 60]] = np.nan, np.inf
    inputs[0][tuple(last)] = of_last.reshape(inputs[0][tuple(last)].shape)
    inputs[1].reshape(-1)[11] = -np.inf
    found = first_configuration(problem_of(convolution), PAIRS)
    assert found is not None
    assert error_of(convolution, found[1].text, inputs) <= 1
    made = computed(convolution, found[1].text, inputs)
    assert 0 < np.isfinite(made).sum() < made.size


@NEEDS_PAIRS
def test_dot_products_of_bf16_take_subnormal_numbers_as_zeros() -> None:
    convolution = Convolution(channels=4, filters=16, width=16, element="bf16")
    x, w = drawn(convolution)
    x[:, 1] = 2.0**-130
    found = first_configuration(problem_of(convolution), PAIRS)
    assert found is not None
    w[...] = 2.0**100
    made = computed(convolution, found[1].text, (x, w))
    x[:, 1] = 0
    np.testing.assert_array_equal(made, computed(convolution, found[1].text, (x, w)))


def test_depthwise_convolutions_of_bf16_have_no_configuration() -> None:
    for name in ("linalg.depthwise_conv_2d_nchw_chw", "linalg.depthwise_conv_1d_nwc_wc"):
        height = 1 if "1d" in name else 4
        convolution = Convolution(name, height=height, window=(1, 3), element="bf16")
        assert first_configuration(problem_of(convolution), WITH_PAIRS) is None


@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.conv_2d_nhwc_hwcf"])
def test_float64_is_computed_in_float64(name: str) -> None:
    convolution = Convolution(name, channels=5, filters=17, width=9, epilogue="bias_relu", element="f64")
    found = first_configuration(problem_of(convolution), HERE)
    assert found is not None
    assert error_of(convolution, found[1].text) <= 1


@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.depthwise_conv_2d_nchw_chw"])
def test_registers_of_eight_lanes_compute_the_same(name: str) -> None:
    convolution = Convolution(name, channels=5, filters=24, height=5, width=9, epilogue="residual")
    found = first_configuration(problem_of(convolution), AVX2)
    assert found is not None
    assert "lanes = 8 : i64" in found[1].text
    assert error_of(convolution, found[1].text) <= 1


def test_weights_are_packed_to_panels_of_filters() -> None:
    convolution = Convolution(filters=64, channels=16, epilogue="bias_relu")
    problem = problem_of(convolution)
    found = first_configuration(problem, HERE)
    assert found is not None
    with transform.new_context(), ir.Location.unknown():
        code = compile_fusion(problem.fusion, found[1].text)
    columns = dict(found[0].choices)["tile_f"] or 64
    assert code.packings == (None, WeightPacking(int(columns), order=(2, 3, 1, 0)), None)


def test_weights_of_bf16_are_packed_to_pairs_of_channels() -> None:
    convolution = Convolution(filters=64, channels=15, epilogue="bias_relu", element="bf16")
    problem = problem_of(convolution)
    found = first_configuration(problem, WITH_PAIRS)
    assert found is not None
    with transform.new_context(), ir.Location.unknown():
        code = compile_fusion(problem.fusion, found[1].text)
    columns = int(dict(found[0].choices)["tile_f"]) or 64
    pairs = WeightPacking(columns, interleave=2, order=(2, 3, 1, 0), depth=2, run=15)
    assert code.packings == (None, pairs, None)


def test_a_convolution_is_a_problem_of_filters_pixels_and_what_is_summed() -> None:
    grouped = Convolution("linalg.conv_2d_ngchw_gfchw", 2, 3, 4, 5, 6, 7, (3, 2))
    problem = problem_of(grouped)
    assert (problem.batch, problem.sizes) == (6, (5, 42, 24))
    assert dict(problem.variables())["dimensions"] == "ngfHW"
    assert dict(problem.variables())["channels"] == 4
    depthwise = Convolution("linalg.depthwise_conv_2d_nhwc_hwc", 2, 1, 4, 5, 6, 7, (3, 2))
    problem = problem_of(depthwise)
    assert (problem.batch, problem.sizes) == (2, (4, 42, 6))
    assert dict(problem.variables())["channels"] == 1


EVERY = [
    *((name, isa, "f32") for name in sorted(LAYOUTS) for isa in ("avx512", "avx2")),
    *((name, "avx512", "bf16") for name in OF_BF16),
]


@pytest.mark.parametrize(
    ("filters", "channels", "height", "width"), [(64, 64, 56, 56), (509, 3, 1, 1), (1, 1, 1, 1)]
)
@pytest.mark.parametrize(("name", "isa", "element"), EVERY)
def test_every_size_has_a_first_configuration(
    name: str, filters: int, channels: int, height: int, width: int, isa: str, element: str
) -> None:
    machine = replace(AVX2, isa=isa, has_bf16=element == "bf16")
    rows = height if "h" in LAYOUTS[name][1] else 1
    window = (1, 1) if rows == 1 else (3, 3)
    convolution = Convolution(name, 1, 2, channels, filters, rows, width, window, element=element)
    assert first_configuration(problem_of(convolution), machine) is not None
