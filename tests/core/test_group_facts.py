"""Facts of a fusion are read from the attributes of its function."""

import pytest

from tuner.core.fusions import FusionFacts, facts_of, text_hash

TEXT = """func.func @group(%a: memref<4x8xf32>) attributes {tuner.bytes = 128 : i64,
  tuner.contractions = 2 : i64, tuner.copy = 1 : i64, tuner.loops = array<i64: 4, 16, 8>,
  tuner.transposed = 2 : i64, tuner.weights = 1 : i64} {"""


def test_attributes_are_read() -> None:
    assert facts_of(TEXT) == FusionFacts((4, 16, 8), 2, 1, 2, 1, 128)
    assert dict(facts_of(TEXT).variables()) == {
        "loops": 3,
        "inner_rows": 16,
        "contractions": 2,
        "weights": 1,
        "transposed": 2,
        "copy": 1,
        "dimensions": "",
        "channels": 0,
        "stride": 0,
    }


@pytest.mark.parametrize(("strides", "stride"), [("[2, 3]", 3), ("2", 2), ("1", 1)])
def test_the_stride_of_a_convolution_is_the_last_of_its_strides(strides: str, stride: int) -> None:
    dimensions = 'func.func @group() attributes {tuner.dimensions = "nfHW"} {'
    text = f"{dimensions} linalg.conv {{dilations = dense<5> : tensor<2xi64>, strides = dense<{strides}>"
    assert facts_of(text).stride == stride


def test_a_text_without_attributes_has_no_loops() -> None:
    assert facts_of("func.func @group() {") == FusionFacts((), 0, 0, 0, 0, 0)
    assert facts_of("attributes {tuner.loops = array<i64>}").loops == ()
    assert dict(facts_of("").variables())["inner_rows"] == 1


def test_a_hash_is_short_and_of_the_whole_text() -> None:
    assert len(text_hash(TEXT)) == 12
    assert text_hash(TEXT) != text_hash(TEXT + " ")
