"""Modules with a long attention: one fusion by ``attention_cpu``, with the results of eager mode."""

from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip
from torch.nn import functional  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.fusions import ATTENTION  # noqa: E402
from tuner.mlir.reference.fusion_reference import input_shapes  # noqa: E402
from tuner.programs.fusion_schedules import tunable_fusions  # noqa: E402
from tuner.programs.run.fused_program import FusedFunction  # noqa: E402
from tuner.runtime.cpu.host import describe_machine  # noqa: E402
from tuner.torch.export import export_module  # noqa: E402

HEADS, WIDTH = 2, 24


class SelfAttention(nn.Module):
    """Attention of all positions to those that a mask shows, with projections before and after it."""

    def __init__(self, positions: int, *, is_explicit: bool) -> None:
        super().__init__()
        self.is_explicit = is_explicit
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.rand(positions, positions) > 0.3)
        self.seen[7] = False

    def forward(self, x: Any) -> Any:
        positions = x.shape[0]
        parts = (each.view(positions, HEADS, -1).transpose(0, 1) for each in self.qkv(x).chunk(3, -1))
        q, k, v = parts
        if self.is_explicit:
            scores = (q @ k.transpose(-2, -1) * 0.25).masked_fill(~self.seen, -torch.inf)
            y = torch.softmax(scores, -1) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=self.seen)
        return self.out(y.transpose(0, 1).reshape(positions, WIDTH))


def made(positions: int, *, is_explicit: bool) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return SelfAttention(positions, is_explicit=is_explicit).eval(), torch.randn(positions, WIDTH)


@pytest.mark.slow
@pytest.mark.parametrize("is_explicit", [True, False])
def test_a_long_attention_is_one_fusion_that_gives_what_eager_mode_gives(is_explicit: bool) -> None:
    """A row of which nothing is seen is NaN if written out, 0 by torch's own attention."""
    module, x = made(523, is_explicit=is_explicit)
    program = tuner.torch.compile(module, (x,))
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(program(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert np.isnan(expected[7]).all() == is_explicit
    assert isinstance(program.function, FusedFunction)
    (fusion,) = [each for each in program.function.code.fusions if each.kind == ATTENTION]
    assert fusion.strategy == "attention_cpu"
    assert [each for each in fusion.ops if "matmul" in each or "exp" in each] == [
        "linalg.batch_matmul",
        "math.exp",
        "linalg.batch_matmul",
    ]
    assert fusion.flop == 2 * HEADS * 523 * 523 * WIDTH


@pytest.mark.slow
def test_a_short_attention_stays_three_fusions() -> None:
    module, x = made(64, is_explicit=True)
    program = tuner.torch.compile(module, (x,))
    assert isinstance(program.function, FusedFunction)
    kinds = [each.kind for each in program.function.code.fusions]
    assert ATTENTION not in kinds
    assert "rows" in kinds


@pytest.mark.slow
def test_an_attention_is_tuned_as_one_problem() -> None:
    module, x = made(520, is_explicit=False)
    found = tunable_fusions(export_module(module, (x,)).text, None, "warm", describe_machine())
    (problem,) = [each.problem for each in found.problems if each.problem.operation == ATTENTION]
    assert problem.extents == (HEADS, 520, 520, WIDTH // HEADS)
    assert len(input_shapes(problem.fusion)) == 4  # queries, keys, the mask, values
