"""A PyTorch module with a size that changes, as a C library: each size gives what the module gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.library.c.c_programs import NEEDS_CC
from tests.models.test_c_library import BAD_SIZE, OK, Library, unaligned
from tests.support.architectures import ON_X86_64

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
    NEEDS_CC,
    ON_X86_64,
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402

WIDTH = 16


class Attention(nn.Module):
    """Causal attention, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        heads = self.norm(x).view(x.shape[0], 2, WIDTH // 2).transpose(0, 1)
        attended = nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        y = x + self.project(attended.transpose(0, 1).reshape(x.shape))
        return y, torch.cat([x, y], dim=1)


@pytest.mark.slow
def test_a_module_runs_in_c_at_each_size_of_its_range(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Attention().eval()
    rows = torch.export.Dim("rows", min=1, max=4)
    program = tuner.torch.compile(module, (torch.ones(2, WIDTH),), dynamic_shapes=({0: rows},))
    program.export(tmp_path / "attention")
    library = Library(tmp_path, tuner.load(tmp_path / "attention"))
    for n in (4, 1, 2, 3, 4, 1):
        x = unaligned(np.random.default_rng(n).standard_normal((n, WIDTH)).astype(np.float32))
        results = [unaligned(np.empty((n, width), np.float32)) for width in (WIDTH, 2 * WIDTH)]
        assert library.run((x,), results, n) == OK
        with torch.no_grad():
            expected = module(torch.from_numpy(x.copy()))
        for result, tensor in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, tensor.numpy(), rtol=0, atol=1e-5)
    assert library.run((x,), results, 5) == BAD_SIZE
