"""``make test`` runs a part of each long table of cases, the same one in each process and each run."""

from tests.default_suite import DRAWN, left_out


def names(function: str, count: int, drawn: int | None = None) -> dict[str, int | None]:
    return {f"tests/test_x.py::{function}[{number}]": drawn for number in range(count)}


def test_of_a_long_table_a_few_cases_are_drawn_in_any_order_or_as_many_as_its_function_says() -> None:
    long_table, short = names("test_long", 100), names("test_short", DRAWN) | {"tests/test_x.py::test": None}
    found = left_out(long_table | short)
    assert found < long_table.keys()
    assert len(found) == 100 - DRAWN
    assert found == left_out(dict(reversed((long_table | short).items())))
    assert len(left_out(names("test_costly", 3, drawn=1))) == 2
    assert len(left_out(names("test_promises", 20, drawn=10))) == 10
