"""``convolution_cpu``: groups of convolutions with their epilogues compute what numpy computes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mlir.convolution_texts import Convolution
from tuner.core.candidate import Candidate
from tuner.core.grouped_program import CONVOLUTION, OpGroup, TensorType, View, WeightPacking
from tuner.core.machine import Machine, variables_of
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import Problem
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.group_code import compile_group
from tuner.mlir.group_problem import group_problem
from tuner.mlir.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.mlir.reference.group_reference import evaluate, worst_error
from tuner.mlir.rewrite.convolution_forms import LAYOUTS
from tuner.payload.packed_weights import pack
from tuner.programs.run.packed_weights import packed_bytes
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.scripts.chosen import choose, spaces
from tuner.scripts.default import first_configuration
from tuner.scripts.strategy import Binder, load_strategy
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.shipped import default_space_file

pytestmark = pytest.mark.mlir

Array = Any
HERE = describe_machine()
AVX2 = Machine("any", "any", "avx2", False, 1, 1, 49152, 1 << 20, 1 << 25, 1 << 34)
WITH_PAIRS = replace(AVX2, isa="avx512", has_bf16=True)
NEEDS_PAIRS = pytest.mark.skipif(not HERE.multiplies_pairs, reason="this processor has no AVX512-BF16")
OF_BF16 = tuple(each for each in sorted(LAYOUTS) if "depthwise" not in each)  # others are of f32 in groups
FIRST, FEASIBLE = 40, 30  # examples


def problem_of(convolution: Convolution) -> Problem:
    return group_problem(OpGroup(CONVOLUTION, convolution.text(), (), (), ()))


@lru_cache
def space_file() -> Any:
    return load_space_file(default_space_file())


def feasible(problem: Problem, machine: Machine = HERE) -> FeasibleSet:
    chosen = choose(("convolution_cpu",), space_file())
    return FeasibleSet.of(
        spaces(chosen, space_file(), problem, machine.isa, variables_of(problem, machine, threads=1))
    )


def some_candidate(problem: Problem, place: float) -> Candidate:
    """Returns the preferred configuration at a place from 0 to 1 of their list; else any."""
    some = feasible(problem)
    preferred = np.flatnonzero(some.is_preferred)
    rows = preferred if len(preferred) else np.arange(len(some.is_preferred))
    return some.candidate(int(rows[int(place * len(rows))]))


def script_of(problem: Problem, candidate: Candidate) -> str:
    chosen = choose(("convolution_cpu",), space_file())
    strategies = tuple(load_strategy(one.name, one.path) for one in chosen)
    variables = variables_of(problem, HERE, threads=1)
    return Binder(strategies, problem, variables, threads=1).bind(candidate).text


def packed(array: Array, packing: WeightPacking | None) -> Array:
    """Returns a weight as the code takes it."""
    if packing is None:
        return array
    element = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
    view = View(0, 0, TensorType(array.shape, element), ())
    target = np.empty(packed_bytes(view, packing) // array.itemsize, array.dtype)
    pack(array, packing, target)
    return target


def drawn(convolution: Convolution) -> list[Array]:
    """Returns random inputs of a convolution."""
    rng, dtype = np.random.default_rng(0), DTYPES[convolution.element]
    return [rng.standard_normal(shape).astype(dtype) for shape in convolution.shapes[:-1]]


def computed(convolution: Convolution, script: str, inputs: Sequence[Array]) -> Array:
    """Returns what a group's code computes."""
    text = problem_of(convolution).group
    with interpreter.new_context(), ir.Location.unknown():
        code = compile_group(text, script)
    output = np.full(convolution.shapes[-1], np.nan, DTYPES[convolution.output])
    arrays = [packed(*each) for each in zip(inputs, code.packings, strict=True)]
    exported = code.llvm_text.replace("{passthrough", "{llvm.emit_c_interface, passthrough", 1)
    jitted = JittedModule(exported, ("group",))
    CompiledFunction(jitted.addresses["group"])(
        PackedArguments(*(each.ctypes.data for each in (*arrays, output)))
    )
    return output


def error_of(convolution: Convolution, script: str, inputs: Sequence[Array] = ()) -> float:
    """Returns the error of what a group's code computes of inputs, in units of the tolerance.

    ``inputs``: (): random ones.
    """
    given = tuple(inputs or drawn(convolution))
    (expected,) = evaluate(problem_of(convolution).group, given)
    return worst_error(expected, computed(convolution, script, given))


@st.composite
def convolutions(draw: st.DrawFn, element: str = "f32") -> Convolution:
    """Draws small convolutions of each layout, with ragged sizes; of bf16 none that are depthwise."""
    name = draw(st.sampled_from(OF_BF16 if element == "bf16" else sorted(LAYOUTS)))
    has_rows = "h" in LAYOUTS[name][1]

    def pair(most: int) -> tuple[int, int]:
        numbers = st.integers(1, most)
        return (draw(numbers) if has_rows else 1, draw(numbers))

    height, width = pair(18)
    return Convolution(
        name=name,
        images=draw(st.integers(1, 3)),
        groups=draw(st.integers(1, 3)),
        channels=draw(st.integers(1, 40)) if "depthwise" in name else draw(st.integers(1, 20)),
        filters=draw(st.sampled_from((1, 3, 5, 8, 16, 17, 24, 32, 40))),
        height=height,
        width=width,
        window=pair(5),
        strides=pair(3),
        dilations=pair(2),
        epilogue=draw(st.sampled_from(("none", "bias_relu", "residual"))),
        is_weight=draw(st.booleans()) or draw(st.booleans()),
        element=element,
    )


@settings(max_examples=FIRST, deadline=None)
@given(convolution=convolutions())
def test_the_first_configuration_computes_the_convolution(convolution: Convolution) -> None:
    found = first_configuration(problem_of(convolution), HERE)
    assert found is not None, "a first configuration is for every size"
    candidate, script = found
    assert candidate.strategy == "convolution_cpu"
    assert error_of(convolution, script.text) <= 1


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
    found = first_configuration(problem_of(convolution), HERE)
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
    found = first_configuration(problem_of(convolution), HERE)
    assert found is not None
    assert error_of(convolution, found[1].text, inputs) <= 1
    made = computed(convolution, found[1].text, inputs)
    assert 0 < np.isfinite(made).sum() < made.size


@NEEDS_PAIRS
def test_dot_products_of_bf16_take_subnormal_numbers_as_zeros() -> None:
    convolution = Convolution(channels=4, filters=16, width=16, element="bf16")
    x, w = drawn(convolution)
    x[:, 1] = 2.0**-130
    found = first_configuration(problem_of(convolution), HERE)
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
    with interpreter.new_context(), ir.Location.unknown():
        code = compile_group(problem.group, found[1].text)
    columns = dict(found[0].choices)["tile_f"] or 64
    assert code.packings == (None, WeightPacking(int(columns), order=(2, 3, 1, 0)), None)


def test_weights_of_bf16_are_packed_to_pairs_of_channels() -> None:
    convolution = Convolution(filters=64, channels=15, epilogue="bias_relu", element="bf16")
    problem = problem_of(convolution)
    found = first_configuration(problem, WITH_PAIRS)
    assert found is not None
    with interpreter.new_context(), ir.Location.unknown():
        code = compile_group(problem.group, found[1].text)
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
