from dataclasses import replace

import pytest

from benchmarks.fleet.simulated_fleet import SimulatedFleet, simulate

# Nothing takes time but what a test gives some.
SMALL = SimulatedFleet(
    compilers=1,
    devices=1,
    runs=1,
    pending=1,
    compile_s=(0.0, 0.0),
    measure_s=(2.0, 2.0),
    failing=0.0,
    hop_s=0.0,
    gap_s=0.0,
    server_s=0.0,
    minutes=10.0,
)


def test_a_run_with_one_pending_trial_pays_for_every_step() -> None:
    found = simulate(replace(SMALL, compile_s=(1.0, 1.0), hop_s=0.4, server_s=0.2))
    period_s = 0.1 + 0.4 + 1.0 + 0.1 + 0.1 + 0.4 + 2.0 + 0.1 + 0.4
    assert found.trials_per_s == pytest.approx(1 / period_s, rel=0.01)
    assert found.idle == pytest.approx(1 - 2 / period_s, rel=0.01)
    assert found.latency_s == pytest.approx(period_s)
    assert found.server_busy == pytest.approx(0.4 / period_s, rel=0.02)
    assert found.unknown == 0


def test_with_enough_pending_trials_a_device_waits_for_the_gap_alone() -> None:
    found = simulate(replace(SMALL, compile_s=(1.0, 1.0), hop_s=0.4, gap_s=0.5, pending=4))
    assert found.idle == pytest.approx(0.5 / 2.5, abs=0.01)
    assert found.trials_per_s == pytest.approx(1 / 2.5, rel=0.02)
    assert found.unknown == pytest.approx(3, abs=0.05)


def test_failures_need_no_device() -> None:
    found = simulate(replace(SMALL, failing=1.0, compile_s=(0.5, 0.5)))
    assert found.idle == 1
    assert (found.trials_per_s, found.jobs_per_s) == pytest.approx((2, 2), rel=0.01)


@pytest.mark.slow
def test_outcomes_are_reported_in_order_so_that_a_slow_trial_holds_up_the_others() -> None:
    uneven = replace(SMALL, devices=2, is_pooled=True, measure_s=(0.1, 10.0), compilers=4, minutes=60)
    assert simulate(replace(uneven, pending=2)).idle > simulate(replace(uneven, pending=16)).idle + 0.1


def test_runs_keep_to_their_own_device_unless_devices_are_pooled() -> None:
    crowded = replace(SMALL, devices=4, runs=1, pending=8)
    assert simulate(crowded).idle == pytest.approx(0.75, abs=0.01)
    assert simulate(replace(crowded, is_pooled=True)).idle == pytest.approx(0, abs=0.01)


def test_a_device_that_polls_is_found_idle_for_half_a_period() -> None:
    found = simulate(replace(SMALL, poll_s=1.0, minutes=30))
    assert found.latency_s == pytest.approx(2.5, abs=0.05)
    assert simulate(replace(SMALL, poll_s=1.0, pending=2)).latency_s == pytest.approx(4, abs=0.05)


@pytest.mark.slow
def test_the_database_does_one_job_after_another_on_each_core() -> None:
    many = replace(SMALL, devices=50, compilers=50, runs=50, measure_s=(0.1, 0.1), server_s=0.02, minutes=1)
    assert simulate(many).jobs_per_s == pytest.approx(50, rel=0.05)
    assert simulate(many).server_busy == pytest.approx(1, abs=0.02)
    assert simulate(replace(many, server_cores=2)).jobs_per_s == pytest.approx(100, rel=0.05)


@pytest.mark.slow
def test_a_lost_node_costs_its_lease_and_the_trial_is_done_all_the_same() -> None:
    calm, losing = (
        replace(SMALL, minutes=300),
        replace(SMALL, minutes=300, losses_per_hour=100.0, lease_s=30.0),
    )
    lost = 2 * 100 / 3600  # share of attempts; each costs its lease and half the work
    expected_s = 2 + lost / (1 - lost) * 31
    assert simulate(losing).latency_s == pytest.approx(expected_s, rel=0.05)
    assert simulate(calm).latency_s == pytest.approx(2)


def test_equal_seeds_give_equal_figures() -> None:
    fleet = SimulatedFleet(minutes=0.5)
    assert simulate(fleet, 1) == simulate(fleet, 1) != simulate(fleet, 2)
