"""Tensors of zeros without memory, which autograd makes, are read as zeros: arguments, weights, constants."""

from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tuner.models.torch.guards import plain  # noqa: E402
from tuner.models.torch.weights import WeightContents  # noqa: E402

X = torch.randn(3, 4)


def zeros(*shape: int) -> Any:
    return torch._efficientzerotensor(shape)  # noqa: SLF001 - the only way to make one


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("held", zeros(4))
        self.register_buffer("other", zeros(1, 4), persistent=False)

    def forward(self, x: Any, y: Any) -> Any:
        made = torch._efficientzerotensor((3, 4))  # noqa: SLF001
        return torch.cat([x + self.held, self.other, y]) + 1, x * y + made


@pytest.mark.slow
def test_they_are_zeros_as_arguments_weights_and_constants() -> None:
    module = Held()
    program = tuner.torch.compile(module, (X, zeros(3, 4)))
    assert program.stale() == ()
    for y in (zeros(3, 4), torch.ones(3, 4), zeros(1, 4).expand(3, 4), zeros(6, 4)[::2]):
        for found, wanted in zip(program(X, y), module(X, y), strict=True):
            assert torch.equal(found, wanted)


def test_contents_of_zeros_without_memory_are_compared() -> None:
    contents = WeightContents()
    assert contents.of([zeros(3, 4)]) == contents.of([torch.zeros(3, 4)])
    assert plain(zeros(3, 4), "x").data_ptr()
