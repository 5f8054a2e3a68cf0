"""``make test`` runs a part of each long table of cases, the same one in each process and each run."""

from tests.default_suite import CASES, DRAWN, left_out


def names(function: str, count: int, drawn: int | None = None) -> dict[str, int | None]:
    return {f"tests/test_x.py::{function}[{number}]": drawn for number in range(count)}


def test_of_a_long_table_six_cases_are_drawn_and_of_others_all() -> None:
    long_table, short = names("test_long", 100), names("test_short", CASES) | {"tests/test_x.py::test": None}
    found = left_out(long_table | short)
    assert found < long_table.keys()
    assert len(found) == 100 - DRAWN


def test_a_function_may_say_how_many_of_its_cases_are_drawn() -> None:
    assert len(left_out(names("test_costly", 3, drawn=1))) == 2
    assert len(left_out(names("test_promises", 20, drawn=10))) == 10


def test_the_same_cases_are_drawn_in_any_order() -> None:
    cases = names("test_long", 50)
    assert left_out(cases) == left_out(dict(reversed(cases.items())))
