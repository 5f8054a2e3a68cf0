"""The benchmark of decoder layers: its module is right by each format, and a row has what it says."""

import pytest

torch = pytest.importorskip("torch")

from benchmarks import decoder_layers  # noqa: E402

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize(("group", "columns"), [(0, 1), (32, 2)])
def test_a_quantized_layer_is_the_product_with_scaled_integers(group: int, columns: int) -> None:
    torch.manual_seed(0)
    layer = decoder_layers.QuantizedLinear(torch.float32, 4, group, 3, 64)
    scales = layer.scales.repeat_interleave(64 // columns, dim=1)
    assert scales.shape == (3, 64)
    x = torch.randn(2, 64)
    assert torch.allclose(layer(x), x @ (layer.integers * scales).t(), atol=1e-5)
    assert layer.integers.min() >= -8
    assert layer.integers.max() < 8


@pytest.mark.slow
def test_layers_are_right_by_each_format_and_ratios_are_over_float() -> None:
    row = decoder_layers.measured(["float", "int4-g128"], 1, 1, "float32", 0.2)
    assert max(row["error_to_eager"].values()) < 1e-5
    assert row["over_float"]["float"]["median"] == 1
    assert row["weight_bytes"]["int4-g128"] < row["weight_bytes"]["float"] / 7
    line = decoder_layers.text_of(row)
    assert line.startswith("float32, 1 rows, 1 layers: float ")
