"""``convolution_cpu``: fusions of convolutions with their epilogues compute what numpy computes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mlir.convolution_texts import Convolution
from tests.mlir.cpu.convolution_runs import (
    HERE,
    OF_BF16,
    compiled_first,
    computed,
    convolutions,
    drawn,
    error_of,
    first,
    problem_of,
    require_windows,
    script_of,
    some_candidate,
)
from tuner.core.fusions import WeightPacking
from tuner.core.machine import Machine
from tuner.mlir.ir.linalg import LAYOUTS
from tuner.space.scripts.choice import first_configuration

AVX2 = Machine("any", "any", "avx2", False, 1, 1, 49152, 1 << 20, 1 << 25, 1 << 34)
WITH_PAIRS = replace(AVX2, isa="avx512", has_bf16=True)
# a processor with AMX computes most of these by tiles: test_convolution_tiles
PAIRS = replace(HERE, has_amx_bf16=False)
NEEDS_PAIRS = pytest.mark.skipif(not HERE.multiplies_pairs, reason="this processor has no AVX512-BF16")
FIRST, FEASIBLE = 40, 30  # examples


def require_candidate(convolution: Convolution, place: float) -> None:
    problem = problem_of(convolution)
    candidate = some_candidate(problem, place)
    assert error_of(convolution, script_of(problem, candidate)) <= 1, candidate


@pytest.mark.slow
@settings(max_examples=FIRST, deadline=None)
@given(convolution=convolutions())
def test_the_first_configuration_computes_the_convolution(convolution: Convolution) -> None:
    candidate, script = first(convolution)
    assert candidate.strategy == "convolution_cpu"
    assert error_of(convolution, script) <= 1


@pytest.mark.slow
@settings(max_examples=FEASIBLE, deadline=None)
@given(convolution=convolutions(), place=st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_the_convolution(convolution: Convolution, place: float) -> None:
    require_candidate(convolution, place)


@NEEDS_PAIRS
@settings(max_examples=FIRST, deadline=None)
@given(convolution=convolutions("bf16"))
def test_the_first_configuration_computes_a_convolution_of_bf16(convolution: Convolution) -> None:
    candidate, script = first(convolution, PAIRS)
    assert candidate.strategy == "convolution_cpu"
    assert error_of(convolution, script) <= 1


@NEEDS_PAIRS
@settings(max_examples=FEASIBLE, deadline=None)
@given(convolution=convolutions("bf16"), place=st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_a_convolution_of_bf16(convolution: Convolution, place: float) -> None:
    require_candidate(convolution, place)


@NEEDS_PAIRS
@pytest.mark.parametrize(("name", "channel"), [("conv_2d_nchw_fchw", 1), ("conv_2d_nhwc_hwcf", 3)])
@pytest.mark.parametrize("is_weight", [True, False])
def test_nan_and_infinities_of_bf16_stay_in_their_windows(name: str, channel: int, is_weight: bool) -> None:
    sizes: dict[str, Any] = {"channels": 5, "filters": 17, "height": 3, "width": 19}
    convolution = Convolution(f"linalg.{name}", **sizes, element="bf16", is_weight=is_weight)
    inputs = drawn(convolution)
    last = np.moveaxis(inputs[0], channel, 0)[4]  # the odd channel, which is paired with zeros
    last[np.unravel_index([7, 60], last.shape)] = np.nan, np.inf
    inputs[1].reshape(-1)[11] = -np.inf
    require_windows(convolution, PAIRS, inputs)


@NEEDS_PAIRS
def test_dot_products_of_bf16_take_subnormal_numbers_as_zeros() -> None:
    convolution = Convolution(channels=4, filters=16, width=16, element="bf16")
    x, w = drawn(convolution)
    x[:, 1], w[...] = 2.0**-130, 2.0**100
    script = first(convolution, PAIRS)[1]
    made = computed(convolution, script, (x, w))
    x[:, 1] = 0
    np.testing.assert_array_equal(made, computed(convolution, script, (x, w)))


def test_depthwise_convolutions_of_bf16_have_no_configuration() -> None:
    for name in ("linalg.depthwise_conv_2d_nchw_chw", "linalg.depthwise_conv_1d_nwc_wc"):
        height = 1 if "1d" in name else 4
        convolution = Convolution(name, height=height, window=(1, 3), element="bf16")
        assert first_configuration(problem_of(convolution), WITH_PAIRS) is None


@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.conv_2d_nhwc_hwcf"])
def test_float64_is_computed_in_float64(name: str) -> None:
    convolution = Convolution(name, channels=5, filters=17, width=9, epilogue="bias_relu", element="f64")
    assert error_of(convolution, first(convolution)[1]) <= 1


@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.depthwise_conv_2d_nchw_chw"])
def test_registers_of_eight_lanes_compute_the_same(name: str) -> None:
    convolution = Convolution(name, channels=5, filters=24, height=5, width=9, epilogue="residual")
    script = first(convolution, AVX2)[1]
    assert "lanes = 8 : i64" in script
    assert error_of(convolution, script) <= 1


def test_weights_are_packed_to_panels_of_filters_and_those_of_bf16_to_pairs_of_channels() -> None:
    pairs: dict[str, Any] = {"interleave": 2, "depth": 2, "run": 15}
    for machine, channels, element, form in ((HERE, 16, "f32", {}), (WITH_PAIRS, 15, "bf16", pairs)):
        convolution = Convolution(filters=64, channels=channels, epilogue="bias_relu", element=element)
        columns = int(dict(first(convolution, machine)[0].choices)["tile_f"]) or 64
        packing = WeightPacking(columns, order=(2, 3, 1, 0), **form)
        assert compiled_first(convolution, machine).packings == (None, packing, None)


def test_a_convolution_is_a_problem_of_filters_pixels_and_what_is_summed() -> None:
    problem = problem_of(Convolution("linalg.conv_2d_ngchw_gfchw", 2, 3, 4, 5, 6, 7, (3, 2)))
    assert (problem.batch, problem.sizes) == (6, (5, 42, 24))
    assert dict(problem.variables())["dimensions"] == "ngfHW"
    assert dict(problem.variables())["channels"] == 4
    problem = problem_of(Convolution("linalg.depthwise_conv_2d_nhwc_hwc", 2, 1, 4, 5, 6, 7, (3, 2)))
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
