"""A row of the matmul benchmark whose baseline failed says why, and the others still have a mean."""

from typing import Any

from benchmarks.cpu_matmul import _line, _summary

WRONG: dict[str, Any] = {"shape": "100x100x100", "failure": "onednn: 1213 of 10000 elements are wrong"}


def test_the_mean_is_that_of_the_rows_with_a_ratio() -> None:
    rows: list[dict[str, Any]] = [{"shape": "4x4x4", "ratio": 2.0}, WRONG, {"shape": "8x8x8", "ratio": 0.5}]
    assert _summary(rows) == {"geomean": 1.0, "worst": 0.5, "failed": 1}
    assert _summary([WRONG]) == {"failed": 1}


def test_the_line_of_a_row_without_a_ratio_is_its_reason() -> None:
    assert _line(WRONG).split() == ["100x100x100", *WRONG["failure"].split()]
