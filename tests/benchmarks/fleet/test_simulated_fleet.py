"""A simulated fleet, and what its searches gain by more pending trials."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.fleet.simulated_fleet import SimulatedFleet, simulate
from benchmarks.fleet.simulated_rows import LARGE, row_of, scenarios
from benchmarks.fleet.soonest import QUESTION, soonest_rows
from benchmarks.fleet.staleness import PENDING, staleness_rows, trials_until
from benchmarks.results_file import RESULTS
from benchmarks.search.replay_run import ReplayedSearch
from benchmarks.search.replay_space import ReplaySpace
from tests.search.tasks import line
from tuner.space.feasible_set import FeasibleSet

# Nothing takes time but what a test gives some.
ONE_OF_EACH = SimulatedFleet(compilers=1, devices=1, runs=1, pending=1, minutes=10.0)
SMALL = replace(
    ONE_OF_EACH, compile_s=(0.0, 0.0), measure_s=(2.0, 2.0), failing=0.0, hop_s=0.0, gap_s=0.0, server_s=0.0
)
COMMITTED = json.loads((RESULTS / "fleet_simulated.json").read_text())["rows"]
TIMES = np.linspace(2.0, 1.0, 40)
SPACE = ReplaySpace("s", FeasibleSet.of((line(40),)), TIMES)


def test_a_run_with_one_pending_trial_pays_for_every_step_and_with_enough_for_the_gap_alone() -> None:
    found = simulate(replace(SMALL, compile_s=(1.0, 1.0), hop_s=0.4, server_s=0.2))
    period_s = 0.1 + 0.4 + 1.0 + 0.1 + 0.1 + 0.4 + 2.0 + 0.1 + 0.4
    assert (found.trials_per_s, found.idle) == pytest.approx((1 / period_s, 1 - 2 / period_s), rel=0.01)
    assert (found.latency_s, found.unknown) == pytest.approx((period_s, 0))
    assert found.server_busy == pytest.approx(0.4 / period_s, rel=0.02)
    found = simulate(replace(SMALL, compile_s=(1.0, 1.0), hop_s=0.4, gap_s=0.5, pending=4))
    assert found.idle == pytest.approx(0.5 / 2.5, abs=0.01)
    assert found.trials_per_s == pytest.approx(1 / 2.5, rel=0.02)
    assert found.unknown == pytest.approx(3, abs=0.05)
    assert simulate(replace(SMALL, poll_s=1.0, minutes=30)).latency_s == pytest.approx(2.5, abs=0.05)
    assert simulate(replace(SMALL, poll_s=1.0, pending=2)).latency_s == pytest.approx(4, abs=0.05)


def test_what_busy_devices_give_a_run_it_loses_by_knowing_less_and_failures_need_none() -> None:
    found = simulate(replace(SMALL, failing=1.0, compile_s=(0.5, 0.5)))
    assert found.idle == 1
    assert (found.trials_per_s, found.jobs_per_s) == pytest.approx((2, 2), rel=0.01)
    crowded = replace(SMALL, devices=4, runs=1, pending=8)
    assert simulate(crowded).idle == pytest.approx(0.75, abs=0.01)
    assert simulate(replace(crowded, is_pooled=True)).idle == pytest.approx(0, abs=0.01)
    fleet = SimulatedFleet(minutes=0.5)
    assert simulate(fleet, 1) == simulate(fleet, 1) != simulate(fleet, 2)
    runs = ((2, 2, 1.0), (2, 6, 4.0), (1, 1, 1.0), (1, 3, 2.0))
    rows = [*(simulated(*run) for run in runs), simulated(1, 1, 9.0, "another question")]
    median_trials = {1: 30, 2: 40, 3: 70, 6: 80}
    staleness = [{"pending": each, "median_trials": trials} for each, trials in median_trials.items()]
    soonest = [(row["devices"], row["pending"], row["seconds"]) for row in soonest_rows(rows, staleness)]
    assert soonest == [(1, 1, 30), (1, 3, 35), (2, 6, 20), (2, 2, 40)]
    # left out where searches did not arrive or none was made
    rows = [simulated(1, 1, 1.0), simulated(1, 2, 1.0)]
    assert soonest_rows(rows, [{"pending": 1, "median_trials": None}]) == []


@pytest.mark.slow
def test_a_slow_trial_holds_up_the_others_and_a_lost_node_costs_its_lease() -> None:
    uneven = replace(SMALL, devices=2, is_pooled=True, measure_s=(0.1, 10.0), compilers=4, minutes=60)
    assert simulate(replace(uneven, pending=2)).idle > simulate(replace(uneven, pending=16)).idle + 0.1
    many = replace(SMALL, devices=50, compilers=50, runs=50, measure_s=(0.1, 0.1), server_s=0.02, minutes=1)
    found = simulate(many)
    assert found.jobs_per_s == pytest.approx(50, rel=0.05)
    assert found.server_busy == pytest.approx(1, abs=0.02)
    assert simulate(replace(many, server_cores=2)).jobs_per_s == pytest.approx(100, rel=0.05)
    calm = replace(SMALL, minutes=300)
    lost = 2 * 100 / 3600  # share of attempts; each costs its lease and half the work
    expected_s = 2 + lost / (1 - lost) * 31
    losing = simulate(replace(calm, losses_per_hour=100.0, lease_s=30.0))
    assert losing.latency_s == pytest.approx(expected_s, rel=0.05)
    assert simulate(calm).latency_s == pytest.approx(2)


def test_every_fleet_is_simulated_once_for_a_question_and_has_a_row_for_each_limit() -> None:
    found = [(scenario.question, scenario.fleet) for scenario in scenarios()]
    assert len(set(found)) == len(found) == len(COMMITTED)
    assert [row["question"] for row in COMMITTED] == [question for question, _fleet in found]
    assert LARGE.compilers + LARGE.devices == 1000
    rows = list(staleness_rows(SPACE, "exhaustive", evaluations=40, seeds=2))
    assert [row["pending"] for row in rows] == list(PENDING)
    assert {row["p"] for row in rows} == {rows[0]["p"]}
    assert {(row["median_trials"], row["arrived"], row["p_standard_error"]) for row in rows} == {(38, 2, 0)}
    row = next(staleness_rows(SPACE, "exhaustive", evaluations=5, seeds=1))  # does not arrive
    assert (row["median_trials"], row["arrived"], row["p_standard_error"]) == (None, 0, None)


@pytest.mark.parametrize("index", [0, 2])
def test_figures_committed_are_those_of_the_code(index: int) -> None:
    scenario = list(scenarios())[index]
    assert json.loads(json.dumps(row_of(scenario))) == COMMITTED[index]


def simulated(devices: int, pending: int, trials_per_s: float, question: str = QUESTION) -> dict[str, Any]:
    fleet = {"devices": devices, "pending": pending}
    return {"question": question, "fleet": fleet, "idle": 0.1, "trials_per_s": trials_per_s}


@pytest.mark.parametrize(
    ("found_s", "trials"), [([2.0, 1.06, 1.05, 1.0], 3), ([1.0], 1), ([np.inf, 1.2], np.inf)]
)
def test_a_search_arrives_at_95_percent_of_the_best_speed(found_s: list[float], trials: float) -> None:
    assert trials_until(SPACE, ReplayedSearch(np.array(found_s), len(found_s), len(found_s), 0.0)) == trials
