"""Tensors without elements: what reshapes, reduces or multiplies them compiles, and is what eager gives."""

from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # compiled as a whole, which is said

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip
from torch.nn import functional as F  # noqa: E402

import tuner.torch  # noqa: E402


class OfNothing(nn.Module):
    """Views and others, each of which torch-mlir crashed on: it divided by the size 0."""

    def forward(self, x: Any, rows: Any, images: Any) -> list[Any]:  # (0,), (0, 4), (0, 4, 2, 2)
        return [
            x.reshape(0, 1),
            x.reshape(3, 0),
            x.reshape(0, 4, 2) + 1,
            x.reshape(0, 1) @ x.reshape(1, 0),
            x.reshape(1, 0) @ x.reshape(0, 1),
            rows.flatten().sum(),
            rows.unflatten(1, (2, 2)).amax(1),
            rows.T.reshape(-1),
            rows.repeat(2, 3),
            rows.view(2, 0, 2).transpose(0, 1).reshape(0, 4),
            rows.chunk(2, 1)[0].flatten(),
            torch.stack([rows, rows], 1).flatten(),
            torch.einsum("ij,jk->ik", rows, rows.T),
            torch.einsum("ji,jk->ik", rows, rows),
            F.pixel_shuffle(images, 2),
            F.group_norm(images, 2),
            F.interpolate(images, scale_factor=2),
            F.scaled_dot_product_attention(images, images, images),
        ]


def test_what_is_made_of_tensors_without_elements_compiles() -> None:
    inputs = (torch.zeros(0), torch.zeros(0, 4), torch.zeros(0, 4, 2, 2))
    found = tuner.torch.compile(OfNothing(), inputs)(*inputs)
    wanted = OfNothing()(*inputs)
    assert [tensor.shape for tensor in found] == [tensor.shape for tensor in wanted]
    assert all(map(torch.equal, found, wanted))
