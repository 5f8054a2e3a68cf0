"""Facts of a fusion are read from the attributes of its function."""

import pytest

from tuner.core import fusions
from tuner.core.fusions import FusionFacts, WeightPacking, facts_of, packings_comment, packings_in

TEXT = """func.func @group(%a: memref<4x8xf32>) attributes {tuner.bytes = 128 : i64,
  tuner.contractions = 2 : i64, tuner.copy = 1 : i64, tuner.loops = array<i64: 4, 16, 8>,
  tuner.transposed = 2 : i64, tuner.weights = 1 : i64} {"""


def test_attributes_are_read_and_a_text_without_them_has_no_loops() -> None:
    assert facts_of(TEXT) == FusionFacts((4, 16, 8), 2, 1, 2, 1, 128)
    counted = {"loops": 3, "inner_rows": 16, "inner_columns": 8, "contractions": 2, "weights": 1}
    others = {
        "transposed": 2,
        "copy": 1,
        "strided": 0,
        "dimensions": "",
        "channels": 0,
        "stride": 0,
        "masked": 0,
        "weight_bits": 0,
        "group_size": 0,
        "zero_points": 0,
        "integers": 0,
    }
    assert dict(facts_of(TEXT).variables()) == counted | others
    rows = "{tuner.reduced = 1 : i64, tuner.rows = array<i64: 16, 64, 8>, tuner.strided = 1 : i64}"
    found = facts_of(rows)
    assert (found.rows, found.reduced, found.strided) == ((16, 64, 8), 1, 1)
    assert facts_of("func.func @group() {") == FusionFacts((), 0, 0, 0, 0, 0)
    assert facts_of("attributes {tuner.loops = array<i64>}").loops == ()
    assert dict(facts_of("").variables())["inner_rows"] == 1


@pytest.mark.parametrize(
    ("band", "scores"), [("-3, 0", 4 + 3 + 2 + 1), ("-1, 1", 2 + 3 + 3 + 3), ("-9, 9", 4 * 5)]
)
def test_hidden_scores_of_an_attention_are_not_counted(band: str, scores: int) -> None:
    facts = facts_of(f"func.func @group(%m: memref<4x5xf32> {{tuner.visible = array<i64: {band}>}}) {{")
    assert (facts.visible_scores(4, 5), dict(facts.variables())["masked"]) == (scores, 1)
    assert facts_of("").visible_scores(4, 5) == 20


@pytest.mark.parametrize(("strides", "stride"), [("[2, 3]", 3), ("2", 2), ("1", 1)])
def test_the_stride_of_a_convolution_is_the_last_of_its_strides(strides: str, stride: int) -> None:
    dimensions = 'func.func @group() attributes {tuner.dimensions = "nfHW"} {'
    text = f"{dimensions} linalg.conv {{dilations = dense<5> : tensor<2xi64>, strides = dense<{strides}>"
    assert facts_of(text).stride == stride


def test_a_tensor_has_bytes_a_short_hash_and_packings_that_are_written_in_a_line() -> None:
    assert len(fusions.text_hash(TEXT)) == 12
    assert fusions.text_hash(TEXT) != fusions.text_hash(TEXT + " ")
    assert (fusions.TensorType((3, 5), "f32").bytes, fusions.TensorType((), "f64").bytes) == (60, 8)
    assert WeightPacking(4).matrix_shape((3, 8)) == (3, 8)
    assert WeightPacking(4, order=(2, 3, 1, 0)).matrix_shape((64, 16, 3, 5)) == (240, 64)
    assert packings_comment(SEVERAL) == "// packings: - 48x1 16x2 32x1:2:3:1:0\n"
    assert packings_in("module {\n}\n") == ()


# Values of a program in fusions.

SEVERAL = (None, WeightPacking(48), WeightPacking(16, 2), WeightPacking(32, order=(2, 3, 1, 0)))


def test_packings_are_read_back() -> None:
    several: tuple[tuple[WeightPacking | None, ...], ...] = (
        *((), (None,), SEVERAL, (WeightPacking(64), None)),
        (WeightPacking(32, 2, depth=32), WeightPacking(32, 2, order=(1, 0), depth=32)),
        (WeightPacking(32, 2, order=(2, 3, 1, 0), depth=2, run=3), WeightPacking(32, 2, depth=32, run=3)),
        (WeightPacking(64, 4, depth=64, unsigned=True), None, WeightPacking(16, 4, unsigned=True)),
    )
    for packings in several:
        assert packings_in(packings_comment(packings) + "module {\n}\n") == packings
