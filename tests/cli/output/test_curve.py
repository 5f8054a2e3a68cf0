from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trials import measurement, run, trial
from tuner.cli.output import curve
from tuner.cli.output.curve import Curve, curve_of
from tuner.core.errors import Failure, Stage
from tuner.core.record import Measurement
from tuner.core.runs import StoredTrial

WRONG = Failure(Stage.VERIFY, "wrong")


def drawn(*times_s: float | None, baseline_s: float | None = None) -> Curve:
    trials = tuple(trial(n, WRONG if s is None else measurement(s)) for n, s in enumerate(times_s))
    found = curve_of(run(baseline_s), trials)
    assert found is not None
    return found


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]


def test_the_line_is_a_staircase_that_only_rises_and_reaches_the_edge() -> None:
    found = drawn(4e-6, 2e-6, None, 3e-6, 1e-6)
    line = points(found.line)
    assert [x for x, _ in line] == [72, 216, 216, 648, 648, 720]
    assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)
    assert len(found.dots) == 4
    assert found.failed == (360.0,)
    assert found.best == pytest.approx(2 * 8**3 / 1e-6 / 1e9)


def test_the_baseline_fits_into_the_drawing() -> None:
    found = drawn(4e-6, baseline_s=1e-6)
    assert found.baseline_y is not None
    assert 0 < found.baseline_y < found.dots[0][1] < found.height
    assert drawn(4e-6).baseline_y is None


def test_a_proposal_without_an_outcome_is_no_dot() -> None:
    found = curve_of(run(None), (trial(0, measurement(1e-3)), trial(1, None)))
    assert found is not None
    assert (len(found.dots), found.trials) == (1, 2)


@pytest.mark.parametrize("trials", [(), (trial(0, WRONG),), (trial(0, None),)])
def test_without_times_there_is_no_curve(trials: tuple[StoredTrial, ...]) -> None:
    assert curve_of(run(), trials) is None


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1, max_size=60), st.none() | st.floats(1e-9, 1e3))
def test_everything_is_drawn_inside(times_s: list[float | None], baseline_s: float | None) -> None:
    found = drawn(1.0, *times_s, baseline_s=baseline_s)
    places = [*found.dots, *points(found.line), *((0, tick.at) for tick in found.y_ticks)]
    places += [(tick.at, 0) for tick in found.x_ticks] + [(0, found.baseline_y or 0)]
    assert all(0 <= x <= found.width and 0 <= y <= found.height for x, y in places)
    assert 1 <= len(found.x_ticks) <= 2 * curve.TICKS
    assert 1 <= len(found.y_ticks) <= 2 * curve.TICKS


def test_a_long_run_is_thinned_out_but_not_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "DOTS", 10)
    times_s = [1e-3 - 1e-6 * (n // 7) for n in range(300)]
    found = drawn(*times_s, *([None] * 300))
    assert len(found.dots) < 60
    assert len(found.failed) <= 10
    assert set(points(found.line)[:-1:2]) <= set(found.dots)


def test_first_timings_are_drawn_and_not_finals() -> None:
    final = replace(trial(0, measurement(2e-3)), final=Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3)))
    found = curve_of(run(None), (final,))
    assert found is not None
    assert found.best == pytest.approx(2 * 8**3 / 2e-3 / 1e9)
