"""Assertions in front of loops: only where each iteration would check the same."""

import pytest

from tests.mlir.kernels import changed
from tests.texts import text_beside
from tuner.mlir.cpu.leading_assertions import lead_loops_with_assertions

LOAD = "%index = memref.load %indices[{at}] : memref<8xindex>"
CHECK = "%is_inside = arith.cmpi ult, %index, %c8 : index"
ASSERT = 'cf.assert %is_inside, "outside"'
STORE = "memref.store %index, {to}[%i] : memref<8xindex>"
STEADY = (LOAD.format(at="%c1"), CHECK, ASSERT, STORE.format(to="%out"))
OF_ITERATION = (LOAD.format(at="%i"), CHECK, ASSERT, STORE.format(to="%out"))
WRITTEN = (LOAD.format(at="%c1"), CHECK, ASSERT, STORE.format(to="%indices"))
GUARDED = (
    "%is_first = arith.cmpi ult, %i, %n : index",
    'cf.assert %is_first, "late"',
    "%index = arith.divui %c8, %n : index",
    CHECK,
    ASSERT,
)
CONDITIONAL = ("%is_first = arith.cmpi eq, %i, %c0 : index", "scf.if %is_first {", *STEADY, "}")


def moved(text: str) -> tuple[str, str]:
    """Returns a module before and after the pass."""
    before, after, _ = changed(lead_loops_with_assertions, text)
    return before, after


def loop_of(*body: str, end: str = "%c8") -> str:
    return text_beside(__file__, "LOOP").replace("BODY", "\n".join(body)).replace("END", end)


def test_the_index_of_a_row_is_checked_once_per_row() -> None:
    _, after = moved(text_beside(__file__, "ROWS"))
    rows, columns = (after.index(f"scf.for %arg{number}") for number in (3, 4))
    assert rows < after.index("memref.load %arg1[%arg3]") < after.index("cf.assert") < columns
    assert columns < after.index("memref.load %arg0")


def test_what_no_loop_changes_is_checked_before_all_loops() -> None:
    _, after = moved(loop_of(*STEADY))
    assert after.index("memref.load %arg0[%c1]") < after.index("cf.assert") < after.index("scf.for")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(loop_of(*OF_ITERATION), id="of an iteration"),
        pytest.param(loop_of(*WRITTEN), id="written"),
        pytest.param(loop_of(*GUARDED), id="guarded by an assertion before"),
        pytest.param(loop_of(*CONDITIONAL), id="not in each iteration"),
        pytest.param(loop_of(*STEADY, end="%n"), id="perhaps no iteration"),
        pytest.param(loop_of(*STEADY, end="%c0"), id="no iteration"),
    ],
)
def test_other_assertions_stay(text: str) -> None:
    before, after = moved(text)
    assert after == before
