import pytest

from benchmarks.fleet.node_noise import row_of
from tuner.analysis.slowdown import PairedSlowdown
from tuner.fleet.noise_check import NoiseCheck


@pytest.mark.parametrize(("upper", "is_quiet"), [(0.0029, True), (0.0031, False)])
def test_a_node_is_quiet_where_more_than_is_allowed_is_ruled_out(upper: float, is_quiet: bool) -> None:
    found = NoiseCheck("measure", 40, PairedSlowdown(0.001, (-0.0005, upper), 0.002))
    assert row_of(found) == {
        "measured": "noise",
        "rounds": 40,
        "longer_percent": 0.1,
        "interval_percent": [-0.05, round(100 * upper, 3)],
        "noise_percent": 0.2,
        "allowed_percent": 0.3,
        "is_quiet": is_quiet,
    }
