"""Chooses the fastest of the libraries that a kernel may be compared with."""

from collections.abc import Sequence
from dataclasses import replace

from tuner.core.runs import Baseline, LibraryTime


def fastest_baseline(
    timed: Sequence[tuple[str, Baseline]], failed: Sequence[LibraryTime] = ()
) -> Baseline | None:
    """Returns the baseline of the least median time; None where no library was timed.

    Its ``libraries`` lists all of ``timed``, the fastest first, then ``failed``; () where there is one
    library in all. ``timed`` has pairs of a library's name ("mkl") and its time.
    """
    if not timed:
        return None
    ranked = sorted(timed, key=lambda each: each[1].measurement.median_s)
    fastest = ranked[0][1]
    if len(timed) + len(failed) == 1:
        return fastest
    return replace(fastest, libraries=(*(_time(*each) for each in ranked), *failed))


def _time(library: str, baseline: Baseline) -> LibraryTime:
    measurement = baseline.measurement
    return LibraryTime(library, baseline.name, measurement.median_s, measurement.interval_s)
