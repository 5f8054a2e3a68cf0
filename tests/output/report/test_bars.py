import pytest

from tuner.output.report.bars import WHISKER, WIDTH, Bar


def test_a_bar_is_as_long_as_its_share() -> None:
    assert Bar("tile_m", 0.25, "25 %").length == 0.25 * WIDTH
    assert Bar("tile_m", 1.0, "100 %").whisker is None


@pytest.mark.parametrize(
    ("interval", "x", "width"),
    [
        ((0.4, 0.6), 400, 200),
        ((0.5, 0.5), 500 - WHISKER / 2, WHISKER),
        ((1.0, 1.0), WIDTH - WHISKER, WHISKER),
    ],
)
def test_an_interval_is_seen_however_narrow(interval: tuple[float, float], x: float, width: float) -> None:
    assert Bar("a", 0.5, "", interval=interval).whisker == pytest.approx((x, width))
