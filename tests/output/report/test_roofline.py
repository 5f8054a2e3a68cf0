from dataclasses import replace

import pytest

from tests.output.report.parsed import parsed
from tests.trials import finalist, measurement, run
from tuner.core.machine import Roofline
from tuner.output.report.roofline import HEIGHT, WIDTH, roofline

PROBLEM = run().settings.problem
BEST = finalist(0, measurement(1e-3))
ROOF = Roofline(PROBLEM.flop / 0.5e-3, PROBLEM.bytes / 0.2e-3)


def test_both_times_are_points_at_the_intensity_of_the_problem() -> None:
    best, baseline = parsed(roofline(run(2e-3), ROOF, BEST)).of("circle")
    assert best["cx"] == baseline["cx"]
    assert 0 < float(best["cy"]) < float(baseline["cy"]) < HEIGHT
    assert 0 < float(best["cx"]) < WIDTH


def test_the_roof_is_above_what_is_slower_than_it() -> None:
    drawn = parsed(roofline(run(None), ROOF, BEST))
    (roof,) = drawn.of("path", "roof")
    heights = [float(y) for y in roof["d"][1:].split(" ")[1::2]]
    assert heights[0] > heights[1] == heights[2]
    assert heights[2] < float(drawn.of("circle")[0]["cy"])


@pytest.mark.parametrize(("cache_bytes", "share", "is_held"), [(10**9, "50.0%", True), (1, "50.0%", False)])
def test_the_share_of_the_bound_is_told(cache_bytes: int, share: str, is_held: bool) -> None:
    of = run(None, machine=replace(run().machine, l3_bytes=cache_bytes))
    text = parsed(roofline(of, ROOF, BEST)).text
    assert f"The best reaches {share} of what 1 thread can do." in text
    assert ("only the level roof bounds it" in text) == is_held
    assert "(measured)" in text
