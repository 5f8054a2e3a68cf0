"""Sums with products read what eager mode reads: a NaN in what is multiplied by 0 stays where it is."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tests.models.exports.export import Function  # noqa: E402
from tests.models.torch.entry_points import ENTRY_POINTS  # noqa: E402

SCALES = ((1, 0), (0, 1), (0, 0), (0.5, 0), (0.0, 2), (1.5, 0.5))  # (beta, alpha)
Shapes = tuple[tuple[int, ...], ...]
SUMS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "addmm": (torch.addmm, ((2, 3), (2, 4), (4, 3))),
    "addmm of a row": (torch.addmm, ((3,), (2, 4), (4, 3))),
    "addmm of nothing": (torch.addmm, ((2, 3), (2, 0), (0, 3))),
    "addmv": (torch.addmv, ((2,), (2, 4), (4,))),
    "addbmm": (torch.addbmm, ((2, 3), (5, 2, 4), (5, 4, 3))),
    "baddbmm of small matrices": (torch.baddbmm, ((3,), (5, 2, 4), (5, 4, 3))),
    "baddbmm": (torch.baddbmm, ((2, 6, 9), (2, 6, 8), (2, 8, 9))),
    "addr": (torch.addr, ((2, 3), (2,), (3,))),
}
NARROW_SUMS = (  # baddbmm of bf16 by 0 leaves memory as it was, in eager mode
    ("addmm", torch.bfloat16),
    ("addmv", torch.bfloat16),
    ("addbmm", torch.bfloat16),
    ("baddbmm", torch.float16),
)


def with_scales(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*inputs: Any) -> tuple[Any, ...]:
        triples = [inputs[at : at + 3] for at in range(0, len(inputs), 3)]
        return tuple(
            function(*triple, beta=beta, alpha=alpha) for triple in triples for beta, alpha in SCALES
        )

    return computed


def inputs_with_nan(shapes: Shapes, dtype: Any) -> tuple[Any, ...]:
    """Returns three triples, each with a NaN in another of its tensors."""
    torch.manual_seed(0)
    inputs = []
    for place in range(3):
        triple = [torch.randn(shape).to(dtype) for shape in shapes]
        triple[place].view(-1)[:1] = float("nan")
        inputs += triple
    return tuple(inputs)


def require_equal(results: Any, expected: Any, tolerance: float) -> None:
    for found, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


def require_as_eager(name: str, dtype: Any, tolerance: float) -> None:
    function, shapes = SUMS[name]
    inputs = inputs_with_nan(shapes, dtype)
    program = tuner.torch.compile(Function(with_scales(function)), inputs)
    require_equal(program(*inputs), with_scales(function)(*inputs), tolerance)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", SUMS)
def test_what_is_multiplied_by_0_is_read_where_eager_mode_reads_it(name: str) -> None:
    require_as_eager(name, torch.float32, 1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "dtype"), NARROW_SUMS)
def test_narrow_floats_are_read_by_a_scale_of_0(name: str, dtype: Any) -> None:
    require_as_eager(name, dtype, 3e-2)


@pytest.mark.slow
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_each_entry_point_reads_the_same(entry_point: str) -> None:
    function, shapes = SUMS["addmm"]
    inputs = inputs_with_nan(shapes, torch.float32)
    module = Function(with_scales(function))
    require_equal(ENTRY_POINTS[entry_point](module, inputs), module(*inputs), 1e-5)
