"""Programs of one process for other lengths of a module share its packed weights."""

import gc
import tracemalloc
from typing import Any

import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tuner.models.torch.program import TensorProgram  # noqa: E402

SIZE = 1024
MORE = torch.linspace(-2, 2, 24 * SIZE).reshape(24, SIZE)
FEW = MORE[:18].clone()


@pytest.fixture
def module() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, SIZE, bias=False)).eval()


@pytest.mark.slow
def test_a_second_length_adds_little_memory_and_a_changed_weight_is_packed_anew(module: Any) -> None:
    first: Any = tuner.torch.compile(module, (FEW,))
    gc.collect()
    tracemalloc.start()
    try:
        second: Any = tuner.torch.compile(module, (MORE,))
        gc.collect()
        added_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert added_bytes < 0.1 * first.function.code.weights_bytes
    held = {id(array) for array in first.function.weights}
    assert {id(array) for array in second.function.weights} == held
    with torch.no_grad():
        torch.testing.assert_close(second(MORE), module(MORE), rtol=1e-4, atol=1e-4)
        module[2].weight.mul_(2)
        changed: Any = tuner.torch.compile(module, (FEW,))
        torch.testing.assert_close(changed(FEW), module(FEW), rtol=1e-4, atol=1e-4)
    own = [array for array in changed.function.weights if id(array) not in held]
    assert [array.nbytes for array in own] == [SIZE * SIZE * 4]


def test_graphs_of_the_back_end_share_weights_with_each_other(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs: list[Any] = []
    compiled_graph: Any = TensorProgram.__init__

    def kept(program: Any, function: Any, *more: Any, **options: Any) -> None:
        programs.append(function)
        compiled_graph(program, function, *more, **options)

    monkeypatch.setattr(TensorProgram, "__init__", kept)
    compiled: Any = torch.compile(module, backend="tuner", dynamic=False)
    with torch.no_grad():
        for x in (FEW, MORE):
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-4)
    first, second = programs
    assert first.code.arguments != second.code.arguments
    assert {id(array) for array in first.weights} == {id(array) for array in second.weights}
