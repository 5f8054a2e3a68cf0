"""Graphs with sizes that change from call to call: what has static sizes is compiled once for all of them."""

from typing import Any

import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.torch import bound_graph  # noqa: E402
from tuner.models.torch.dynamic_sizes import DynamicSize, SizedPlace  # noqa: E402

WIDTH = 64


class Step(nn.Module):  # type: ignore[misc,unused-ignore]
    """One step of a language model: a row that reads a cache, which grows by it."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.first = nn.Linear(WIDTH, 4 * WIDTH)
        self.second = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any, cache: Any) -> Any:
        query = self.query(x)
        cache = torch.cat([cache, self.key(x)], 1)
        scores = (query @ cache.transpose(1, 2)) * (1 / cache.shape[1])
        x = x + scores.softmax(-1) @ cache
        return self.second(self.first(x).relu()) + x, cache


def seeded(made: Any) -> Any:
    torch.manual_seed(0)
    return made().eval()


def step_of(length: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(length)
    return torch.randn(1, 1, WIDTH, generator=generator), torch.randn(1, length, WIDTH, generator=generator)


def test_a_growing_cache_is_compiled_once_for_its_first_and_once_for_all_lengths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = seeded(Step)
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        for number, length in enumerate((7, 8, 9, 31, 200, 2, 64)):
            found = compiled(*step_of(length))
            torch.testing.assert_close(found, module(*step_of(length)), rtol=1e-5, atol=1e-5)
            if number == 1:
                monkeypatch.setattr(bound_graph, "export_module", None)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (2, 0)
    (in_torch,) = counts.in_torch
    assert "aten.cat" in in_torch
    assert "its sizes are dynamic" in in_torch
    assert "linear" not in in_torch


class Window(Step):
    """A step whose cache keeps the last rows, and counts them: a number that no tensor has as a size."""

    def forward(self, x: Any, cache: Any, count: Any = 5) -> Any:
        x, cache = super().forward(x, cache)
        return x, cache[:, 1:], count + 1


def test_numbers_that_change_are_taken_and_returned() -> None:
    module = seeded(Window)
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        for number in (5, 6, 7, 3, 0, 1, 90):
            found = compiled(*step_of(number + 4), number)
            expected = module(*step_of(number + 4), number)
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    counts = tuner.torch.graph_counts()
    assert counts.taken >= 2
    assert counts.left == 1  # 0 and 1, in eager mode: torch.export takes them for no other number
    assert "found size 0 of dimension 0, allowed 2 to" in counts.reasons[0]


def test_changed_parameters_are_seen_between_lengths() -> None:
    module = seeded(Step)
    compiled: Any = torch.compile(module, backend="tuner", dynamic=True)
    with torch.no_grad():
        for length in (7, 9, 12):
            torch.testing.assert_close(
                compiled(*step_of(length)), module(*step_of(length)), rtol=1e-5, atol=1e-5
            )
            module.first.weight.mul_(-1)
    assert tuner.torch.graph_counts().left == 0


class Scores(nn.Module):  # type: ignore[misc,unused-ignore]
    """Products without weights, whose sizes change."""

    def forward(self, x: Any) -> Any:
        return (x @ x.t()).softmax(-1) @ x


def test_where_no_weights_are_multiplied_and_all_sizes_are_dynamic_the_graph_is_left() -> None:
    module = Scores()
    compiled: Any = torch.compile(module, backend="tuner", dynamic=True)
    x = torch.randn(9, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (0, 1)
    assert "sizes are not static" in counts.reasons[0]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 4), (2, 3)), ""),
        (((3, 4), (2, 4)), "argument 0: found size 3 of dimension 0, allowed 2 to 9"),
        (((1, 4), (2, 1)), "argument 0: found size 1 of dimension 0, allowed 2 to 9"),
        (((10, 4), (2, 10)), "argument 0: found size 10 of dimension 0, allowed 2 to 9"),
    ],
)
def test_sizes_that_are_one_size_of_the_graph_are_equal_and_in_range(shapes: Any, message: str) -> None:
    size = DynamicSize("s0", (SizedPlace(0, 0), SizedPlace(1, 1)), least=2, greatest=9)
    tensors = [torch.empty(shape) for shape in shapes]
    if not message:
        size.require(tensors)
        return
    with pytest.raises(UsageError, match=message):
        size.require(tensors)
