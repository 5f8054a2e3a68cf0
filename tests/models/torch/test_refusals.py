"""A refusal names each operator that is refused, and the line of the module that calls it."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import CandidateError, Stage, UsageError  # noqa: E402
from tuner.models.mlir import torch_dialect  # noqa: E402
from tuner.models.torch import lowering  # noqa: E402
from tuner.models.torch.refusals import line_in  # noqa: E402

HERE = Path(__file__)
ROWS = torch.arange(8.0).reshape(2, 4)
POSITION = torch.tensor([1])


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def refusal(function: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(UsageError) as raised:
        tuner.torch.compile(Function(function), arguments)
    return str(raised.value)


def line_with(code: str) -> int:
    lines = HERE.read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if code in line)


class NotLowered(nn.Module):
    """What torch-mlir never lowers, what becomes a scatter or a sort, complex numbers, and a division."""

    def forward(self, x: Any, at: Any) -> Any:
        for _ in range(3):
            x = x.index_reduce(0, at, x[:1], "amax")  # aten.index_reduce
        counts = torch.histc(x, 4)  # aten.histc
        added = x.index_add(0, at.expand(9), x[:1].expand(9, -1))  # aten.index_add
        written = x.scatter_reduce(1, at[None], x, "amax")  # aten.scatter_reduce.two
        places = torch.searchsorted(x.sin(), x)  # aten.searchsorted.Tensor
        largest = (x * 2).topk(2)[0]  # aten.topk
        sizes = torch.fft.fft(x + 1).abs()  # aten.fft_fft
        return x, counts, added, written, places, largest, sizes, at // at  # aten.floor_divide


def test_all_refused_operators_are_named_at_once_with_their_lines() -> None:
    with pytest.raises(UsageError, match=r"^operators that are not supported: [^\n]+$") as raised:
        tuner.torch.compile(NotLowered(), (ROWS, POSITION))
    found = re.findall(rf"(aten\.[\w.]+) at [^ ]*{HERE.name}:(\d+) \(", str(raised.value))
    expected = marked_lines(NotLowered)
    assert len(expected) == 8
    assert expected <= set(found)
    assert len(found) == len(set(found))  # the three calls of index_reduce are one
    assert {name for name, _ in set(found) - expected} <= {"aten.abs"}  # of complex numbers


HISTOGRAM = """
module {
  func.func @main(%x: !torch.vtensor<[8],f32>) -> !torch.vtensor<[4],f32> {
    %bins = torch.constant.int 4
    %low = torch.constant.int 0
    %high = torch.constant.int 3
    %counts = torch.operator "torch.aten.histc"(%x, %bins, %low, %high)
      : (!torch.vtensor<[8],f32>, !torch.int, !torch.int, !torch.int) -> !torch.vtensor<[4],f32>
      loc("operator aten.histc at m.py:7":1:0)
    return %counts : !torch.vtensor<[4],f32>
  }
}
"""


def test_an_operator_is_named_if_torch_mlir_crashes_without_it() -> None:
    rounds: list[int] = []

    def call(work: Any) -> Any:
        if work.func is not torch_dialect.refused_operators:
            return work()
        rounds.append(work.args[-1])
        if rounds[-1] > 1:
            raise CandidateError(Stage.BIND, "its process ended with -11")
        return work()

    with pytest.raises(UsageError, match=r"^operators that are not supported: aten\.histc at m\.py:7 \("):
        lowering._lowered(HISTOGRAM, torch_dialect.lower, call)  # noqa: SLF001
    assert rounds == [torch_dialect.MOST_ROUNDS, 1]


# What tuner itself checks: reads by strides, random numbers, sizes that the numbers of a tensor decide.
CHECKED: dict[str, tuple[Callable[..., Any], str]] = {
    "strides": (lambda x: x.as_strided((3, 2), (2, 1)), "aten.as_strided"),
    "random": (lambda x: torch.bernoulli(x * 0), "aten.bernoulli"),
    "sizes": (lambda x: torch.nonzero(x), "aten.nonzero"),
    "mask": (lambda x: x[x > 1], "aten.index.Tensor"),
}


@pytest.mark.parametrize("name", CHECKED)
def test_what_tuner_checks_is_refused_with_operator_and_line(name: str) -> None:
    function, operator = CHECKED[name]
    message = refusal(function, ROWS)
    line = line_with("return self.function(")
    assert re.search(rf"{re.escape(operator)} at [^ ]*{HERE.name}:{line}\b", message), message
    assert "\n" not in message


class OfEachKind(nn.Module):
    """What tuner checks before decompositions, after them, of uint8, and what torch-mlir does not lower."""

    def forward(self, x: Any, pixels: Any) -> Any:
        windows = x.as_strided((3, 2), (2, 1))  # aten.as_strided
        again = x.as_strided((2, 2), (1, 1))  # aten.as_strided
        noise = torch.bernoulli(x * 0)  # aten.bernoulli
        steps = torch.linspace(0, 9, 4, dtype=torch.int64)  # aten.linspace
        at = nn.functional.max_pool2d(x[None], 2, return_indices=True)[1]  # aten.max_pool2d_with_indices
        half = pixels // 2  # aten.floor_divide
        counts = torch.histc(x, 4)  # aten.histc
        return windows, again, noise, steps, at, half, counts


def marked_lines(module: type[nn.Module]) -> set[tuple[str, str]]:
    lines, first = inspect.getsourcelines(module)
    marks = [(re.search(r"  # (aten\.[\w.]+)$", line), number) for number, line in enumerate(lines, first)]
    return {(mark[1], str(number)) for mark, number in marks if mark}


def test_refusals_of_all_checks_are_one_list() -> None:
    with pytest.raises(UsageError, match=r"^operators that are not supported: [^\n]+$") as raised:
        tuner.torch.compile(OfEachKind(), (ROWS, torch.zeros(4, dtype=torch.uint8)))
    found = re.findall(rf"(aten\.[\w.]+) at [^ ]*{HERE.name}:(\d+) \(", str(raised.value))
    assert {*found} == marked_lines(OfEachKind)
    assert "call module.eval()" in str(raised.value)


def test_a_condition_on_numbers_is_refused_with_its_line() -> None:
    message = refusal(lambda x: x if x.sum() > 0 else -x, ROWS)
    line = line_with("message = refusal(lambda x: x if")
    assert re.search(rf"^torch\.export refuses the module: .*, at [^ ]*{HERE.name}:{line}$", message), message


def test_whole_numbers_converted_to_floats_after_an_index_are_not_refused() -> None:
    # the location of a node without a line was that of the node before it, which is of integers
    module = Function(lambda x: torch.nn.functional.one_hot(x.argmax(-1), 4).float())
    assert torch.equal(tuner.torch.compile(module, (ROWS,))(ROWS), module(ROWS))


def test_the_line_is_the_innermost_one_that_is_not_of_pytorch() -> None:
    inside = torch.__file__
    frames = (("/m/a.py", 3), ("/m/b.py", 7), (inside, 1))
    trace = "\n".join(f'File "{file}", line {line}, in forward' for file, line in frames)
    assert line_in(trace) == "/m/b.py:7"
    assert line_in(f'File "{inside}", line 1, in h') == ""
    other = Path(inside).parents[1] / "torchvision" / "ops.py"  # its folder's name begins as PyTorch's
    found = line_in(f'File "{other}", line 5, in forward')  # from the current folder where it is below it
    assert found.endswith("torchvision/ops.py:5")
