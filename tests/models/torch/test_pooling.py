"""Pooling as elementwise operations on slices: the same numbers as PyTorch's, NaN and infinities too."""

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tuner.models.run.fused_program import FusedFunction  # noqa: E402
from tuner.models.torch.pooling import (  # noqa: E402
    SLICES_LIMIT,
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    max_pool,
)

pytestmark = pytest.mark.mlir
ATEN = torch.ops.aten
SPECIAL = (math.nan, math.inf, -math.inf, -0.0)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Returns normal numbers, every fifth of them special."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    for first, number in enumerate(SPECIAL):
        x.view(-1)[first :: 5 * len(SPECIAL)] = number
    return x


@given(st.data())
def test_each_form_gives_the_numbers_of_pytorch(data: st.DataObject) -> None:
    dims = data.draw(st.integers(1, 3))

    def sizes(low: int, high: int) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims))

    window, stride, dilation = (
        sizes(1, 4),
        data.draw(st.one_of(st.just([]), st.just([2]))) or sizes(1, 5),
        sizes(1, 3),
    )
    padding = [data.draw(st.integers(0, each // 2)) for each in window]
    x, rounds_up = numbers((2, 3, *sizes(1, 9)), torch.float64), data.draw(st.booleans())
    if data.draw(st.booleans()):
        form: tuple[Any, ...] = (window, stride, padding, dilation, rounds_up)
        pool, name = max_pool, "max_pool"
    else:
        divisor = data.draw(st.sampled_from([(), (7,)])) if dims > 1 else ()
        form = (window, stride, padding, rounds_up, data.draw(st.booleans()), *divisor)
        pool, name = average_pool, "avg_pool"
    try:
        expected = getattr(ATEN, f"{name}{dims}d").default(x, *form)
    except RuntimeError:  # a window larger than the padded input
        assume(False)
    torch.testing.assert_close(pool(dims)(x, *form), expected, equal_nan=True)


def test_integers_and_wide_windows_are_left_to_torch_mlir() -> None:
    image, wide = torch.ones(1, 1, 20, 20), SLICES_LIMIT + 1
    for pool in (max_pool(2), average_pool(2)):
        assert pool(image, [wide, 2]) is NotImplemented
        assert pool(image.int(), [2, 2]) is NotImplemented
    for several in (image, [2, 2]), (image.int(), [1, 1]), (image[:, :0], [1, 1]):
        assert adaptive_max_pool(2)(*several) is NotImplemented


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        ((7,), [3]),
        ((2, 2), [6, 6]),
        ((1, 5), [7, 2]),
        ((3, 4), [2, 4]),
        ((16, 20), [16, 3]),
        ((2, 3, 5), [3, 1, 4]),
    ],
)
def test_windows_that_differ_or_overlap_are_averaged(size: tuple[int, ...], counts: list[int]) -> None:
    x = numbers((2, 3, *size), torch.float64)
    dims = len(size)
    expected = getattr(ATEN, f"adaptive_avg_pool{dims}d").default(x, counts)
    torch.testing.assert_close(adaptive_average_pool(dims)(x, counts), expected, equal_nan=True)


def test_many_windows_that_differ_are_left_to_torch_mlir() -> None:
    assert adaptive_average_pool(1)(torch.ones(1, 1, 50), [SLICES_LIMIT + 1]) is NotImplemented
    assert adaptive_average_pool(1)(torch.ones(1, 1, 6).int(), [4]) is NotImplemented


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_greatest_number_of_all_and_its_index_are_those_of_pytorch(dims: int) -> None:
    x = numbers((4, 3, 5, 7)[: dims + 1], torch.float64)
    x[1], x[2] = -math.inf, 1.0
    expected = getattr(ATEN, f"adaptive_max_pool{dims}d").default(x, [1] * dims)
    for found, right in zip(adaptive_max_pool(dims)(x, [1] * dims), expected, strict=True):
        torch.testing.assert_close(found, right, equal_nan=True)


POOLS = {
    "average of more windows than elements": (torch.nn.AdaptiveAvgPool2d(6), (1, 3, 2, 4)),
    "max 3x3 padded": (torch.nn.MaxPool2d(3, 2, 1), (1, 4, 15, 33)),
    "max dilated": (torch.nn.MaxPool2d(2, 1, 1, dilation=2), (1, 4, 9, 20)),
    "max of sequences": (torch.nn.MaxPool1d(2), (2, 4, 31)),
    "max of volumes": (torch.nn.MaxPool3d(2, ceil_mode=True), (1, 2, 5, 6, 7)),
    "average 3x3 padded": (torch.nn.AvgPool2d(3, 1, 1, count_include_pad=False), (1, 4, 9, 20)),
    "average of sequences": (torch.nn.AvgPool1d(3, 2, 1), (2, 4, 32)),
    "average of volumes": (torch.nn.AvgPool3d(2), (1, 2, 4, 6, 8)),
    "adaptive": (torch.nn.AdaptiveAvgPool2d((3, 5)), (1, 4, 6, 15)),
    "one window": (torch.nn.AdaptiveAvgPool2d(1), (1, 8, 20, 20)),
    "greatest of one window": (torch.nn.AdaptiveMaxPool2d(1), (1, 8, 20, 20)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_pools_run_by_schedules(name: str, dtype: Any) -> None:
    module, shape = POOLS[name]
    x = numbers(shape, dtype)
    program = tuner.torch.compile(module, (x,))
    function = program.function
    assert isinstance(function, FusedFunction)
    assert all(each.strategy for each in function.code.fusions)
    expected = module(x.double()).to(dtype)  # PyTorch averages volumes of bf16 in bf16
    torch.testing.assert_close(program(x), expected, equal_nan=True)
