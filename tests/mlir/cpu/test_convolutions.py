"""Convolutions on a processor compute what numpy computes: by its vectors, or by AMX tiles as vector code."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fusion_runs import as_problem, compiled, draw_inputs, run
from tests.mlir.convolution_texts import Convolution
from tests.support.fuzzing.cpu_points import emulated_machine
from tuner.core.candidate import Candidate
from tuner.core.fusions import CONVOLUTION
from tuner.core.machine import Machine, variables_of
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import WeightPacking
from tuner.core.problem import Problem
from tuner.core.problem_classes import TextProblem
from tuner.mlir.fusions.convolutions import LAYOUTS
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose, first_configuration, spaces
from tuner.space.scripts.strategy import Binder, load_strategy

Array = Any
Arrays = Sequence[Array]
Drawing = st.SearchStrategy[Convolution]
STRATEGY, OF_TILES, DEPTHWISE = "convolution_cpu", "convolution_cpu_amx", "depthwise_cpu"
OF_IMAGES = "linalg.depthwise_conv_2d_nchw_chw"  # what depthwise_cpu is for
HERE = describe_machine()
AVX2 = Machine("any", "any", "avx2", False, 1, 1, 49152, 1 << 20, 1 << 25, 1 << 34)
WITH_PAIRS = replace(AVX2, isa="avx512", has_bf16=True)
WITH_TILES = replace(emulated_machine(), has_bf16=True)
OF_LANES = replace(AVX2, isa="neon", has_dotprod=True, has_arm_bf16=True)  # sdot and bfdot of AArch64
OF_BYTES = {
    "sdot": OF_LANES,
    "avx-vnni": replace(AVX2, has_vnni=True),
    "avx512-vnni": replace(AVX2, isa="avx512", has_vnni=True),
}
PAIRS = replace(HERE, has_amx_bf16=False)  # a processor with AMX computes most of these by tiles
NEEDS_PAIRS = pytest.mark.skipif(
    not (HERE.has_bf16 and HERE.isa == "avx512"), reason="this processor has no AVX512-BF16"
)
CHANNELS_AT = {
    "conv_2d_nchw_fchw": 1,
    "conv_2d_nhwc_hwcf": 3,
    "conv_2d_ngchw_gfchw": 2,
    "conv_3d_ncdhw_fcdhw": 1,
}
OF_BF16 = tuple(each for each in sorted(LAYOUTS) if "depthwise" not in each)  # others are of f32 in groups
CHANNELS_FIRST = tuple(each for each in OF_BF16 if not any(last in each for last in ("nhwc", "nwc", "nhwgc")))


def problem_of(convolution: Convolution) -> TextProblem:
    return as_problem(CONVOLUTION, convolution.text())


def feasible(problem: Problem, machine: Machine, strategy: str) -> FeasibleSet:
    file, variables = load_space_file(default_space_file()), variables_of(problem, machine, threads=1)
    return FeasibleSet.of(spaces(choose((strategy,), file), file, problem, machine.isa, variables))


def script_of(problem: Problem, candidate: Candidate, machine: Machine) -> str:
    strategies, variables = (load_strategy(candidate.strategy),), variables_of(problem, machine, threads=1)
    return Binder(strategies, problem, variables, threads=1).bind(candidate).text


def first(convolution: Convolution, machine: Machine = HERE) -> tuple[Candidate, str]:
    found = first_configuration(problem_of(convolution), machine)
    assert found is not None, "an initial configuration is for every size"
    return found[0], found[1].text


def compiled_first(convolution: Convolution, machine: Machine = HERE) -> Any:
    return compiled(problem_of(convolution).text, first(convolution, machine)[1])


def strategy_of(convolution: Convolution, machine: Machine) -> str:
    if machine is WITH_TILES:
        return OF_TILES
    is_small = convolution.window[0] * convolution.window[1] <= 25 or machine.isa == "avx2"
    return DEPTHWISE if convolution.name == OF_IMAGES and is_small else STRATEGY


def drawn(convolution: Convolution) -> list[Array]:
    rng, dtype = np.random.default_rng(0), DTYPES[convolution.element]
    if convolution.element == "i8":
        return [rng.integers(-128, 128, shape).astype(dtype) for shape in convolution.shapes[:-1]]
    return [rng.standard_normal(shape).astype(dtype) for shape in convolution.shapes[:-1]]


def computed(convolution: Convolution, script: str, machine: Machine = HERE, inputs: Arrays = ()) -> Array:
    """Returns what a fusion's code computes, which must be right; other machines' products are vector code.

    ``inputs``: (): random ones.
    """
    emulated = (WITH_TILES, *OF_BYTES.values())
    text, given = problem_of(convolution).text, tuple(inputs or drawn(convolution))
    code, (expected,) = compiled(text, script, emulates=machine in emulated), evaluate(text, given)
    (output,) = run(code, given, (expected,), convolution.output)
    assert worst_error(expected, output) <= 1
    return output


def require_windows(convolution: Convolution, machine: Machine, inputs: Arrays) -> None:
    made = computed(convolution, first(convolution, machine)[1], machine, inputs)
    assert 0 < np.isfinite(made).sum() < made.size


def require_first(convolution: Convolution, machine: Machine) -> None:
    candidate, script = first(convolution, machine)
    assert candidate.strategy == strategy_of(convolution, machine)
    computed(convolution, script, machine)


@pytest.mark.parametrize("filters", [32, 64, 256, 512])
def test_the_first_configuration_of_a_processor_with_16_registers_shares_them(filters: int) -> None:
    shape = (1, 1, 64, filters, 30, 30, (3, 3), (1, 1), (1, 1))
    convolution = Convolution("linalg.conv_2d_nchw_fchw", *shape, "none", True, "f32")
    knobs = dict(first(convolution, AVX2)[0].choices)
    assert (knobs["tile_f"], knobs["tile_p"]) == (16, 6)  # 12 of sums; each element is read for two of them
    assert knobs["block_p"] == 112  # three rows; of 224 pixels, two more rows of the window are in the cache
    knobs = dict(first(replace(convolution, height=14, width=14), AVX2)[0].choices)
    assert knobs["block_p"] == 224  # all pixels
    knobs = dict(first(replace(convolution, height=7, width=7), AVX2)[0].choices)
    assert knobs["block_p"] == 56


GROUPED = Convolution(channels=16, filters=32, height=7, width=7)
IN_GROUPS = {
    "rows": GROUPED,  # groups of pixels of several rows
    "strided": replace(GROUPED, strides=(2, 2), dilations=(1, 2), epilogue="bias_relu"),
    "one row": replace(GROUPED, height=1, width=50, epilogue="residual"),
    "ragged filters": replace(GROUPED, filters=22),
    "few filters": replace(GROUPED, filters=4, channels=5),
    "overlapping rows": replace(GROUPED, height=11, width=13),
    "images and groups": replace(GROUPED, name="linalg.conv_2d_ngchw_gfchw", images=2, groups=2, filters=16),
    "channels last": replace(GROUPED, name="linalg.conv_2d_nhwc_hwcf"),
    "volumes": replace(GROUPED, name="linalg.conv_3d_ncdhw_fcdhw"),
    "f64": replace(GROUPED, element="f64", filters=8),
}


@pytest.mark.parametrize("block_c", [0, 8])
@pytest.mark.parametrize("convolution", IN_GROUPS.values(), ids=IN_GROUPS)
def test_groups_of_pixels_compute_the_convolution(convolution: Convolution, block_c: int) -> None:
    knobs = {"along": "filters", "tile_f": 16 if convolution.filters == 32 else 0, "loop_order": "pf"}
    knobs |= {"tile_p": 6, "block_p": 56, "block_c": block_c, "unroll_c": 1}
    knobs["prefetch"] = 2 if knobs["tile_f"] and "nhwc" not in convolution.name else 0
    candidate = Candidate.of(STRATEGY, knobs)
    computed(convolution, script_of(problem_of(convolution), candidate, AVX2), AVX2)


@st.composite
def convolutions(draw: st.DrawFn, element: str = "f32", *, by_tiles: bool = False) -> Convolution:
    """Draws small convolutions of each layout, with ragged sizes; of bf16 none that are depthwise.

    ``by_tiles``: at least 16 channels and filters, channels before pixels.
    """
    layouts = CHANNELS_FIRST if by_tiles else OF_BF16 if element == "bf16" else sorted(LAYOUTS)
    name = draw(st.sampled_from(layouts))
    has_rows = "h" in LAYOUTS[name][1]

    def pair(most: int, columns: st.SearchStrategy[int]) -> tuple[int, int]:
        return (draw(st.integers(1, most)) if has_rows else 1, draw(columns))

    if by_tiles:
        few, channels, filters = 2, st.integers(16, 80), st.sampled_from((16, 17, 24, 32, 45, 64))
        sizes = pair(7, st.integers(2, 40)), pair(3, st.integers(1, 3)), pair(2, st.just(1))
    else:
        few, channels = 3, st.integers(1, 40 if "depthwise" in name else 20)
        filters = st.sampled_from((1, 3, 5, 8, 16, 17, 24, 32, 40))
        sizes = pair(18, st.integers(1, 18)), pair(5, st.integers(1, 5)), pair(3, st.integers(1, 3))
    images, groups = draw(st.integers(1, few)), draw(st.integers(1, few))
    counts = images, groups, draw(channels), draw(filters)
    (size, window, strides), dilations = sizes, pair(2, st.integers(1, 2))
    epilogue = draw(st.sampled_from(("none", "bias_relu", "residual")))
    is_weight = draw(st.booleans()) or draw(st.booleans())
    planes = tuple(draw(st.tuples(*[st.integers(1, 3)] * 3, st.integers(1, 2))))
    given = counts + size
    convolution = Convolution(name, *given, window, strides, dilations, epilogue, is_weight, element, planes)
    if name != OF_IMAGES or not is_weight:
        return convolution
    height, width = convolution.shapes[0][-2:]  # at least a row and a column are left of the image
    top, left = (draw(st.integers(0, min(6, extent - 1))) for extent in (height, width))
    bottom = draw(st.integers(0, min(6, height - 1 - top)))
    right = draw(st.integers(0, min(6, width - 1 - left)))
    return replace(convolution, padding=(top, bottom, left, right))


OF_ELEMENTS = (
    pytest.param(convolutions(), HERE, id="f32", marks=pytest.mark.slow),
    pytest.param(convolutions("bf16"), PAIRS, id="bf16", marks=NEEDS_PAIRS),
)
BY_TILES = convolutions("bf16", by_tiles=True)


@pytest.mark.slow
@pytest.mark.parametrize(("drawing", "machine"), OF_ELEMENTS)
@settings(max_examples=40)
@given(data=st.data())
def test_the_first_configuration_computes_the_convolution(
    drawing: Drawing, machine: Machine, data: st.DataObject
) -> None:
    require_first(data.draw(drawing), machine)


@pytest.mark.parametrize(
    ("drawing", "machine"),
    [*OF_ELEMENTS, pytest.param(BY_TILES, WITH_TILES, id="tiles", marks=pytest.mark.slow)],
)
@settings(max_examples=10)
@given(data=st.data(), place=st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_the_convolution(
    drawing: Drawing, machine: Machine, place: float, data: st.DataObject
) -> None:
    """The preferred one at a place of their list; where there is none, any."""
    convolution = data.draw(drawing)
    problem = problem_of(convolution)
    some = feasible(problem, machine, strategy_of(convolution, machine))
    rows = np.flatnonzero(some.is_preferred | ~some.is_preferred.any())
    candidate = some.candidate(int(rows[int(place * len(rows))]))
    computed(convolution, script_of(problem, candidate, machine), machine)


@pytest.mark.parametrize("name", ["conv_2d_nchw_fchw", "conv_2d_nhwc_hwcf"])
@pytest.mark.parametrize("is_weight", [True, False])
@pytest.mark.parametrize("machine", OF_BYTES)
def test_bytes_are_multiplied_in_fours_of_channels(machine: str, is_weight: bool, name: str) -> None:
    for channels, width in ((5, 7), (64, 20)):  # of 64 channels in blocks, and in groups of pixels
        sizes: dict[str, Any] = {"channels": channels, "filters": 48, "height": 3, "width": width}
        convolution = Convolution(f"linalg.{name}", **sizes, element="i8", is_weight=is_weight)
        require_first(convolution, OF_BYTES[machine])


def test_pairs_of_bf16_are_multiplied_by_lanes() -> None:
    for channels in (5, 16):
        require_first(Convolution(channels=channels, filters=20, element="bf16"), OF_LANES)


def test_without_dot_products_there_is_no_schedule_of_bytes_or_pairs() -> None:
    assert first_configuration(problem_of(Convolution(element="i8")), AVX2) is None
    assert first_configuration(problem_of(Convolution(element="bf16")), AVX2) is None


@NEEDS_PAIRS
@pytest.mark.parametrize("name", CHANNELS_AT)
@pytest.mark.parametrize("is_weight", [True, False])
def test_nan_and_infinities_of_bf16_stay_in_their_windows(name: str, is_weight: bool) -> None:
    sizes: dict[str, Any] = {"groups": 2, "channels": 5, "filters": 17, "height": 3, "width": 19}
    convolution = Convolution(f"linalg.{name}", **sizes, element="bf16", is_weight=is_weight)
    inputs = drawn(convolution)
    last = np.moveaxis(inputs[0], CHANNELS_AT[name], 0)[4]  # the odd channel, which is paired with zeros
    last[np.unravel_index([7, 60], last.shape)] = np.nan, np.inf
    inputs[1].reshape(-1)[11] = -np.inf
    require_windows(convolution, PAIRS, inputs)


@pytest.mark.parametrize(("channels", "is_weight"), [(35, True), (37, False)])
def test_nan_and_infinities_stay_in_their_windows_of_tiles(channels: int, is_weight: bool) -> None:
    sizes: dict[str, Any] = {"channels": channels, "filters": 24, "height": 3, "width": 19}
    convolution = Convolution(**sizes, element="bf16", is_weight=is_weight)
    inputs = drawn(convolution)
    inputs[0][0, channels - 1, 2, [3, 12]] = np.nan, np.inf
    inputs[1][5, channels - 1, 1, 1] = -np.inf
    require_windows(convolution, WITH_TILES, inputs)


# rows and columns of the output, window, strides, dilations, and the padding of rows and columns
PADDED_IMAGES: dict[str, tuple[Any, ...]] = {
    "of 3 x 3": ((9, 21), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    "every second pixel": ((8, 28), (5, 5), (2, 2), (1, 1), (2, 1, 2, 1)),
    "every third pixel": ((5, 11), (3, 3), (3, 3), (1, 1), (1, 0, 1, 0)),
    "an image as wide as a lane": ((4, 5), (5, 5), (1, 1), (1, 1), (2, 3, 4, 4)),
    "with gaps": ((6, 17), (3, 3), (1, 1), (2, 2), (2, 2, 2, 2)),
    "one tile": ((2, 7), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    "rows of padding alone": ((7, 40), (2, 2), (1, 1), (1, 1), (4, 3, 0, 0)),
    "columns of padding alone": ((3, 33), (1, 3), (1, 1), (1, 1), (0, 0, 20, 2)),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PADDED_IMAGES)
@pytest.mark.parametrize("machine", [pytest.param(HERE, id="here"), pytest.param(AVX2, id="avx2")])
def test_padding_of_an_image_needs_no_memory(name: str, machine: Machine) -> None:
    (height, width), window, strides, dilations, padding = PADDED_IMAGES[name]
    convolution = Convolution(
        OF_IMAGES,
        images=2,
        channels=3,
        height=height,
        width=width,
        window=window,
        strides=strides,
        dilations=dilations,
        epilogue="bias_relu",
        padding=padding,
    )
    problem = problem_of(convolution)
    assert problem.sizes[1:] == (height * width, window[0] * window[1])
    x, w, bias = drawn(convolution)
    w[0] = np.abs(w[0]) + 1  # so that relu keeps them
    x[0, 0, -1, -1], x[1, 0, 0, 0] = np.nan, np.inf
    some = feasible(problem, machine, DEPTHWISE)
    rows = np.flatnonzero(some.is_preferred)
    for row in dict.fromkeys((int(rows[0]), int(rows[-1]))):
        computed(convolution, script_of(problem, some.candidate(row), machine), machine, (x, w, bias))
    require_first(convolution, machine)


def test_wide_depthwise_convolutions_have_the_other_schedule() -> None:
    convolution = Convolution(OF_IMAGES, channels=2, height=3, width=129)
    assert first(convolution)[0].strategy == STRATEGY
    assert first(replace(convolution, width=128))[0].strategy == DEPTHWISE
    assert first(replace(convolution, width=20, window=(7, 8)))[0].strategy == STRATEGY


OF_VOLUMES = "linalg.conv_3d_ncdhw_fcdhw"
# planes of zeros at both ends, and (planes of the output and of the window, stride, dilation)
PADDED = {
    "one at each end": ((1, 1), (4, 3, 1, 1)),
    "one result reads zeros alone": ((2, 0), (3, 2, 1, 1)),
    "all results read both ends": ((1, 2), (1, 5, 1, 1)),
    "every second result": ((1, 1), (3, 3, 2, 1)),
    "with gaps": ((2, 2), (4, 3, 1, 2)),  # zeros are multiplied
}


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize(
    ("machine", "element"),
    [
        pytest.param(HERE, "f32", id="here"),
        pytest.param(PAIRS, "bf16", id="pairs", marks=NEEDS_PAIRS),
        pytest.param(AVX2, "f32", id="avx2"),
        pytest.param(WITH_TILES, "bf16", id="tiles"),
    ],
)
def test_planes_of_zeros_are_added_to_nothing(name: str, machine: Machine, element: str) -> None:
    zeros, planes = PADDED[name]
    sizes: dict[str, Any] = {"channels": 16, "filters": 24, "height": 3, "width": 19, "planes": planes}
    convolution = Convolution(OF_VOLUMES, **sizes, zero_planes=zeros, element=element, epilogue="bias_relu")
    inputs = draw_inputs(problem_of(convolution).text, np.random.default_rng(0))
    ends = np.moveaxis(inputs[0], 2, 0)
    assert not ends[: zeros[0]].any()
    assert not ends[len(ends) - zeros[1] :].any()
    assert ends[zeros[0] : len(ends) - zeros[1]].all()
    computed(convolution, first(convolution, machine)[1], machine, inputs)


@pytest.mark.parametrize("element", ["f32", pytest.param("bf16", marks=NEEDS_PAIRS)])
def test_planes_of_zeros_are_not_read_by_the_sums(element: str) -> None:
    convolution = Convolution(OF_VOLUMES, 1, 1, 6, 16, 5, 9, planes=(4, 3, 1, 1), element=element)
    padded = replace(convolution, zero_planes=(1, 1))
    x, w = draw_inputs(problem_of(padded).text, np.random.default_rng(0))
    script = first(padded, PAIRS)[1]
    expected = computed(padded, script, inputs=(x, w))
    x[:, :, [0, -1]] = np.nan
    code = compiled(problem_of(padded).text, script)
    (found,) = run(code, (x, w), evaluate(problem_of(padded).text, (x, w)), padded.output)
    np.testing.assert_array_equal(found, expected)


def test_products_with_planes_of_zeros_are_not_counted() -> None:
    convolution = Convolution(OF_VOLUMES, 2, 1, 3, 5, 6, 7, (3, 2), planes=(4, 3, 1, 1))
    every = problem_of(convolution).flop
    assert every == 2 * 2 * 5 * (4 * 6 * 7) * (3 * 3 * 3 * 2)
    assert problem_of(replace(convolution, zero_planes=(1, 1))).flop == every * 10 // 12
    assert problem_of(replace(convolution, zero_planes=(2, 0))).flop == every * 9 // 12
    strided = replace(convolution, planes=(4, 3, 2, 1))
    assert problem_of(replace(strided, zero_planes=(1, 1))).flop == problem_of(strided).flop * 10 // 12


@NEEDS_PAIRS
def test_dot_products_of_bf16_take_subnormal_numbers_as_zeros() -> None:
    convolution = Convolution(channels=4, filters=16, width=16, element="bf16")
    x, w = drawn(convolution)
    x[:, 1], w[...] = 2.0**-130, 2.0**100
    script = first(convolution, PAIRS)[1]
    made = computed(convolution, script, inputs=(x, w))
    x[:, 1] = 0
    np.testing.assert_array_equal(made, computed(convolution, script, inputs=(x, w)))


@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.conv_2d_nhwc_hwcf"])
def test_float64_is_computed_in_float64(name: str) -> None:
    convolution = Convolution(name, channels=5, filters=17, width=9, epilogue="bias_relu", element="f64")
    require_first(convolution, HERE)


@pytest.mark.parametrize("name", ["linalg.conv_2d_nchw_fchw", "linalg.depthwise_conv_2d_nchw_chw"])
def test_registers_of_eight_lanes_compute_the_same(name: str) -> None:
    convolution = Convolution(name, channels=5, filters=24, height=5, width=9, epilogue="residual")
    assert "lanes = 8 : i64" in first(convolution, AVX2)[1]
    require_first(convolution, AVX2)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CHANNELS_FIRST)
def test_a_processor_with_tiles_uses_them(name: str) -> None:
    height, rows = (1, 1) if "1d" in name else (56, 3)
    convolution = Convolution(name, 1, 2, 64, 64, height, 56, (rows, 3), element="bf16")
    assert first(convolution, WITH_TILES)[0].strategy == OF_TILES


@pytest.mark.parametrize(
    "sizes",
    [
        {"channels": 3, "filters": 64},
        {"channels": 64, "filters": 8},
        {"channels": 64, "filters": 64, "strides": (2, 2)},
        {"name": "linalg.conv_2d_nhwc_hwcf", "channels": 64, "filters": 64},
    ],
    ids=str,
)
def test_other_convolutions_multiply_pairs(sizes: dict[str, Any]) -> None:
    assert first(Convolution(**sizes, element="bf16"), WITH_TILES)[0].strategy == STRATEGY


def test_depthwise_convolutions_of_bf16_have_no_configuration() -> None:
    for name, height in (("depthwise_conv_2d_nchw_chw", 4), ("depthwise_conv_1d_nwc_wc", 1)):
        convolution = Convolution(f"linalg.{name}", height=height, window=(1, 3), element="bf16")
        assert first_configuration(problem_of(convolution), WITH_PAIRS) is None


def test_weights_are_panels_of_filters_pairs_of_channels_of_bf16_and_rows_of_channels_for_tiles() -> None:
    pairs: dict[str, Any] = {"interleave": 2, "depth": 2, "run": 15}
    for machine, channels, element, form in ((HERE, 16, "f32", {}), (WITH_PAIRS, 15, "bf16", pairs)):
        convolution = Convolution(filters=64, channels=channels, epilogue="bias_relu", element=element)
        columns = int(dict(first(convolution, machine)[0].choices)["tile_f"]) or 64
        packing = WeightPacking(columns, order=(2, 3, 1, 0), **form)
        assert compiled_first(convolution, machine).packings == (None, packing, None)
    convolution = Convolution(filters=64, channels=65, epilogue="bias_relu", element="bf16")
    code = compiled_first(convolution, WITH_TILES)
    # 33 words in 3 steps of 11
    assert code.packings == (None, WeightPacking(66, order=(2, 3, 0, 1)), None)
    assert "tdpbf16ps" in code.llvm_text


def test_a_convolution_is_a_problem_of_filters_pixels_and_what_is_summed() -> None:
    problem = problem_of(Convolution("linalg.conv_2d_ngchw_gfchw", 2, 3, 4, 5, 6, 7, (3, 2)))
    assert (problem.batch, problem.sizes) == (6, (5, 42, 24))
    assert {("dimensions", "ngfHW"), ("channels", 4)} <= {*problem.variables()}
    problem = problem_of(Convolution("linalg.depthwise_conv_2d_nhwc_hwc", 2, 1, 4, 5, 6, 7, (3, 2)))
    assert (problem.batch, problem.sizes) == (2, (4, 42, 6))
    assert dict(problem.variables())["channels"] == 1


EVERY = [
    *((name, isa, "f32") for name in sorted(LAYOUTS) for isa in ("avx512", "avx2")),
    *((name, "avx512", "bf16") for name in OF_BF16),
]


# Filters that no tile size divides, few pixels: all filters in one tile, whose sums are stored at once. LLVM
# took 15 s and more for more than 500 adjacent stores of one element.
@pytest.mark.parametrize(
    "name", ["linalg.conv_2d_nchw_fchw", "linalg.conv_2d_ngchw_gfchw", "linalg.conv_1d_ncw_fcw"]
)
@pytest.mark.parametrize("pixels", [1, 2])
def test_the_code_of_many_filters_of_few_pixels_is_short(name: str, pixels: int) -> None:
    convolution = Convolution(name, 1, 2, 16, 672, 1, pixels, (1, 1), (1, 1), (1, 1), "none", True, "f32")
    knobs: dict[str, Any] = {
        "along": "filters",
        "tile_f": 0,
        "tile_p": 1,
        "block_p": 0,
        "block_c": 0,
        "unroll_c": 1,
    }
    candidate = Candidate.of(STRATEGY, knobs | {"loop_order": "fp", "prefetch": 1})
    script = script_of(problem_of(convolution), candidate, HERE)
    computed(convolution, script)
    assert compiled(problem_of(convolution).text, script).llvm_text.count("\n") < 800


@pytest.mark.parametrize("sizes", [(64, 64, 56, 56), (509, 3, 1, 1), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize(("name", "isa", "element"), EVERY)
def test_every_size_has_a_first_configuration(name: str, isa: str, element: str, sizes: Any) -> None:
    filters, channels, height, width = sizes
    machine = replace(AVX2, isa=isa, has_bf16=element == "bf16")
    rows = height if "h" in LAYOUTS[name][1] else 1
    window = (1, 1) if rows == 1 else (3, 3)
    convolution = Convolution(name, 1, 2, channels, filters, rows, width, window, element=element)
    assert first_configuration(problem_of(convolution), machine) is not None
