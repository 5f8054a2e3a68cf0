"""Programs that torch-mlir exports give what torch gives, on the host and on the simulated GPU.

So do NaN, infinities, masks of -inf and denormals.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.models.kernel_programs import called
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.models.execution import host_function
from tuner.models.run.host_function import HostFunction

pytestmark = pytest.mark.mlir
NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch: Any = pytest.importorskip("torch", reason=NO_TORCH)
corpus = pytest.importorskip("tests.models.exports.corpus")
export = pytest.importorskip("tests.models.exports.export")
CPU, SIMULATOR = TargetName("cpu"), TargetName("simulator", "sm_90")


def test_each_name_is_that_of_one_export() -> None:
    assert len(corpus.EXPORTS) == len(corpus.LISTED) >= 60
    assert {*corpus.USUAL, *corpus.SIMULATED, *corpus.NOT_SIMULATED} <= corpus.EXPORTS.keys()


@pytest.mark.drawn(14)
def test_a_program_on_the_host_gives_what_torch_gives(export_name: str) -> None:
    """As fusions where the program can be, as ``tuner.compile_program`` compiles; twice."""
    made = corpus.built(export_name)
    program = host_function(compiler_of(CPU).compile(corpus.text_of(export_name), as_fusions=True))
    arguments = [export.array_of(each) for each in made.inputs]
    kept = [each.copy() for each in arguments]
    for results in (program(*arguments), program(*arguments)):
        export.require_equal(results, made.expected, corpus.EXPORTS[export_name].tolerance)
    assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(arguments, kept, strict=True))
    assert program.allocations == 0


@pytest.mark.drawn(2)
def test_a_program_as_a_whole_gives_what_torch_gives(whole_name: str) -> None:
    """Without fusions: the way of programs with dynamic sizes, control flow or memrefs."""
    made = corpus.built(whole_name)
    program = HostFunction(compiler_of(CPU).compile(corpus.text_of(whole_name)).code)
    results = program(*map(export.array_of, made.inputs))
    export.require_equal(results, made.expected, corpus.EXPORTS[whole_name].tolerance)
    assert program.allocations == 0


def require_right_on_the_simulator(name: str, *, as_fusions: bool) -> None:
    made = corpus.built(name)
    code = compiler_of(SIMULATOR).compile(corpus.text_of(name), as_fusions=as_fusions).code
    results = called(code, *map(export.array_of, made.inputs))
    export.require_equal(results, made.expected, corpus.EXPORTS[name].tolerance)


@pytest.mark.drawn(ALL)
def test_a_program_on_the_simulated_gpu_gives_what_torch_gives(simulated_name: str) -> None:
    """As fusions where the program can be, as ``tuner.compile_program`` compiles."""
    require_right_on_the_simulator(simulated_name, as_fusions=True)


@pytest.mark.slow
def test_a_program_as_a_whole_on_the_simulated_gpu_gives_what_torch_gives(simulated_whole_name: str) -> None:
    require_right_on_the_simulator(simulated_whole_name, as_fusions=False)


# Special values

INF, NAN = float("inf"), float("nan")
LEAST = 1e-45  # the least denormal of f32
VALUES = (0.0, -0.0, 1.0, -1.5, LEAST, -LEAST, 1e-39, 1e-38, 3e38, -3e38, 100.0, -100.0, INF, -INF, NAN)
F = torch.nn.functional

# Without gelu, which is NaN for infinity in torch, infinity here
NAMES = ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "reciprocal", "isnan")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {name: getattr(torch, name) for name in NAMES} | {
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "clamp": lambda x: x.clamp(-1, 1),
    "relu6": F.relu6,
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "half": lambda x: x * 0.5,
    "negative": torch.neg,
    "square": lambda x: x * x,
    "is_greater": lambda x: x > 0,
    "is_unequal": lambda x: x != x,
    "where": lambda x: torch.where(x > 0, x, 0 * x),
    "masked": lambda x: x.masked_fill(x < 0, -INF),
    "greatest": lambda x: x.amax(0, keepdim=True),
    "sum": lambda x: x.sum(0, keepdim=True),
    "softmax": lambda x: torch.softmax(x, 0),
}


def results_of(function: Callable[..., Any], *inputs: Any) -> tuple[Any, Any]:
    text = export.exported_text(export.Function(function), inputs)
    program = host_function(compiler_of(CPU).compile(text, as_fusions=True))
    wanted = function(*inputs)
    results = tuple(each.numpy() for each in wanted) if isinstance(wanted, tuple) else wanted.numpy()
    return program(*(each.numpy() for each in inputs)), results


def require_same(found: Any, wanted: Any, name: str = "") -> None:
    """Raises AssertionError but where both have NaN, the same infinity or nearly the same number."""
    np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=LEAST, err_msg=name)


@pytest.mark.slow
def test_special_values_masked_rows_and_denormals_are_as_in_torch() -> None:
    """One program for all functions: torch.export takes longer than all that follows."""
    x = torch.tensor(VALUES)
    results = results_of(lambda x: tuple(function(x) for function in FUNCTIONS.values()), x)
    for name, found, wanted in zip(FUNCTIONS, *results, strict=True):
        require_same(found, wanted, name)
    masked = torch.tensor([[0.0, -INF, -INF], [-INF, -INF, -INF], [1.0, 2.0, 3.0]])
    found, wanted = results_of(lambda scores, v: torch.softmax(scores, -1) @ v, masked, torch.ones(3, 4))
    assert np.isnan(wanted).all(1).tolist() == [False, True, False]
    require_same(found, wanted)
    x = torch.full((4, 16), 1e-40)
    found, wanted = results_of(lambda x, w: (x @ w).sum(-1), x, torch.full((16, 8), 0.5))
    assert 0 < wanted[0] < 1e-37
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_special_value_stays_in_its_row(value: float) -> None:
    x = torch.linspace(-2, 2, 40).reshape(5, 8)
    x[2, 3] = value
    weight = torch.linspace(-1, 1, 64).reshape(8, 8)
    found, wanted = results_of(lambda x, w: F.gelu(F.layer_norm(x, (8,)) @ w), x, weight)
    assert np.isnan(wanted[2]).all()
    require_same(found, wanted)
