import pytest

from tests.output.report.parsed import parsed
from tuner.output.report.bars import WHISKER, WIDTH, Bar, bars


def test_a_bar_is_as_long_as_its_share() -> None:
    drawn = parsed(bars((Bar("tile_m", 0.25, "25 %"), Bar("tile_n", 1.0, "100 %", "failed"))))
    assert [float(each["width"]) for each in drawn.of("rect", "ours")] == [0.25 * WIDTH]
    assert [float(each["width"]) for each in drawn.of("rect", "failed")] == [WIDTH]
    assert drawn.text == "tile_m25 %tile_n100 %"


@pytest.mark.parametrize(
    ("interval", "x", "width"),
    [
        ((0.4, 0.6), 400, 200),
        ((0.5, 0.5), 500 - WHISKER / 2, WHISKER),
        ((1.0, 1.0), WIDTH - WHISKER, WHISKER),
    ],
)
def test_an_interval_is_seen_however_narrow(interval: tuple[float, float], x: float, width: float) -> None:
    (drawn,) = parsed(bars((Bar("a", 0.5, "", interval=interval),))).of("rect", "interval")
    assert (float(drawn["x"]), float(drawn["width"])) == (x, width)
