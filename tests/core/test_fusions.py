"""Facts of a fusion, and what is written in lines of its script and code."""

import pytest

from tuner.core import fusions
from tuner.core.fusion_facts import FusionFacts
from tuner.core.packings import WeightPacking, packings_comment, packings_in

TEXT = "func.func @fusion() {"


def test_a_fusion_without_facts_has_no_loops_and_variables_name_the_others() -> None:
    facts = FusionFacts((4, 16, 8), 2, 1, 2, 1, 128)
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
    assert dict(facts.variables()) == counted | others
    assert dict(FusionFacts().variables())["inner_rows"] == 1


@pytest.mark.parametrize(
    ("band", "scores"), [((-3, 0), 4 + 3 + 2 + 1), ((-1, 1), 2 + 3 + 3 + 3), ((-9, 9), 4 * 5)]
)
def test_hidden_scores_of_an_attention_are_not_counted(band: tuple[int, int], scores: int) -> None:
    facts = FusionFacts(visible=band)
    assert (facts.visible_scores(4, 5), dict(facts.variables())["masked"]) == (scores, 1)
    assert FusionFacts().visible_scores(4, 5) == 20


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
