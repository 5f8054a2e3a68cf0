from dataclasses import replace

import pytest

from tests.trials import finalist, measurement, run
from tuner.core.machine import Roofline
from tuner.output.report.drawing import HEIGHT, WIDTH
from tuner.output.report.roofline import roofline_of

PROBLEM = run().settings.problem
BEST = finalist(0, measurement(1e-3))
ROOF = Roofline(PROBLEM.flop / 0.5e-3, PROBLEM.bytes / 0.2e-3)


def test_both_times_are_points_within_the_drawing() -> None:
    drawn = roofline_of(run(2e-3), ROOF, BEST)
    best, baseline = map(drawn.y, drawn.speeds)
    assert 0 < best < baseline < HEIGHT
    assert 0 < drawn.x(drawn.intensity) < WIDTH
    assert all(0 <= y <= HEIGHT for y, _ in drawn.up)
    assert all(0 <= x <= WIDTH for x, _ in drawn.across)


def test_the_roof_is_above_what_is_slower_than_it() -> None:
    drawn = roofline_of(run(None), ROOF, BEST)
    heights = [float(y) for y in drawn.roofs[1:].split(" ")[1::2]]
    assert heights[0] > heights[1] == heights[2]
    assert heights[2] < drawn.y(drawn.speeds[0])


@pytest.mark.parametrize(("cache_bytes", "is_held"), [(10**9, True), (1, False)])
def test_the_share_of_the_bound_is_told(cache_bytes: int, is_held: bool) -> None:
    of = run(None, machine=replace(run().machine, l3_bytes=cache_bytes))
    drawn = roofline_of(of, ROOF, BEST)
    assert drawn.share == pytest.approx(0.5)
    assert (drawn.is_held, drawn.objection) == (is_held, "")
