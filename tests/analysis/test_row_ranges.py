"""Ranges of rows: what is tuned, and that the calls of a cover compute each row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.analysis.row_ranges import RowBlock, RowCover, RowRange, row_cover, smoothed_blocks, stored_range
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_row_range, parse_shape

RANGE = RowRange(Matmul(300, 64, 32))


def test_powers_of_two_and_both_ends_are_tuned_each_for_as_many_rows() -> None:
    assert RANGE.tuned_rows == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 300)
    assert RowRange(Matmul(1000, 64, 32), 100).tuned_rows[-4:] == (192, 256, 512, 1000)
    first, *_, last = RANGE.tuned_problems
    assert (first.problem.shape, first.count) == ("1x64x32", 300)
    assert (last.problem, last.count) == (RANGE.problem, 1)
    assert {each.name for each in RANGE.tuned_problems} == {RANGE.text}


def test_a_range_is_stored_as_its_text() -> None:
    problems = [each.problem for each in RANGE.tuned_problems]
    assert RANGE.text == "1..300x64x32"
    assert stored_range(RANGE.text, problems) == RANGE
    assert stored_range("shapes.yaml", problems) is None
    assert parse_row_range("8x8x8") is None
    assert parse_row_range("7..9X8X8") == (7, "9x8x8")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("?x64x32", "the range of m is missing", "matmul 1..4096x64x32"),
        ("64x1..9x32", "m alone, the number of rows, may be a range", "matmul 1..4096x512x128"),
        ("64x?x32", "m alone", "matmul 1..4096x512x128"),
        ("2x1..9x4x4", "m alone", "matmul 1..4096x512x128"),
    ],
)
def test_other_dynamic_sizes_are_refused_with_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        parse_row_range(text)
    assert refused.value.hint == hint


def test_a_range_is_no_shape_of_one_problem() -> None:
    with pytest.raises(UsageError, match=r"found the range 1\.\.9x8x8, allowed MxNxK") as refused:
        parse_shape("1..9x8x8")
    assert "tuner tune matmul 1..9x8x8" in refused.value.hint


@pytest.mark.parametrize(
    ("problem", "least", "message"),
    [
        (Matmul(8, 8, 8, layout="tn"), 1, "layout tn stores A by columns"),
        (BatchMatmul(2, 8, 8, 8), 1, "allowed a matmul without packed weights"),
        (Matmul(8, 8, 8, weights="constant"), 1, "allowed a matmul without packed weights"),
        (Matmul(8, 8, 8), 8, r"found 8\.\.8, allowed such as 1\.\.8"),
        (Matmul(8, 8, 8), 0, r"found 0\.\.8"),
        (Matmul(65_537, 8, 8), 1, "allowed up to 65536"),
        ("8x8x8", 1, "found '8x8x8'"),
    ],
)
def test_what_has_no_range_is_refused(problem: Problem, least: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RowRange(problem, least)


def cover_of(blocks: dict[int, float], problem: Problem) -> RowCover:
    return row_cover([RowBlock(rows, time_s) for rows, time_s in blocks.items()], problem)


BLOCKS = st.dictionaries(st.integers(1, 40), st.floats(1e-6, 1e-3), min_size=1, max_size=6)


@given(BLOCKS, st.integers(1, 90), st.sampled_from(["none", "accumulate"]))
def test_each_row_is_computed_and_only_once_where_c_is_read(
    blocks: dict[int, float], rows: int, epilogue: str
) -> None:
    cover = cover_of(blocks, Matmul(60, 16, 16, epilogue=epilogue))
    computed: list[int] = []
    for call in cover.calls(rows):
        size = cover.blocks[call.block].rows
        assert 0 < call.rows <= size
        assert call.rows == size or call.row + call.rows == rows  # padding is at the end alone
        computed += range(call.row, call.row + call.rows)
    assert set(computed) == set(range(rows))
    assert epilogue == "none" or len(computed) == rows


@given(BLOCKS, st.integers(1, 60))
def test_no_cover_of_one_block_takes_less_time(blocks: dict[int, float], rows: int) -> None:
    cover = cover_of(blocks, Matmul(60, 16, 16))
    copied_s = cover.time_s(rows)
    for size, time_s in blocks.items():
        if size <= rows:
            assert copied_s <= -(-rows // size) * time_s * (1 + 1e-6)


@given(st.floats(0, 1e-3), st.floats(1e-7, 1e-4))
def test_times_on_a_line_stay_as_they_are(of_call_s: float, of_row_s: float) -> None:
    blocks = [RowBlock(rows, of_call_s + of_row_s * rows) for rows in RANGE.tuned_rows]
    for before, after in zip(blocks, smoothed_blocks(blocks), strict=True):
        assert after.rows == before.rows
        assert after.time_s == pytest.approx(before.time_s, rel=1e-6)


def test_unreliable_times_of_long_calls_do_not_split_an_m_into_short_ones() -> None:
    busy = {rows: (6e-4 + 1.1e-4 * rows) * (1 if rows <= 24 else 2.3) for rows in RANGE.tuned_rows}
    blocks = [RowBlock(rows, time_s) for rows, time_s in busy.items()]
    assert len(row_cover(blocks, RANGE.problem).calls(192)) == 8
    assert len(row_cover(blocks, RANGE.problem, is_reliable=False).calls(192)) == 1
    falling = smoothed_blocks([RowBlock(1, 1e-3), RowBlock(2, 1e-6)])
    assert [block.time_s for block in falling] == pytest.approx([5e-4, 1e-3], rel=1e-2)


def test_padding_costs_a_copy_and_a_block_over_computed_rows_costs_none() -> None:
    cover = cover_of({32: 1e-3, 64: 1.01e-3}, Matmul(128, 4096, 4096))
    assert [(call.row, call.rows) for call in cover.calls(33)] == [(0, 33)]
    assert [(call.row, call.rows) for call in cover.calls(100)] == [(0, 64), (36, 64)]
    assert cover.time_s(100) == pytest.approx(2.02e-3)
    few_flop = cover_of({32: 1e-6, 64: 1.9e-6}, Matmul(128, 4096, 4096))
    assert [(call.row, call.rows) for call in few_flop.calls(33)] == [(0, 32), (1, 32)]
