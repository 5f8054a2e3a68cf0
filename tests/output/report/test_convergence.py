import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.output.report.parsed import Parsed, parsed
from tests.trials import measurement, run, trial
from tuner.core.errors import Failure, Stage
from tuner.core.record import Measurement
from tuner.core.runs import StoredTrial
from tuner.output.report import convergence
from tuner.output.report.axis import TICKS
from tuner.output.report.convergence import FINALS, HEIGHT, WIDTH, convergence_of

WRONG = Failure(Stage.VERIFY, "wrong")


def drawing(trials: tuple[StoredTrial, ...], baseline_s: float | None = None) -> Parsed:
    of = run(baseline_s)
    drawn = convergence_of(of, trials)
    assert drawn is not None
    return parsed(convergence.convergence(drawn, of))


def drawn(*times_s: float | None, baseline_s: float | None = None) -> Parsed:
    trials = tuple(trial(n, WRONG if s is None else measurement(s)) for n, s in enumerate(times_s))
    return drawing(trials, baseline_s)


def best_line(of: Parsed) -> list[tuple[str, float]]:
    """Returns the commands of the path of the best so far; the first one is the start's x."""
    (path,) = of.of("path", "best")
    start, rest = re.fullmatch(r"M(\S+) (.*)", path["d"]).groups()  # type: ignore[union-attr]
    return [("M", float(start)), *((c, float(v)) for c, v in re.findall(r"([HV])([\d.]+)", rest))]


def dots(of: Parsed) -> list[dict[str, str]]:
    return [each for each in of.of("circle") if each["r"] == "2.5"]


def test_the_line_is_a_staircase_that_only_rises_and_reaches_the_edge() -> None:
    found = drawn(4e-6, 2e-6, None, 3e-6, 1e-6)
    line = best_line(found)
    assert [x for command, x in line if command in "MH"] == [72, 216, 648, WIDTH]
    heights = [y for command, y in line if command == "V"]
    assert heights == sorted(heights, reverse=True)
    assert [each["data-t"] for each in dots(found)] == ["100", "101", "104", "103"]
    assert found.of("path", "failed")[0]["d"].startswith("M360 ")
    assert f"best {2 * 8**3 / 1e-6 / 1e9:.4g} GFLOP/s" in found.text
    assert "5 trials, 1 failed" in found.text


def test_the_baseline_fits_into_the_drawing() -> None:
    found = drawn(4e-6, baseline_s=1e-6)
    (line,) = found.of("line", "baseline")
    assert 0 < float(line["y1"]) < float(dots(found)[0]["cy"]) < HEIGHT
    assert "Dashed: FakeBLAS 1.0." in found.text
    assert drawn(4e-6).of("line", "baseline") == []


def test_phases_are_bands_that_are_named_where_there_is_room() -> None:
    found = drawn(4e-6, 3e-6)
    (band,) = found.of("rect", "band-0")
    assert (float(band["x"]), float(band["width"])) == (0, WIDTH)
    assert "random" in found.text
    assert "Bands: random 0 to 1." in found.text


def test_finalists_have_a_band_of_their_own_with_their_second_time() -> None:
    timed = replace(trial(0, measurement(2e-3)), final=Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3)))
    found = drawing((timed, trial(1, measurement(2e-3))))
    (ring,) = [each for each in found.of("circle") if each["r"] == "3.5"]
    assert WIDTH < float(ring["cx"]) < WIDTH + FINALS
    assert float(ring["cy"]) < float(dots(found)[0]["cy"])
    assert "Rings: the finalists" in found.text
    assert "Rings" not in drawn(1e-3).text


def test_a_proposal_without_an_outcome_is_no_dot() -> None:
    found = drawing((trial(0, measurement(1e-3)), trial(1, None)))
    assert len(dots(found)) == 1
    assert "2 trials, 0 failed" in found.text


@pytest.mark.parametrize("trials", [(), (trial(0, WRONG),), (trial(0, None),)])
def test_without_times_there_is_no_curve(trials: tuple[StoredTrial, ...]) -> None:
    assert convergence_of(run(), trials) is None


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1, max_size=60), st.none() | st.floats(1e-9, 1e3))
def test_everything_is_drawn_inside(times_s: list[float | None], baseline_s: float | None) -> None:
    found = drawn(1.0, *times_s, baseline_s=baseline_s)
    x = [float(each["cx"]) for each in dots(found)] + [v for c, v in best_line(found) if c in "MH"]
    y = [float(each["cy"]) for each in dots(found)] + [v for c, v in best_line(found) if c == "V"]
    y += [float(each["y1"]) for each in found.of("line")]
    assert all(0 <= each <= WIDTH for each in x)
    assert all(0 <= each <= HEIGHT for each in y)
    assert 1 <= len(found.of("line", "grid")) <= 2 * TICKS


def test_a_long_run_is_thinned_out_but_not_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "DOTS", 10)
    times_s = [1e-3 - 1e-6 * (n // 7) for n in range(300)]
    found = drawn(*times_s, *([None] * 300))
    assert len(dots(found)) < 60
    assert found.of("path", "failed")[0]["d"].count("M") <= 10
    turns = {x for command, x in best_line(found) if command in "MH"} - {WIDTH}
    assert turns <= {float(each["cx"]) for each in dots(found)}
