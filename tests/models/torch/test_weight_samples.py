"""The back end's default sees writes that PyTorch does not count: at once, or soon and with a warning."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tuner.models.torch import bound_graph  # noqa: E402
from tuner.models.torch.weights import LEAST_BYTES, MOST_CALLS, ROWS, WeightSamples  # noqa: E402

SIZE = 256
LATE = r"up to {} calls before this one may have used the old ones"
equal = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-3)


def weight(*shape: int) -> Any:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)


def samples_of(*tensors: Any, flop: int = 0) -> WeightSamples:
    return WeightSamples(tensors, flop, np.random.default_rng(0))


def write_by_numpy(tensor: Any) -> None:
    tensor.detach().numpy()[...] = 7


def write_by_dlpack(tensor: Any) -> None:
    torch.from_dlpack(tensor.detach().numpy()).mul_(2)


def write_every_second_row(tensor: Any) -> None:
    tensor.data[::2] += 1


def call_often(compiled: Any, x: Any) -> None:
    for _ in range(MOST_CALLS):
        compiled(x)


WRITES: dict[str, Callable[[Any], Any]] = {
    "in place": lambda tensor: tensor.data.mul_(3),
    "index": lambda tensor: tensor.data.__setitem__(..., 5),
    "copy": lambda tensor: tensor.data.copy_(tensor.data.flip(0)),
    "numpy": write_by_numpy,
    "dlpack": write_by_dlpack,
    "rows": write_every_second_row,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_of_a_whole_weight_is_seen_by_the_next_call(write: Callable[[Any], Any]) -> None:
    tensors = weight(SIZE, SIZE), weight(SIZE), weight(SIZE, 2 * SIZE).t()
    for tensor in tensors:
        samples = samples_of(*tensors)
        assert samples.calls > 16
        assert [samples.late_calls() for _ in range(20)] == [None] * 20
        before = tensor.clone()
        write(tensor)
        assert samples.late_calls() == 0
        tensor.copy_(before)


@pytest.mark.parametrize("element", [0, 1234, SIZE * SIZE - 1])
def test_one_element_is_seen_within_the_calls_and_late_calls_are_counted(element: int) -> None:
    tensor = weight(SIZE, SIZE)
    samples = samples_of(tensor)
    for _ in range(3):
        assert samples.late_calls() is None
    tensor.view(-1).numpy()[element] += 1
    calls = 0
    while (late := samples.late_calls()) is None:
        calls += 1
    assert calls < samples.calls
    assert calls <= late <= samples.calls - 1


def test_as_many_rows_as_pay_for_it_read_all_weights_at_each_call() -> None:
    tensor = weight(1024, 1024)
    by_rows = {rows: samples_of(tensor, flop=2 * rows * tensor.numel()).calls for rows in (1, 16, 64, 256)}
    assert by_rows == {1: MOST_CALLS, 16: ROWS // 16, 64: ROWS // 64, 256: 1}
    assert samples_of(weight(LEAST_BYTES // 4)).calls == 1
    assert samples_of().late_calls() is None


def test_parts_are_compared_where_weights_are_now() -> None:
    tensors = weight(SIZE, SIZE), weight(SIZE)
    samples = samples_of(*tensors)
    tensors[1].numpy()[3] = 9  # before the other moves
    moved = tensors[0].clone(), tensors[1]
    samples.move_to(moved)
    tensors[0].zero_()
    seen = [samples.late_calls() for _ in range(samples.calls)]
    assert any(late is not None for late in seen)
    moved[1].numpy()[3] = weight(SIZE)[3]
    assert [samples.late_calls() for _ in range(samples.calls)] == [None] * samples.calls


class Layers(nn.Module):
    """A product whose weight is a part of a larger tensor, a norm with buffers, and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.memory = torch.randn(SIZE, SIZE + 8) / 16
        self.weight = nn.Parameter(self.memory[:, :SIZE], requires_grad=False)
        self.norm = nn.BatchNorm1d(SIZE)
        self.tied = nn.Parameter(self.weight.data, requires_grad=False)

    def forward(self, x: Any) -> Any:
        return self.norm(x @ self.weight) @ self.tied.t()


@pytest.mark.usefixtures("fresh_back_end")
def test_the_back_end_follows_writes_that_pytorch_does_not_count() -> None:
    module = Layers().eval()
    compiled: Any = torch.compile(module, backend="tuner")
    x = torch.linspace(-1, 1, 2 * SIZE).reshape(2, SIZE)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        equal(compiled(x), module(x))
        module.weight.data.mul_(3)
        equal(compiled(x), module(x))
        module.norm.running_mean.numpy()[:] = 2
        module.norm.bias.data.copy_(module.norm.weight.data)
        equal(compiled(x), module(x))
    assert tuner.torch.graph_counts().left == 0


@pytest.mark.usefixtures("fresh_back_end")
def test_a_write_that_is_seen_late_is_a_warning_and_memory_of_others_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = Layers().eval()
    compiled: Any = torch.compile(module, backend="tuner")
    x = torch.linspace(-1, 1, 2 * SIZE).reshape(2, SIZE)
    with torch.no_grad():
        equal(compiled(x), module(x))
        with monkeypatch.context() as patch:
            patch.setattr(bound_graph, "export_module", None)  # nothing is compiled
            module.memory[:, SIZE:] = 5
            for _ in range(3):
                equal(compiled(x), module(x))
        module.memory.numpy()[SIZE - 1, SIZE - 1] += 9
        with pytest.warns(UserWarning, match=LATE.format(r"\d+")):
            call_often(compiled, x)
        equal(compiled(x), module(x))
