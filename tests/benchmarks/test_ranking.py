import numpy as np
import pytest

from benchmarks.ranking import knowing_loops

LOOPS = np.array([[4.0, 4.0, 8.0, 8.0, 8.0], [1.0, 1.0, 2.0, 2.0, 2.0]])


def test_costs_of_a_loop_are_scaled_by_the_median_of_its_times() -> None:
    costs = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    times_s = np.array([0.5, 1.0, 6.0, 4.0, 20.0])  # half of what is counted; twice, as much, four times
    assert knowing_loops(costs, times_s, LOOPS) == pytest.approx([0.5, 1.0, 6.0, 8.0, 10.0])


def test_failures_say_nothing_of_their_loop() -> None:
    costs, times_s = np.ones(5), np.array([np.nan, 3.0, np.nan, 2.0, 2.0])
    assert knowing_loops(costs, times_s, LOOPS) == pytest.approx([3.0, 3.0, 2.0, 2.0, 2.0])
