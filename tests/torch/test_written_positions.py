"""Writes at positions that come with a call are eager's: duplicates, negative positions, none at all."""

from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402

ROWS = 6
WIDTH = 4


class Written(nn.Module):
    """Rows of a product, written at positions in several ways."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, positions: Any, rows: Any) -> Any:
        x = self.linear(x)
        last = positions % ROWS  # of operators that take no negative positions
        at = last[:, None].expand(-1, WIDTH)
        return (
            x.index_put((positions,), rows) * 2,
            x.index_put((positions,), rows, accumulate=True),
            x.index_fill(0, positions, 3.0),
            x.index_copy(0, last, rows),
            x.index_add(0, last, rows, alpha=2),
            x.scatter(0, at, rows) + 1,
            x.scatter(0, at, 2.5),
            x.scatter_add(0, at, rows),
            x.scatter_reduce(0, at, rows, "amax"),
        )


def called(function: Any, positions: list[int]) -> Any:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    rows = torch.randn(len(positions), WIDTH, generator=generator)
    with torch.no_grad():
        return function(x, torch.tensor(positions, dtype=torch.int64), rows)


def program_for(module: Any, positions: list[int], fallback: str) -> Any:
    return called(lambda *given: tuner.torch.compile(module, given, fallback=fallback), positions)


def test_no_positions_are_no_writes_in_a_program() -> None:
    module = Written().eval()
    program = program_for(module, [], "none")
    torch.testing.assert_close(called(program, []), called(module, []))


def test_writes_by_pytorch_keep_the_last_of_duplicates_and_count_negative_positions_from_the_end() -> None:
    module = Written().eval()
    program = program_for(module, [0, 2, 4], "eager")
    for positions in ([0, 2, 4], [1, 1, 3], [-1, -6, 0], [5, 5, 5]):
        torch.testing.assert_close(called(program, positions), called(module, positions))
    for positions in ([0, 6, 1], [0, -7, 1]):
        with pytest.raises(IndexError, match=r"out of (bounds|range)"):
            called(program, positions)
