"""The benchmark of dynamic sizes: its object is right, and holds the weights of one program."""

import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim  # noqa: E402

import tuner.torch  # noqa: E402
from benchmarks import dynamic_sizes  # noqa: E402
from benchmarks.decoder_layers import FLOAT, HIDDEN, decoder  # noqa: E402

pytestmark = [pytest.mark.mlir, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_a_dynamic_layer_is_right_and_holds_weights_once() -> None:
    module = decoder(FLOAT, 1, torch.float32)
    shapes = ({0: Dim("rows", min=1, max=8)},)
    dynamic = tuner.torch.compile(module, (torch.randn(7, HIDDEN),), dynamic_shapes=shapes)
    result = dynamic_sizes.measured(module, dynamic, 3, 0.2)
    assert result["error_to_eager"] < 1e-5
    assert dynamic_sizes.family_of(dynamic).sizes == (4, 8)
    assert 0.9 < result["weights_over_static"] < 1.3
    assert dynamic_sizes.text_of(result).startswith("3 rows: static ")
