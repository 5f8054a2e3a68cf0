"""Errors about payloads: the way out of a dynamic number of rows."""

from tuner.programs.payload_errors import row_range_hint

TEXT = "linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x48xf32>) outs(%c : tensor<?x48xf32>)"


def test_a_payload_with_dynamic_rows_has_the_command_that_tunes_a_range() -> None:
    assert row_range_hint(TEXT) == "tuner tune matmul 1..4096x48x32"
    assert row_range_hint(TEXT.replace("?x32", "4x32")) == ""
    assert row_range_hint(TEXT.replace("32x48", "?x48")) == ""
