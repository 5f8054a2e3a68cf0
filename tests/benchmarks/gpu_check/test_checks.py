import pytest

from benchmarks.gpu_check.checks import CheckOutcome, PartResult, Row, evaluated, failed, passed, skipped


def part(*outcomes: CheckOutcome, left_out: tuple[str, ...] = ()) -> PartResult:
    rows = tuple(Row(f"check {number}", outcome, 0.5) for number, outcome in enumerate(outcomes))
    return PartResult("strategies", rows, left_out, 2.0, 10.0)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="status: found 'fine', allowed passed, failed, skipped"):
        CheckOutcome("fine")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (part(passed(), skipped("no tool")), "passed"),
        (part(passed(), failed("wrong"), skipped("no tool")), "failed"),
        (part(skipped("no tool")), "skipped"),
        (part(passed(), left_out=("late",)), "passed"),
        (part(left_out=("late",)), "failed"),
    ],
)
def test_a_part_is_as_good_as_its_worst_check(result: PartResult, status: str) -> None:
    assert result.status == status


def test_failures_come_first_and_equal_reasons_once() -> None:
    result = part(skipped("no tool"), failed("wrong"), skipped("no tool"), left_out=("a", "b"))
    assert result.words == ("FAILED  check 1: wrong", "skipped 2: no tool", "no time for 2: a, b")


def test_a_row_is_reported_with_its_facts() -> None:
    row = Row("naive", evaluated(False, "wrong", elements=3), 0.12345)
    given = {"status": "failed", "words": "wrong", "seconds": 0.123, "elements": 3}
    assert row.document("strategies") == {"part": "strategies", "check": "naive", **given}
