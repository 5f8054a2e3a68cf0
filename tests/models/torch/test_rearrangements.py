"""Rolls, pads and folds give what eager mode gives, by any shift, margin and stride; fusions are kept."""

import math
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402
from tests.models.torch.entry_points import ENTRY_POINTS, by_tune  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402

F = nn.functional
X = torch.arange(1.0, 25.0).reshape(2, 3, 4)
NAN, INF = float("nan"), float("inf")


def rolls_of_one_dimension(x: Any) -> tuple[Any, ...]:
    return tuple(torch.roll(x, shift, 1) for shift in (-8, -6, -5, -4, -3, -1, 0, 1, 2, 3, 4, 5, 100))


def rolls_of_several_dimensions(x: Any) -> tuple[Any, ...]:
    given = (
        ((1, -2), (0, 1)),
        ((1, 2), (1, 1)),
        ((5, -7, 3), (2, 2, -1)),
        ((0, 0), (0, 1)),
        ((0, 3), (0, -3)),
    )
    return tuple(torch.roll(x, shifts, dims) for shifts, dims in given)


def rolls_of_all_elements(x: Any) -> tuple[Any, ...]:
    rolled = tuple(torch.roll(x, shift) for shift in (0, 1, -1, 24, 25, -25, -77))
    others = x.long().roll(5), (x > 7).roll(-30), x.transpose(0, 2).roll((1, -1), (0, 1)), x[:1].roll(3, 0)
    return *rolled, *others, x.sum().roll(1), x[:0].roll(1, 1), x[:0].roll(2)


def pads_of_one_dimension(x: Any) -> tuple[Any, ...]:
    pairs = ((1, -1), (-1, 1), (-1, 0), (0, -1), (-1, -1), (2, -1), (0, 0), (-3, 1), (3, -4), (-4, 1), (1, 2))
    return tuple(F.pad(x, pair) for pair in pairs)


def pads_of_several_dimensions(x: Any) -> tuple[Any, ...]:
    shifted = F.pad(x, (0, 0, 1, -1)) * 0.5 + x, F.pad(x, (0, 0, -1, 1)), nn.ZeroPad2d((0, 0, 1, -1))(x)
    all_of = F.pad(x, (1, -1, -1, 1, 2, -2)), nn.ConstantPad3d((-2, 2, 1, 0, -1, 1), 3.5)(x[None])
    return *shifted, *all_of, F.pad(x, ()), F.pad(x, (1, -1, -1, 1)), F.pad(x, (3, -4, 1, -1), value=7.0)


def pads_with_a_value(x: Any) -> tuple[Any, ...]:
    numbers = (2.5, NAN, INF, -0.0, 7, True, 1e-45, -3e38)
    floats = tuple(F.pad(x, (1, -1), value=number) for number in numbers)
    integers = tuple(F.pad(x.int(), (1, -1), value=number) for number in (2.7, -1, True))
    others = F.pad(x > 3, (1, -1), value=2.0), F.pad(x.bfloat16(), (-1, 1), value=0.1)
    return *floats, *integers, *others, torch.constant_pad_nd(x.double(), (1, -2), 0.1)


def pads_by_elements(x: Any) -> tuple[Any, ...]:
    results = []
    for mode in ("reflect", "replicate", "circular"):
        results += [F.pad(x, pair, mode=mode) for pair in ((1, -1), (-1, 1), (-1, 0), (1, 2), (-2, 2))]
        results += [F.pad(x[None], four, mode=mode) for four in ((1, -1, -1, 1), (0, 0, 1, -1))]
        results += [F.pad(x[None, None], (1, -1, -1, 1, 0, 1), mode=mode)]
    return tuple(results)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(rolls_of_one_dimension, rolls_of_several_dimensions, rolls_of_all_elements),
        *(pads_of_one_dimension, pads_of_several_dimensions, pads_with_a_value, pads_by_elements),
    )
}


def require_equal(results: Any, expected: Any) -> None:
    for number, (found, wanted) in enumerate(zip(results, expected, strict=True)):
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0, equal_nan=True, msg=f"result {number}")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elements_move_as_in_eager_mode(name: str) -> None:
    require_equal(tuner.torch.compile(Function(FUNCTIONS[name]), (X,))(X), FUNCTIONS[name](X))


def shifted(x: Any) -> tuple[Any, ...]:
    return torch.roll(x, -5, 1) + 1, F.pad(x, (0, 0, 1, -1)) * 2, nn.ZeroPad2d((1, -1, 0, 0))(x)


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_elements_move_as_in_eager_mode_by_each_entry_point(entry_point: str) -> None:
    require_equal(ENTRY_POINTS[entry_point](Function(shifted), (X,)), shifted(X))


@pytest.mark.slow
def test_elements_move_as_in_eager_mode_in_a_tuned_module() -> None:
    require_equal(by_tune(Function(shifted), (X,)), shifted(X))


def test_a_pad_that_cuts_more_than_there_is_is_refused() -> None:
    exported = torch.export.export(Function(lambda x: F.pad(x, (5, -4))), (X,))
    for node in exported.graph.nodes:  # eager mode refuses it, and so does torch.export
        if node.target is torch.ops.aten.pad.default:
            node.args = (node.args[0], (6, -5))
    with pytest.raises(
        UsageError, match=r"aten\.pad at \S+ \(it cuts more than the elements of a dimension\)"
    ):
        tuner.torch.compile(exported)


FOLDS: dict[str, dict[str, Any]] = {  # (size, kernel, dilation, padding, stride) of ``nn.Fold``
    "volo": {"output_size": 14, "kernel_size": 3, "padding": 1, "stride": 2},
    "each axis": {
        "output_size": (7, 9),
        "kernel_size": (2, 3),
        "dilation": (2, 1),
        "padding": (0, 2),
        "stride": (1, 3),
    },
    "apart": {"output_size": (8, 6), "kernel_size": 1, "stride": 2},
    "padding": {"output_size": (4, 4), "kernel_size": 2, "padding": 4, "stride": 7},
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_adds_up_windows_as_in_eager_mode(name: str, dtype: Any) -> None:
    module = nn.Fold(**FOLDS[name])
    size, kernel, gap, pad, step = (
        torch.nn.modules.utils._pair(each)  # noqa: SLF001 - as Fold does
        for each in (module.output_size, module.kernel_size, module.dilation, module.padding, module.stride)
    )
    axes = zip(size, kernel, gap, pad, step, strict=True)
    windows = math.prod((of + 2 * p - g * (k - 1) - 1) // s + 1 for of, k, g, p, s in axes)
    x = torch.randn(2, 3 * math.prod(kernel), windows).to(dtype)
    program = tuner.torch.compile(module, (x,))
    assert program.why_no_fusions == ""
    tolerance = 1e-6 if dtype is torch.float32 else 2e-2  # eager mode rounds each sum of bf16
    torch.testing.assert_close(program(x), module(x), rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_a_program_with_a_roll_keeps_its_fusions_and_is_exported(tmp_path: Any) -> None:
    linear = nn.Linear(8, 8).eval()
    x = torch.randn(1, 6, 6, 8)
    program = tuner.torch.compile(Function(lambda x: linear(torch.roll(x, (3, -1), (1, 2)))), (x,))
    assert program.why_no_fusions == ""
    program.export(tmp_path / "rolled")
    torch.testing.assert_close(tuner.torch.load(tmp_path / "rolled")(x), program(x))
