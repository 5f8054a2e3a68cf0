from typing import Any

from benchmarks.fleet.soonest import QUESTION, soonest_rows


def simulated(devices: int, pending: int, trials_per_s: float, question: str = QUESTION) -> dict[str, Any]:
    fleet = {"devices": devices, "pending": pending}
    return {"question": question, "fleet": fleet, "idle": 0.1, "trials_per_s": trials_per_s}


def test_what_a_run_gains_by_busy_devices_it_loses_by_knowing_less() -> None:
    rows = [
        simulated(2, 2, 1.0),
        simulated(2, 6, 4.0),
        simulated(1, 1, 1.0),
        simulated(1, 3, 2.0),
        simulated(1, 1, 9.0, "another question"),
    ]
    staleness = [
        {"pending": 1, "median_trials": 30},
        {"pending": 2, "median_trials": 40},
        {"pending": 3, "median_trials": 70},
        {"pending": 6, "median_trials": 80},
    ]
    found = [(row["devices"], row["pending"], row["seconds"]) for row in soonest_rows(rows, staleness)]
    assert found == [(1, 1, 30), (1, 3, 35), (2, 6, 20), (2, 2, 40)]


def test_a_limit_is_left_out_where_searches_did_not_arrive_or_none_was_made() -> None:
    rows = [simulated(1, 1, 1.0), simulated(1, 2, 1.0)]
    assert soonest_rows(rows, [{"pending": 1, "median_trials": None}]) == []
