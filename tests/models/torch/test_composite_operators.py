"""Composite operators are decomposed as PyTorch does it, in less time."""

from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch._export import utils as export_utils  # noqa: E402
from torch.export import exported_program  # noqa: E402

from tuner.models.torch.composite_operators import FIND, OVERRIDE, few_overrides  # noqa: E402
from tuner.models.torch.decompositions import decompositions  # noqa: E402

# of torch about its own code
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


class Composites(nn.Module):
    """Computes by composite operators, with and without a function of our own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.cell = nn.Linear(6, 6), nn.GRUCell(6, 6)
        self.norm, self.groups = nn.LayerNorm(6), nn.GroupNorm(2, 6)

    def forward(self, x: Any) -> Any:
        hidden = self.norm(torch.einsum("bij,bkj->bik", x, self.linear(x)) @ x)
        hidden = nn.functional.scaled_dot_product_attention(hidden, x, x) + self.groups(x.mT).mT
        pooled = nn.functional.adaptive_avg_pool1d(nn.functional.silu(hidden), 3)
        state = self.cell(hidden[:, 0], x[:, 0])
        return state.softmax(-1), torch.var(pooled, 1), torch.cosine_similarity(hidden, x, -1)


@pytest.fixture(scope="module")
def program() -> Any:
    return torch.export.export(Composites().eval(), (torch.ones(2, 5, 6),))


@pytest.mark.parametrize("table", [decompositions, dict], ids=["own", "none"])
def test_the_graph_is_that_of_pytorch(program: Any, table: Callable[[], Mapping[Any, Any]]) -> None:
    expected = program.run_decompositions(dict(table()))
    with few_overrides():
        found = program.run_decompositions(dict(table()))
    assert found.graph_module.code == expected.graph_module.code
    assert str(found.graph_signature) == str(expected.graph_signature)


def test_operators_are_looked_for_once_and_most_are_not_overridden(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = mock.Mock(wraps=getattr(export_utils, FIND))
    override = mock.Mock(wraps=getattr(exported_program, OVERRIDE))
    monkeypatch.setattr(export_utils, FIND, find)
    monkeypatch.setattr(exported_program, OVERRIDE, override)
    with few_overrides():
        program.run_decompositions(decompositions())
    assert find.call_count == 1
    assert all(len(table) < 150 for ((table,), _) in override.call_args_list)
    assert override.called


def test_a_version_of_pytorch_without_the_functions_goes_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(export_utils, FIND)
    monkeypatch.delattr(exported_program, OVERRIDE)
    with few_overrides():
        assert not hasattr(export_utils, FIND)
    assert not hasattr(exported_program, OVERRIDE)
