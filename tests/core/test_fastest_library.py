"""The fastest of several libraries is the baseline; what the others took, or why they failed, is kept."""

from tuner.core.interfaces import fastest_baseline
from tuner.core.records import Measurement
from tuner.core.runs import Baseline, LibraryTime


def baseline(name: str, median_s: float) -> Baseline:
    return Baseline(name, 1, Measurement((median_s,), 1, median_s, (median_s, 2 * median_s)))


SLOW, FAST = ("blis", baseline("BLIS 1.0 skx", 2.0)), ("mkl", baseline("MKL 2026.2 avx512", 1.0))


def test_one_library_alone_is_no_choice() -> None:
    assert fastest_baseline([SLOW]) == SLOW[1]


def test_the_fastest_comes_first_and_failures_last() -> None:
    failed = LibraryTime("onednn", "", failure="exited with SIGSEGV")
    found = fastest_baseline([SLOW, FAST], [failed])
    assert found is not None
    assert (found.name, found.measurement) == ("MKL 2026.2 avx512", FAST[1].measurement)
    assert found.libraries == (
        LibraryTime("mkl", "MKL 2026.2 avx512", 1.0, (1.0, 2.0)),
        LibraryTime("blis", "BLIS 1.0 skx", 2.0, (2.0, 4.0)),
        failed,
    )


def test_the_only_one_that_works_lists_those_that_failed() -> None:
    failed = LibraryTime("onednn", "", failure="exited with SIGSEGV")
    found = fastest_baseline([SLOW], [failed])
    assert found is not None
    assert [each.library for each in found.libraries] == ["blis", "onednn"]


def test_without_a_time_there_is_no_baseline() -> None:
    assert fastest_baseline([], [LibraryTime("mkl", "", failure="exited with SIGSEGV")]) is None
