"""NaN, infinities, masks of -inf and denormals come out as from torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.programs.execution import host_function

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NO_TORCH)
export = pytest.importorskip("tests.programs.exports.export")

INF, NAN = float("inf"), float("nan")
LEAST = 1e-45  # the least denormal of f32
VALUES = (0.0, -0.0, 1.0, -1.5, LEAST, -LEAST, 1e-39, 1e-38, 3e38, -3e38, 100.0, -100.0, INF, -INF, NAN)
F = torch.nn.functional

# Without gelu, which is NaN for infinity in torch, infinity here
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "clamp": lambda x: x.clamp(-1, 1),
    "relu6": F.relu6,
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "half": lambda x: x * 0.5,
    "negative": torch.neg,
    "square": lambda x: x * x,
    "isnan": torch.isnan,
    "is_greater": lambda x: x > 0,
    "is_unequal": lambda x: x != x,
    "where": lambda x: torch.where(x > 0, x, 0 * x),
    "masked": lambda x: x.masked_fill(x < 0, -INF),
    "greatest": lambda x: x.amax(0, keepdim=True),
    "sum": lambda x: x.sum(0, keepdim=True),
    "softmax": lambda x: torch.softmax(x, 0),
}


def results_of(function: Callable[..., Any], *inputs: Any) -> tuple[Any, Any]:
    """Returns what the compiled program and what torch makes of the inputs."""
    text = export.exported_text(export.Function(function), inputs)
    program = host_function(compiler_of(TargetName("cpu")).compile(text, as_fusions=True))
    wanted = function(*inputs)
    return program(*(each.numpy() for each in inputs)), (
        tuple(each.numpy() for each in wanted) if isinstance(wanted, tuple) else wanted.numpy()
    )


def require_same(found: Any, wanted: Any) -> None:
    """Raises AssertionError but where both have NaN, the same infinity or nearly the same number."""
    np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=LEAST)


@pytest.mark.slow
def test_elementwise_functions_of_special_values_give_what_torch_gives() -> None:
    """One program for all functions: torch.export takes longer than all that follows."""
    x = torch.tensor(VALUES)
    found, wanted = results_of(lambda x: tuple(function(x) for function in FUNCTIONS.values()), x)
    differences = map(_difference, found, wanted)
    assert {name: line for name, line in zip(FUNCTIONS, differences, strict=True) if line} == {}


def _difference(found: Any, wanted: Any) -> str:
    try:
        require_same(found, wanted)
    except AssertionError as error:
        return str(error)
    return ""


MASKED = torch.tensor([[0.0, -INF, -INF], [-INF, -INF, -INF], [1.0, 2.0, 3.0]])


@pytest.mark.slow
def test_a_row_of_which_all_is_masked_is_nan_and_no_other_row() -> None:
    found, wanted = results_of(lambda scores, v: torch.softmax(scores, -1) @ v, MASKED, torch.ones(3, 4))
    assert np.isnan(wanted).all(1).tolist() == [False, True, False]
    require_same(found, wanted)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_special_value_stays_in_its_row(value: float) -> None:
    x = torch.linspace(-2, 2, 40).reshape(5, 8)
    x[2, 3] = value
    weight = torch.linspace(-1, 1, 64).reshape(8, 8)
    found, wanted = results_of(lambda x, w: F.gelu(F.layer_norm(x, (8,)) @ w), x, weight)
    assert np.isnan(wanted[2]).all()
    require_same(found, wanted)


@pytest.mark.slow
def test_denormals_are_summed_and_multiplied_as_torch_does() -> None:
    x = torch.full((4, 16), 1e-40)
    found, wanted = results_of(lambda x, w: (x @ w).sum(-1), x, torch.full((16, 8), 0.5))
    assert 0 < wanted[0] < 1e-37
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
