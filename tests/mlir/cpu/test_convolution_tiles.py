"""``convolution_cpu_amx``: convolutions of bf16 by AMX tiles, as vector code, compute what numpy computes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzzing.cpu_points import emulated_machine
from tests.mlir.convolution_texts import Convolution
from tests.mlir.cpu.convolution_runs import (
    OF_BF16,
    compiled_first,
    drawn,
    error_of,
    first,
    problem_of,
    require_windows,
    script_of,
    some_candidate,
)
from tuner.core.fusions import WeightPacking

WITH_TILES = replace(emulated_machine(), has_bf16=True)
STRATEGY = "convolution_cpu_amx"
CHANNELS_FIRST = tuple(
    each for each in OF_BF16 if "nhwc" not in each and "nwc" not in each and "nhwgc" not in each
)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    """Draws convolutions of at least 16 channels and filters, channels before pixels, ragged sizes."""
    name = draw(st.sampled_from(CHANNELS_FIRST))
    has_rows = "2d" in name
    return Convolution(
        name=name,
        images=draw(st.integers(1, 2)),
        groups=draw(st.integers(1, 2)),
        channels=draw(st.integers(16, 80)),
        filters=draw(st.sampled_from((16, 17, 24, 32, 45, 64))),
        height=draw(st.integers(1, 7)) if has_rows else 1,
        width=draw(st.integers(2, 40)),
        window=(draw(st.integers(1, 3)) if has_rows else 1, draw(st.integers(1, 3))),
        strides=(draw(st.integers(1, 2)) if has_rows else 1, 1),
        dilations=(draw(st.integers(1, 2)) if has_rows else 1, draw(st.integers(1, 2))),
        epilogue=draw(st.sampled_from(("none", "bias_relu", "residual"))),
        is_weight=draw(st.booleans()) or draw(st.booleans()),
        element="bf16",
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(convolution=convolutions(), place=st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_the_convolution(convolution: Convolution, place: float) -> None:
    problem = problem_of(convolution)
    candidate = some_candidate(problem, place, WITH_TILES, STRATEGY)
    assert error_of(convolution, script_of(problem, candidate, WITH_TILES), emulates=True) <= 1, candidate


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CHANNELS_FIRST)
def test_a_processor_with_tiles_uses_them(name: str) -> None:
    height, rows = (56, 3) if "2d" in name else (1, 1)
    convolution = Convolution(name, 1, 2, 64, 64, height, 56, (rows, 3), element="bf16")
    assert first(convolution, WITH_TILES)[0].strategy == STRATEGY


@pytest.mark.parametrize(
    "convolution",
    [
        Convolution(channels=3, filters=64, element="bf16"),
        Convolution(channels=64, filters=8, element="bf16"),
        Convolution(channels=64, filters=64, strides=(2, 2), element="bf16"),
        Convolution("linalg.conv_2d_nhwc_hwcf", channels=64, filters=64, element="bf16"),
    ],
)
def test_other_convolutions_multiply_pairs(convolution: Convolution) -> None:
    assert first(convolution, WITH_TILES)[0].strategy == "convolution_cpu"


@pytest.mark.slow
def test_nan_and_infinities_stay_in_their_windows() -> None:
    convolution = Convolution(channels=35, filters=24, height=3, width=19, element="bf16")
    inputs = drawn(convolution)
    inputs[0][0, 34, 2, [3, 12]] = np.nan, np.inf
    inputs[1][5, 34, 1, 1] = -np.inf
    require_windows(convolution, WITH_TILES, inputs, emulates=True)


def test_weights_are_rows_of_channels_of_each_filter_padded_to_equal_steps() -> None:
    code = compiled_first(
        Convolution(filters=64, channels=65, epilogue="bias_relu", element="bf16"), WITH_TILES
    )
    # 33 words in 3 steps of 11
    assert code.packings == (None, WeightPacking(66, order=(2, 3, 0, 1)), None)
    assert "tdpbf16ps" in code.llvm_text
