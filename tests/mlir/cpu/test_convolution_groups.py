"""``convolution_cpu``: groups of convolutions with their epilogues compute what numpy computes."""

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


def script_of(problem: Problem, candidate: Candidate) -> str:
    chosen = choose(("convolution_cpu",), space_file())
    strategies = tuple(load_strategy(one.name, one.path) for one in chosen)
    variables = variables_of(problem, HERE, threads=1)
    return Binder(strategies, problem, variables, threads=1).bind(candidate).text


def packed(array: Array, packing: WeightPacking | None) -> Array:
    """Returns a weight as the code takes it."""
    if packing is None:
        return array
    view = View(0, 0, TensorType(array.shape, "f32" if array.dtype == np.float32 else "f64"), ())
    target = np.empty(packed_bytes(view, packing) // array.itemsize, array.dtype)
    pack(array, packing, target)
    return target


def error_of(convolution: Convolution, script: str) -> float:
    """Returns the error of what a group's code computes of random inputs, in units of the tolerance."""
    text, rng = problem_of(convolution).group, np.random.default_rng(0)
    with interpreter.new_context(), ir.Location.unknown():
        code = compile_group(text, script)
    dtype = DTYPES[convolution.element]
    inputs = tuple(rng.standard_normal(shape).astype(dtype) for shape in convolution.shapes[:-1])
    output = np.full(convolution.shapes[-1], np.nan, dtype)
    arrays = [packed(*each) for each in zip(inputs, code.packings, strict=True)]
    exported = code.llvm_text.replace("{passthrough", "{llvm.emit_c_interface, passthrough", 1)
    jitted = JittedModule(exported, ("group",))
    CompiledFunction(jitted.addresses["group"])(
        PackedArguments(*(each.ctypes.data for each in (*arrays, output)))
    )
    (expected,) = evaluate(text, inputs)
    return worst_error(expected, output)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    """Draws small convolutions of each layout, with ragged sizes."""
    name = draw(st.sampled_from(sorted(LAYOUTS)))
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
    some = feasible(problem)
    preferred = np.flatnonzero(some.is_preferred)
    rows = preferred if len(preferred) else np.arange(len(some.is_preferred))
    candidate = some.candidate(int(rows[int(place * len(rows))]))
    assert error_of(convolution, script_of(problem, candidate)) <= 1, candidate


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


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
@pytest.mark.parametrize(
    ("filters", "channels", "height", "width"), [(64, 64, 56, 56), (509, 3, 1, 1), (1, 1, 1, 1)]
)
@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_every_size_has_a_first_configuration(
    name: str, filters: int, channels: int, height: int, width: int, isa: str
) -> None:
    machine = replace(AVX2, isa=isa)
    rows = height if "h" in LAYOUTS[name][1] else 1
    convolution = Convolution(name, 1, 2, channels, filters, rows, width, (1, 1) if rows == 1 else (3, 3))
    assert first_configuration(problem_of(convolution), machine) is not None
