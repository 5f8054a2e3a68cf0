"""Parameters, buffers and constants of every kind are read, alone and as elements of lists."""

from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.models.torch.entry_points import ENTRY_POINTS, by_tune  # noqa: E402

X = torch.linspace(-2, 2, 12).reshape(3, 4)
EIGHT = torch.arange(8.0)


class Angles(nn.Module):
    """A submodule whose buffer is not in the state, as that of rotary embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inverse", 10000 ** -(torch.arange(0, 4, 2) / 4), persistent=False)

    def forward(self, x: Any) -> Any:
        return x[:, :2] * self.inverse


class ManyBuffers(nn.Module):
    """Reads buffers of each kind, none of which is in the state but ``held`` and ``same``."""

    def __init__(self) -> None:
        super().__init__()
        tied = torch.tensor([1.0, -1.0, 0.5, 2.0])
        self.p = nn.Parameter(torch.ones(4))
        self.register_buffer("held", tied)
        self.register_buffer("same", self.p.data)
        buffers = {
            "tied": tied,
            "integers": torch.arange(4),
            "truths": torch.tensor([True, False, True, True]),
            "number": torch.tensor(2.5),
            "truth": torch.tensor(True),
            "first": EIGHT[:4],
            "last": EIGHT[4:],
            "turned": EIGHT.reshape(2, 4).t(),
            "repeated": torch.tensor([[3.0]]).expand(3, 4),
            "none": torch.empty(0, 4),
            "halves": torch.arange(4).to(torch.bfloat16),
        }
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor, persistent=False)
        self.angles = Angles()
        self.rows = [torch.tensor([4.0, 3.0, 2.0, 1.0])]  # no buffer: export lifts it as a constant

    def forward(self, x: Any) -> Any:
        tied = x * self.tied + self.held + self.p * self.same
        integers = x + self.integers, torch.arange(4) + self.integers * self.truth
        chosen = torch.where(self.truths, x, self.number)
        views = self.first + self.last + x @ self.turned.sum(1)[:, None] + self.repeated
        rest = torch.cat([x, self.none]) + self.rows[0], x + self.halves, self.angles(x)
        return tied, *integers, chosen, views, *rest


class Lists(nn.Module):
    """Reads weights themselves, not what is computed of them, in lists."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.token = nn.Parameter(torch.randn(1, 4))
        self.square = nn.Parameter(torch.randn(3, 4))
        self.register_buffer("order", torch.tensor([2, 0]), persistent=False)
        self.register_buffer("column", torch.tensor([[0], [3]]))
        self.register_buffer("words", torch.arange(4)[None], persistent=False)
        self.register_buffer("truths", torch.tensor([[True, False, True, True]]))

    def forward(self, x: Any) -> Any:
        lists = torch.cat([self.token, x]), torch.cat((x, self.token)), torch.stack([self.square, x], 1)
        nested = torch.cat([torch.stack([self.square, self.square]), torch.stack([x, self.square])], -1)
        indexed = x[self.order], x[:, self.order], x[self.order, self.column], self.square[self.order]
        others = torch.cat([self.words, x.long()]), torch.cat([self.truths, x > 0])
        # a constant that forward makes, next to what it computes
        made = (
            torch.cat([x, torch.tensor([[1.0, 2.0, 3.0, 4.0]])]),
            torch.block_diag(self.token, x, self.square),
        )
        return *lists, nested, *indexed, *others, *made, torch.cat([self.square, self.token])


MODULES = {"buffers": ManyBuffers, "lists": Lists}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("name", MODULES)
def test_weights_of_every_kind_are_read(name: str, entry_point: str) -> None:
    require_equal(MODULES[name](), ENTRY_POINTS[entry_point])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_weights_of_every_kind_are_read_by_a_tuned_module(name: str) -> None:
    require_equal(MODULES[name](), by_tune)


def require_equal(module: nn.Module, entry_point: Any) -> None:
    results = entry_point(module.eval(), (X,))
    with torch.no_grad():
        expected = module(X)
    for found, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_changed_buffers_that_are_not_in_the_state_are_named() -> None:
    module = Angles()
    program = tuner.torch.compile(module, (X,))
    assert program.stale() == ()
    module.inverse.mul_(2)
    assert program.stale() == ("inverse",)
    again = tuner.torch.compile(module, (X,))
    torch.testing.assert_close(again(X), module(X))
