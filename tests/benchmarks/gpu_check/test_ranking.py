"""Pairs of predictions and times: drawn of real points, judged as orders."""

import math

import pytest

from benchmarks.gpu_check.device_under_test import SIMULATOR, Bed
from benchmarks.gpu_check.ranking import LEAST_POINTS, PredictedTime, checks, compared_pairs, drawn_points
from tuner.core.problem import Matmul


def pairs(count: int, sign: float = 1.0, by_machine_code: float = math.nan) -> list[PredictedTime]:
    return [PredictedTime(sign * number, by_machine_code, 1e-3 * (number + 1)) for number in range(count)]


def test_a_model_that_orders_as_the_times_do_is_accepted() -> None:
    outcome = compared_pairs(pairs(40))
    assert outcome.status == "passed"
    assert "40 points; by_knobs: rank correlation 1.00, regret 0% after 1," in outcome.words
    assert outcome.words.endswith("accepted; by_machine_code: none")
    assert outcome.facts["by_knobs"]["is_accepted"]
    assert len(outcome.facts["pairs"]) == 40


def test_one_that_orders_otherwise_is_reported_and_not_accepted() -> None:
    outcome = compared_pairs(pairs(40, sign=-1.0))
    assert outcome.status == "passed"
    assert not outcome.facts["by_knobs"]["is_accepted"]
    assert "not accepted" in outcome.words


def test_few_points_are_a_failure() -> None:
    outcome = compared_pairs(pairs(LEAST_POINTS - 1))
    assert (outcome.status, outcome.words) == ("failed", "found 7 points with times, allowed 8 or more")


def test_without_a_clock_nothing_is_asked() -> None:
    (check,) = checks(Bed(SIMULATOR, "sm_90"))
    assert check.ask().words == "no clock on the simulator"


@pytest.mark.slow
@pytest.mark.mlir
def test_points_are_predicted_by_their_knobs() -> None:
    drawn = drawn_points(Bed(SIMULATOR, "sm_80"), "matmul_gpu_simt", Matmul(256, 256, 256))
    first, second = next(drawn), next(drawn)
    assert first.point.candidate != second.point.candidate
    assert first.by_knobs > 0
    assert math.isnan(first.by_machine_code)  # PTX has none
