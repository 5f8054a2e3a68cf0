import pytest

from tuner.runtime.cpu.host_activity import HostActivity
from tuner.runtime.cpu.host_watch import HostWatch
from tuner.runtime.cpu.thread_team import ThreadTeam


def activity(clock_s: float, busy_s: float, own_s: float, *others: float) -> HostActivity:
    stolen_s, waited_s, throttled_s = others or (0.0, 0.0, 0.0)
    return HostActivity(clock_s, busy_s, stolen_s, own_s, waited_s, throttled_s)


@pytest.mark.mlir
def test_conditions_are_what_changed_between_two_readings() -> None:
    team = ThreadTeam(2)
    watch = HostWatch(team)
    before = activity(10.0, 100.0, 50.0, 1.0, 2.0, 3.0)
    after = activity(14.0, 110.0, 54.0, 1.8, 3.6, 3.4)
    found = watch.conditions(before, after, (1e-3, 3e-3, 2e-3), turns_s=(4e-3,) * 3 + (5e-3,) * 3)
    team.close()
    assert found.others_cores == pytest.approx(1.5)
    assert found.stolen_share == pytest.approx(0.1)
    assert found.waited_share == pytest.approx(0.2)
    assert found.throttled_share == pytest.approx(0.1)
    assert found.anchor_s == 2e-3
    assert found.anchor_drift == pytest.approx(0.25)


@pytest.mark.mlir
def test_the_anchor_is_timed_beside() -> None:
    team = ThreadTeam(1)
    samples_s = HostWatch(team).beside()
    team.close()
    assert len(samples_s) == 3
    assert min(samples_s) > 0
