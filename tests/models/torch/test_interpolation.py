"""Resized images have the numbers of PyTorch, NaN and infinities too; whole factors need no scalar loops."""

from typing import Any

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tests.models.exports.export import Function  # noqa: E402

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
IMAGE = torch.linspace(-3, 4, 4 * 5 * 6).reshape(1, 4, 5, 6)
IMAGE[0, 0, 1, 1], IMAGE[0, 1, 2, 2], IMAGE[0, 2, 0, 0], IMAGE[0, 3, 4, 5] = INF, NAN, -INF, INF
SIZES = ((10, 12), (5, 6), (7, 9), (2, 3), (1, 1), (20, 6), (5, 1), (40, 48))
FACTORS = (2, 3, 7, 0.5, 1.5, 2.3, 2.05, (2.0, 1.0))
TOLERANCES = {torch.float32: 3e-6, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}
Call = dict[str, Any]


def require_equal(x: Any, calls: list[Call]) -> Any:
    """Compares each call of ``interpolate`` with PyTorch's; returns the program of all of them."""

    def resized(x: Any) -> tuple[Any, ...]:
        return tuple(F.interpolate(x, **call) for call in calls)

    program = tuner.torch.compile(Function(resized), (x,))
    tolerance = TOLERANCES.get(x.dtype, 0.0)
    for call, found, expected in zip(calls, program(x), resized(x), strict=True):
        assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True), call
    return program


def strategies(program: Any) -> set[str]:
    return {fusion.strategy for fusion in program.function.code.fusions}


@pytest.mark.slow
def test_whole_factors_are_vectors() -> None:
    program = require_equal(IMAGE, [{"size": (10, 18), "mode": "bilinear"}, {"size": (15, 12)}])
    assert strategies(program) == {"elementwise_cpu"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function")  # pixels that are read by indices are loops
def test_other_sizes_read_the_pixels_that_pytorch_reads() -> None:
    require_equal(
        IMAGE, [{"size": (7, 9), "mode": "bicubic"}, {"size": (2, 13)}, {"size": (5, 4), "mode": "bilinear"}]
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function")
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_are_resized_to_sizes_and_by_factors(mode: str, align_corners: bool) -> None:
    same = {"mode": mode, "align_corners": align_corners}
    calls: list[Call] = [*({"size": size} for size in SIZES), *({"scale_factor": each} for each in FACTORS)]
    require_equal(IMAGE, [call | same for call in calls])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function")
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_pixel_is_that_of_pytorch(mode: str) -> None:
    sizes = (*SIZES, (15, 18), (13, 100))
    calls: list[Call] = [
        *({"size": size} for size in sizes),
        *({"scale_factor": each} for each in (*FACTORS, 0.7)),
    ]
    require_equal(IMAGE, [call | {"mode": mode} for call in calls])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function")
def test_rows_and_volumes_are_resized() -> None:
    rows: list[Call] = [{"size": 14, "mode": "linear"}, {"size": 9, "mode": "linear"}, {"size": 21}]
    require_equal(torch.linspace(-1, 1, 42).reshape(2, 3, 7), rows)
    volumes: list[Call] = [
        {"size": (6, 8, 10)},
        {"size": (4, 5, 6), "align_corners": True},
        {"size": (1, 2, 5)},
    ]
    volume = torch.linspace(-1, 1, 120).reshape(1, 2, 3, 4, 5)
    require_equal(volume, [call | {"mode": "trilinear"} for call in volumes] + [{"scale_factor": 2}])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_types_are_resized(dtype: Any) -> None:
    calls: list[Call] = [{"scale_factor": 2, "mode": mode} for mode in ("nearest", "bilinear", "bicubic")]
    calls += [{"size": (7, 9), "mode": mode} for mode in ("nearest-exact", "bilinear", "bicubic")]
    require_equal(IMAGE[:, :, 3:].nan_to_num(0, 0, 0).to(dtype), calls)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function")
def test_bytes_are_read_from_the_nearest_pixel() -> None:
    image = torch.arange(48, dtype=torch.uint8).reshape(1, 3, 4, 4)
    require_equal(image, [{"scale_factor": 2}, {"size": 7}, {"size": 3, "mode": "nearest-exact"}])
