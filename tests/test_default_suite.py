"""``make test`` runs a part of each long table of cases, the same one in each process and each run."""

from tests.default_suite import CASES, DRAWN, left_out


def names(function: str, count: int) -> list[str]:
    return [f"tests/test_x.py::{function}[{number}]" for number in range(count)]


def test_of_a_long_table_six_cases_are_drawn_and_of_others_all() -> None:
    long_table, short = names("test_long", 100), [*names("test_short", CASES), "tests/test_x.py::test_alone"]
    found = left_out([*long_table, *short])
    assert found < set(long_table)
    assert len(found) == 100 - DRAWN


def test_the_same_cases_are_drawn_in_any_order() -> None:
    cases = names("test_long", 50)
    assert left_out(cases) == left_out(reversed(cases))
