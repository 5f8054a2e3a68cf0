"""What torch-mlir alone gets wrong comes out as from torch: NaN, constants, reciprocals of zero, scans."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NO_TORCH)
export = pytest.importorskip("tests.programs.exports.export")
exported_module = pytest.importorskip("tuner.programs.torch_models.exported_module")

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.5, 1e-40, 3e38, -3e38, 100.0, -100.0, INF, -INF, NAN])
GRID = torch.linspace(-4, 4, 36).reshape(4, 9)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "clamp": (lambda x: (x.clamp(-1, 1), x.clamp(min=0.5), x.clamp(max=2)), SPECIAL),
    "clamp of integers": (lambda x: (x.clamp(1, 3),), torch.arange(6)),
    "hard functions": (lambda x: (F.hardtanh(x), F.relu6(x), F.hardsigmoid(x)), SPECIAL),
    "extrema": (lambda x: (torch.maximum(x, x.flip(0)), torch.minimum(x, x.flip(0))), SPECIAL),
    "reciprocals": (lambda x: (x.reciprocal(), 1 / x, 2 / x), SPECIAL),
    "gelu by tanh": (lambda x: (F.gelu(x, approximate="tanh"),), GRID),
    "sums of prefixes": (lambda x: (x.cumsum(0), x.cumsum(-1)), GRID),
    "sums of integers": (lambda x: (x.cumsum(0),), torch.arange(12).reshape(3, 4)),
    "batch norm": (torch.nn.BatchNorm1d(9).eval(), GRID),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_gives_what_torch_gives(name: str) -> None:
    from benchmarks.program_compiler import compiler_of
    from tuner.core.target_name import TargetName
    from tuner.programs.execution import host_function

    function, x = FUNCTIONS[name]
    text = exported_module.export_module(export.Function(function), (x,)).text
    results = host_function(compiler_of(TargetName("cpu")).compile(text, as_groups=True))(x.numpy())
    with torch.no_grad():
        expected = function(x)
    results = results if isinstance(results, tuple) else (results,)
    for found, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=2e-6, atol=1e-6, equal_nan=True)
