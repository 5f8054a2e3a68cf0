"""``as_strided`` by slices: equal to PyTorch's, and left where memory is shared or a call's own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.torch.strided_views import replace_strided, windows_of  # noqa: E402

Strided = tuple[list[int], list[int], int]


class Viewed(nn.Module):  # type: ignore[misc,unused-ignore]
    """A view of what is computed, whose memory has another order of dimensions."""

    def __init__(self, order: list[int], view: Strided) -> None:
        super().__init__()
        self.order = order
        self.view = view

    def forward(self, x: Any) -> Any:
        return (2 * x).permute(self.order).as_strided(*self.view) + 1


@st.composite
def views(draw: st.DrawFn) -> tuple[list[int], list[int], Strided]:
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    order = draw(st.permutations(range(len(shape))))
    rank = draw(st.integers(0, 4))
    size = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    steps = st.sampled_from([0, 1, 1, 2, 3, 4, 6, 12, 24])
    stride = draw(st.lists(steps, min_size=rank, max_size=rank))
    return shape, list(order), (size, stride, draw(st.integers(0, 3)))


@pytest.mark.slow
@given(views())
def test_drawn_views_are_those_of_pytorch(drawn: tuple[list[int], list[int], Strided]) -> None:
    shape, order, view = drawn
    size, stride, offset = view
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    last = offset + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if last >= x.numel():
        assert windows_of(x.numel(), size, stride, offset) is None
        return
    module = Viewed(order, view)
    program = torch.export.export(module, (x,))
    replace_strided(program.graph_module)
    is_left = bool(strided_in(program))
    assert is_left == (windows_of(x.numel(), size, stride, offset) is None)
    assert torch.equal(program.module()(x), module(x))


def strided_in(program: Any) -> Any:
    target = torch.ops.aten.as_strided.default
    return program.graph.find_nodes(op="call_function", target=target)


def test_windows_that_overlap_are_slices() -> None:
    """Two heads with their rows in turns, as of an attention: three windows of four rows of each head."""
    torch.manual_seed(0)
    linear = nn.Linear(6, 6).eval()

    class Windowed(nn.Module):  # type: ignore[misc,unused-ignore]
        def forward(self, x: Any) -> Any:
            heads = linear(x)
            heads /= 2  # in place, before
            return heads.view(8, 2, 3).transpose(0, 1).as_strided((2, 3, 4, 3), (3, 12, 6, 1)).exp()

    windows = windows_of(48, (2, 3, 4, 3), (3, 12, 6, 1), 0)
    assert windows is not None
    assert windows.starts == (0, 12, 24)
    module, x = Windowed(), torch.randn(8, 6)
    with torch.no_grad():
        torch.testing.assert_close(tuner.torch.compile(module, (x,))(x), module(x), rtol=1e-5, atol=1e-5)


LEFT = {
    "an argument's memory, whose strides a call may change": lambda x: x.t().as_strided((4,), (1,)) + 1,
    "returned": lambda x: (x * 2).as_strided((4,), (1,)).view(2, 2),
    "written later": lambda x: _written_later(x * 2),
    "written by the view": lambda x: _written_by_view(x * 2),
    "too many slices": lambda x: (x * 2).as_strided((65, 2), (2, 3)) + 1,
    "beyond the view": lambda x: (x * 2)[:4].as_strided((9, 16), (16, 1)) + 1,
}


def _written_later(y: Any) -> Any:
    view = y.as_strided((4,), (1,))
    y.add_(1)
    return view * 2


def _written_by_view(y: Any) -> Any:
    y.as_strided((4,), (1,)).add_(1)
    return y * 2


@pytest.mark.parametrize("why", LEFT)
def test_a_view_is_left_where_a_copy_would_differ(why: str) -> None:
    class Module(nn.Module):  # type: ignore[misc,unused-ignore]
        def forward(self, x: Any) -> Any:
            return LEFT[why](x)

    program = torch.export.export(Module(), (torch.ones(16, 16),))
    replace_strided(program.graph_module)
    assert len(strided_in(program)) == 1
    with pytest.raises(UsageError, match="it reads memory by the strides of its input"):
        tuner.torch.compile(Module(), (torch.ones(16, 16),))
