"""Convolutions of volumes and transposed ones by plain ones: the same numbers as PyTorch's, in float64."""

import math
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tuner.core.fusions import CONVOLUTION as CONVOLUTION_KIND  # noqa: E402
from tuner.core.fusions import Fusion  # noqa: E402
from tuner.models.fusions.pipeline import FormedText, form_text  # noqa: E402
from tuner.models.run.fused_program import FusedFunction  # noqa: E402
from tuner.models.torch.convolutions import CONVOLUTION, PHASES_LIMIT, convolution  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402

pytestmark = pytest.mark.mlir


def forms(draw: st.DrawFn) -> Any:
    dims, groups, is_transposed = (
        draw(st.integers(1, 3)),
        draw(st.sampled_from((1, 1, 2))),
        draw(st.booleans()),
    )

    def sizes(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims))

    channels, filters = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 2))
    window, stride, dilation, padding = sizes(1, 4), sizes(1, 3), sizes(1, 3), sizes(0, 3)
    more = [
        draw(st.integers(0, max(pair) - 1)) * is_transposed for pair in zip(stride, dilation, strict=True)
    ]
    pair = (channels, filters // groups) if is_transposed else (filters, channels // groups)
    numbers = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, generator=numbers, dtype=torch.float64)
        for shape in ((2, channels, *sizes(1, 7)), (*pair, *window), (filters,))
    )
    bias = bias if draw(st.booleans()) else None
    return (x, weight, bias, stride, padding, dilation, is_transposed, more, groups)


@given(st.composite(forms)())
def test_each_form_gives_the_numbers_of_pytorch(form: Any) -> None:
    try:
        expected = CONVOLUTION(*form)
    except RuntimeError:  # a window larger than the padded input
        assume(False)
    assume(expected.numel())
    found = convolution(*form)
    assume(found is not NotImplemented)
    assert found.is_contiguous()
    torch.testing.assert_close(found, expected)


def test_what_has_a_schedule_or_too_many_phases_is_left_to_torch_mlir() -> None:
    image, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    for stride, is_transposed in ((1, False), (2, False), (1, True), (math.isqrt(PHASES_LIMIT) + 1, True)):
        given = ([stride], [0], [1], is_transposed, [0], 1)
        assert convolution(image, weight, None, *given) is NotImplemented


@pytest.mark.parametrize(
    ("size", "form", "window"),
    [
        ((6, 6), {"padding": 12, "dilation": 12}, "1x1"),
        ((13, 12), {"padding": 12, "dilation": 12}, "3x1"),
        ((2, 3), {"padding": 1, "stride": 2}, "2x3"),
        ((4, 4), {"padding": (1, 2), "stride": 5}, "2x3"),  # of columns, those at the ends read
        ((1, 2), {"padding": 1, "groups": 2}, "1x3"),
        ((5, 7), {"padding": 1, "stride": 2}, "3x3"),
        ((3, 3), {"stride": 4}, "3x3"),
    ],
)
def test_ends_of_a_window_that_only_read_padding_are_cut_off(
    size: tuple[int, int], form: Any, window: str
) -> None:
    module = torch.nn.Conv2d(4, 8, 3, **form).eval()
    text = export_module(module, (torch.ones(1, 4, *size),)).text
    assert re.findall(r"linalg.conv_2d.*x(\dx\d)xf32>\) outs", text) == [window]


@pytest.mark.parametrize(
    ("module", "shape", "result"),
    [
        (torch.nn.Conv1d(4, 8, 3, groups=2), (1, 4, 9), "1x2x4x1x7"),
        (torch.nn.Conv1d(4, 4, 3, padding=1, groups=4), (1, 4, 9), "1x4x1x9"),
        (torch.nn.Conv2d(4, 8, (3, 1), stride=(2, 1)), (1, 4, 9, 1), "1x8x4"),
        (torch.nn.Conv2d(4, 8, (3, 1), groups=2), (1, 4, 9, 1), "1x2x4x1x7"),
        (torch.nn.Conv2d(4, 8, (3, 1), padding=(0, 1)), (1, 4, 9, 1), "1x8x7x3"),
        (torch.nn.Conv1d(4, 8, 1, groups=2), (1, 4, 1), "1x2x4x1x1"),
    ],
)
def test_pixels_of_one_row_or_column_lie_along_the_last_dimension(
    module: Any, shape: tuple[int, ...], result: str
) -> None:
    text = export_module(module.eval(), (torch.ones(shape),)).text
    assert re.findall(r"linalg.\w*conv_\dd.*-> tensor<([\dx]*)xf32>", text) == [result]


def test_a_window_that_only_reads_padding_is_left_as_it_is() -> None:
    image, weight = torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2)
    assert convolution(image, weight, None, [2], [2], [3], False, [0], 1) is NotImplemented


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (torch.nn.Conv2d(4, 8, 3, padding=1).half(), (1, 4, 7, 9)),
        (torch.nn.Conv3d(2, 4, 3, stride=(2, 1, 1), padding=1), (1, 2, 5, 6, 9)),
        (torch.nn.ConvTranspose3d(2, 4, 3, stride=2), (1, 2, 2, 3, 4)),
        (torch.nn.Sequential(torch.nn.ConvTranspose2d(4, 8, 2, stride=2), torch.nn.SiLU()), (2, 4, 5, 8)),
        (torch.nn.ConvTranspose1d(4, 8, 4, stride=2, padding=1, groups=2), (2, 4, 9)),
        (torch.nn.Conv2d(4, 8, 3, stride=2, padding=(12, 1), dilation=(12, 1)), (1, 4, 6, 2)),
    ],
    ids=["f16", "volumes", "transposed volumes", "one convolution for all phases", "groups", "cut window"],
)
def test_they_have_schedules(module: Any, shape: tuple[int, ...]) -> None:
    dtype = next(module.parameters()).dtype
    x = torch.linspace(-2, 2, math.prod(shape)).reshape(shape).to(dtype)
    program = tuner.torch.compile(module.eval(), (x,))
    assert isinstance(program.function, FusedFunction)
    assert all(each.strategy for each in program.function.code.fusions)
    with torch.no_grad():
        torch.testing.assert_close(program(x), module(x))


def last_fusion(module: Any, *inputs: Any) -> Fusion:
    formed = form_text(export_module(module, inputs).text, None)
    assert isinstance(formed, FormedText)
    return formed.program.fusions[-1]


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize(("padding", "mark"), [((1, 1, 0), "1, 1"), ((0, 1, 1), ""), ((2, 0, 0), "2, 2")])
def test_planes_that_padding_adds_to_a_volume_are_marked_as_zeros(
    channels: int, padding: tuple[int, int, int], mark: str
) -> None:
    module = torch.nn.Conv3d(channels, 8, 3, padding=padding).eval()
    fusion = last_fusion(module, torch.ones(1, channels, 4, 5, 6))
    assert fusion.kind == CONVOLUTION_KIND
    assert re.findall(r"zero_planes = array<i64: (\d, \d)>", fusion.text) == [mark] * (mark != "")


def test_planes_of_another_number_are_not_marked() -> None:
    module = torch.nn.Sequential(torch.nn.ConstantPad3d(1, 2.0), torch.nn.Conv3d(3, 8, 3)).eval()
    fusion = last_fusion(module, torch.ones(1, 3, 4, 5, 6))
    assert fusion.kind == CONVOLUTION_KIND
    assert "zero_planes" not in fusion.text
