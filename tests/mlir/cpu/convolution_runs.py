"""Convolutions of fusions: drawn, scheduled, compiled, run and compared with the reference."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.mlir.convolution_texts import Convolution
from tuner.core.candidate import Candidate
from tuner.core.fusions import CONVOLUTION, Fusion, TensorType, View, WeightPacking
from tuner.core.machine import Machine, variables_of
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import compile_fusion
from tuner.mlir.fusions import fusion_problem
from tuner.mlir.ir.linalg import LAYOUTS
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.payload.packed_weights import pack
from tuner.programs.run.fused_code import packed_bytes
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose, first_configuration, spaces
from tuner.space.scripts.strategy import Binder, load_strategy

Array = Any
HERE = describe_machine()
OF_BF16 = tuple(each for each in sorted(LAYOUTS) if "depthwise" not in each)  # others are of f32 in groups


def problem_of(convolution: Convolution) -> Problem:
    """Returns the problem that a convolution's fusion is."""
    return fusion_problem(Fusion(CONVOLUTION, convolution.text(), (), (), ()))


@lru_cache
def space_file() -> Any:
    """Returns the shipped search space."""
    return load_space_file(default_space_file())


def feasible(problem: Problem, machine: Machine = HERE, strategy: str = "convolution_cpu") -> FeasibleSet:
    """Returns the feasible set of one strategy."""
    chosen = choose((strategy,), space_file())
    return FeasibleSet.of(
        spaces(chosen, space_file(), problem, machine.isa, variables_of(problem, machine, threads=1))
    )


def some_candidate(
    problem: Problem, place: float, machine: Machine = HERE, strategy: str = "convolution_cpu"
) -> Candidate:
    """Returns the preferred configuration at a place from 0 to 1 of their list; else any."""
    some = feasible(problem, machine, strategy)
    preferred = np.flatnonzero(some.is_preferred)
    rows = preferred if len(preferred) else np.arange(len(some.is_preferred))
    return some.candidate(int(rows[int(place * len(rows))]))


def first(convolution: Convolution, machine: Machine = HERE) -> tuple[Candidate, str]:
    """Returns the first configuration, which every size has, and its script."""
    found = first_configuration(problem_of(convolution), machine)
    assert found is not None, "a first configuration is for every size"
    return found[0], found[1].text


def compiled_first(convolution: Convolution, machine: Machine = HERE) -> Any:
    """Returns the code of the first configuration."""
    with transform.new_context(), ir.Location.unknown():
        return compile_fusion(problem_of(convolution).fusion, first(convolution, machine)[1])


def require_windows(
    convolution: Convolution, machine: Machine, inputs: list[Array], *, emulates: bool = False
) -> None:
    """The first configuration is right for NaN and infinities, which stay in their windows."""
    script = first(convolution, machine)[1]
    assert error_of(convolution, script, inputs, emulates=emulates) <= 1
    made = computed(convolution, script, inputs, emulates=emulates)
    assert 0 < np.isfinite(made).sum() < made.size


def script_of(problem: Problem, candidate: Candidate, machine: Machine = HERE) -> str:
    """Returns the script of a configuration."""
    chosen = choose((candidate.strategy,), space_file())
    strategies = tuple(load_strategy(one.name, one.path) for one in chosen)
    variables = variables_of(problem, machine, threads=1)
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


def computed(
    convolution: Convolution, script: str, inputs: Sequence[Array], *, emulates: bool = False
) -> Array:
    """Returns what a fusion's code computes; ``emulates``: AMX tiles by vector code."""
    text = problem_of(convolution).fusion
    with transform.new_context(), ir.Location.unknown():
        code = compile_fusion(text, script, emulates=emulates)
    output = np.full(convolution.shapes[-1], np.nan, DTYPES[convolution.output])
    arrays = [packed(*each) for each in zip(inputs, code.packings, strict=True)]
    exported = code.llvm_text.replace("{passthrough", "{llvm.emit_c_interface, passthrough", 1)
    jitted = JittedModule(exported, ("group",))
    CompiledFunction(jitted.addresses["group"])(
        PackedArguments(*(each.ctypes.data for each in (*arrays, output)))
    )
    return output


def error_of(
    convolution: Convolution, script: str, inputs: Sequence[Array] = (), *, emulates: bool = False
) -> float:
    """Returns the error of what a fusion's code computes of inputs, in units of the tolerance.

    ``inputs``: (): random ones.
    """
    given = tuple(inputs or drawn(convolution))
    (expected,) = evaluate(problem_of(convolution).fusion, given)
    return worst_error(expected, computed(convolution, script, given, emulates=emulates))


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
