"""A module is not lowered twice, unless its text would differ, and its weights are always its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

from tuner.models.torch import export, graph_export  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402
from tuner.models.torch.export_key import export_key, graph_key  # noqa: E402

X = torch.ones(2, 4)


@torch.fx.wrap  # type: ignore[untyped-decorator,unused-ignore]
def wrapped(x: Any) -> Any:
    return x + 1


class Layer(nn.Module):
    """A product with a bias, scaled by a weight of one element, and masked by a constant."""

    def __init__(
        self, seed: int = 0, scale: float = 2.0, mask: tuple[bool, ...] = (True, False, True, True)
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.linear, self.scale = nn.Linear(4, 4), nn.Parameter(torch.tensor([scale]))
        self.mask = mask

    def forward(self, x: Any) -> Any:
        return torch.where(torch.tensor(self.mask), self.linear(x) * self.scale, x)


class Tied(nn.Module):
    """Two layers, whose weight is one where ``is_tied``."""

    def __init__(self, *, is_tied: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        if is_tied:
            self.second.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, bool]]:
    """Gives a function that exports a module; returns the text, and whether it was lowered anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def export(module: nn.Module, x: Any = X) -> tuple[str, bool]:
        new: list[bool] = []
        text = export_module(module.eval(), (x,), on_new=lambda: new.append(True)).text
        return text, bool(new)

    return export


def fresh(module: nn.Module, monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    """Returns the text of a module that no file knows."""
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "fresh"))
        return export_module(module.eval(), (X,)).text


def test_equal_modules_are_lowered_once_with_the_weights_of_each(
    exported: Callable[..., tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, other = exported(Layer()), exported(Layer(seed=1))
    assert (first[1], other[1]) == (True, False)
    assert first[0] != other[0]
    assert other[0] == fresh(Layer(seed=1), monkeypatch, tmp_path)
    assert exported(Layer()) == (first[0], False)


def test_what_the_text_contains_is_in_the_key(exported: Callable[..., tuple[str, bool]]) -> None:
    modules: list[tuple[nn.Module, Any]] = [
        (Layer(), X),
        (Layer(scale=3.0), X),
        (Layer(mask=(True, True, False, True)), X),
        (Layer(), torch.ones(3, 4)),
        (Layer().double(), X.double()),
        (nn.Sequential(Layer(), nn.ReLU()), X),
        (nn.Sequential(Layer(), nn.LeakyReLU(0.1)), X),
        (nn.Sequential(Layer(), nn.LeakyReLU(0.2)), X),
        (Tied(is_tied=True), X),
        (Tied(is_tied=False), X),
    ]
    assert all(exported(*each)[1] for each in modules)
    assert not any(exported(*each)[1] for each in modules)


def test_operations_of_a_user_have_no_key() -> None:
    with torch.library._scoped_library("tests_of_keys", "FRAGMENT") as library:  # noqa: SLF001 - torch's own tests
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")

        class Twice(nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.ops.tests_of_keys.twice(x)

        assert export_key(torch.export.export(Twice(), (X,))) is None
    assert export_key(torch.export.export(Layer().eval(), (X,))) is not None


def test_a_graph_of_dynamo_is_exported_once_unless_its_text_would_differ(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    traced: list[Any] = []
    trace = graph_export.exported_graph

    def exported_graph(*arguments: Any) -> Any:
        traced.append(arguments)
        return trace(*arguments)

    monkeypatch.setattr(export, "exported_graph", exported_graph)
    counts = []
    masked = Layer(mask=(False, True, True, True))
    for module in (Layer(), Layer(seed=1), Layer(scale=3.0), masked, Tied(is_tied=False), Tied(is_tied=True)):
        torch._dynamo.reset()  # noqa: SLF001 - torch's documented name
        module.eval()
        with torch.no_grad():
            found = torch.compile(module, backend="tuner")(X)
            torch.testing.assert_close(found, module(X))
        counts.append(len(traced))
    assert counts == [1, 1, 2, 3, 4, 5]


def test_a_graph_that_calls_an_operator_of_the_user_has_no_key() -> None:
    graph = torch.fx.symbolic_trace(lambda x: wrapped(x))
    assert graph_key(graph, {}, (X,), 0) is None
    known = torch.fx.symbolic_trace(lambda x: torch.relu(x)[..., None])
    assert graph_key(known, {}, (X,), 0) != graph_key(known, {}, (X[0],), 0)
