"""Libraries merged: of two schedules of one contraction the faster stays."""

from dataclasses import replace

import pytest

from tests.library.values import entry
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.library.library import LibraryText, library_text, merged, read_entries

pytestmark = pytest.mark.mlir

PROBLEM, OTHER = Matmul(64, 128, 128), Matmul(24, 64, 32)
# One row at a time against four, both within 16 registers: some times slower on every processor.
SLOW, FAST = entry(PROBLEM, trial=1, tile_m=1, tile_n=16), entry(PROBLEM, trial=2, tile_m=4, tile_n=16)


def library(name: str, *entries: object) -> LibraryText:
    return LibraryText(name, library_text(entries))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_faster_of_two_stays(is_turned: bool) -> None:
    slow, fast = library("slow.mlir", SLOW, entry(OTHER)), library("fast.mlir", FAST)
    found = merged((fast, slow) if is_turned else (slow, fast))
    assert {each.trial for each in read_entries(found.text, "merged") if each.problem == PROBLEM} == {2}
    assert found.entries == 2
    (duel,) = found.duels
    assert (duel.kept, duel.left) == ("fast.mlir", "slow.mlir")
    assert duel.slowdown.median > 0.2
    line_start = "matmul 64x128x128 f32 nn none: from fast.mlir; that of slow.mlir: "
    assert duel.line.startswith(
        (f"{line_start}+", f"{line_start}unknown, the 99 % interval")
    )  # the latter on a busy machine


def test_equal_schedules_and_other_problems_are_not_timed() -> None:
    found = merged((library("a.mlir", FAST), library("b.mlir", replace(FAST, trial=9), entry(OTHER))))
    assert (found.entries, found.duels) == (2, ())
    assert [each.trial for each in read_entries(found.text, "merged")] == [1, 2]


def test_libraries_of_two_machines_are_refused() -> None:
    elsewhere = replace(entry(OTHER), machine=replace(FAST.machine, name="another"))
    with pytest.raises(
        UsageError, match=r"a.mlir is of '.*' and b.mlir of 'another': a library is of one machine"
    ):
        merged((library("a.mlir", FAST), library("b.mlir", elsewhere)))


def test_schedules_of_another_machine_cannot_be_compared_here() -> None:
    slow, fast = (replace(each, machine=replace(each.machine, name="another")) for each in (SLOW, FAST))
    with pytest.raises(
        UsageError, match="several libraries have a schedule; only 'another' can compare them"
    ):
        merged((library("a.mlir", slow), library("b.mlir", fast)))
