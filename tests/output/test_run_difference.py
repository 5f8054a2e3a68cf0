from tuner.analysis.run_difference import Difference
from tuner.output.run_difference import SHOWN, run_difference_document, run_difference_lines

FOUND = [Difference(number, "row", "1", "2") for number in range(SHOWN + 2)]


def test_all_are_counted_and_the_first_ones_shown() -> None:
    lines = run_difference_lines(FOUND)
    assert lines[:2] == [f"differences  {SHOWN + 2}", "  trial 0: row: 1 in the first run, 2 in the second"]
    assert len(lines) == 1 + SHOWN
    assert run_difference_lines([]) == ["differences  0"]


def test_values_have_all() -> None:
    document = run_difference_document(FOUND)
    assert (document["differences"], len(document["found"])) == (SHOWN + 2, SHOWN + 2)
