"""What other machines say of a search: the stored text, the mean of the model, and the search itself."""

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.tasks import ask, grid, task
from tuner.core.errors import UsageError
from tuner.search.prior import decoded, encoded
from tuner.search.samplers import SAMPLERS, make_sampler
from tuner.search.surrogates import line, prior_mean
from tuner.space.feasible_set import FeasibleSet

NAN = math.nan
FEASIBLE = FeasibleSet.of((grid("ab", 12),))


def bowl(x: int, y: int) -> npt.NDArray[np.float64]:
    """Returns times that grow with the distance from one configuration."""
    a, b = np.divmod(np.arange(FEASIBLE.rows), 12)
    return np.asarray(np.exp(0.1 * ((a - x) ** 2 + (b - y) ** 2)))


def test_a_digit_says_where_a_time_lies_between_the_fastest_and_the_median() -> None:
    levels = decoded(encoded([np.array([1.0, 4.0, 2.0, NAN, 9.0, 3.0])]), 6)
    expected = [0.0, 1.0, math.log(2) / math.log(3), NAN, 1.0, 1.0]
    assert levels == pytest.approx(expected, abs=1 / 126, nan_ok=True)
    assert encoded([]) == ""
    assert encoded([np.array([1.0, NAN]), np.array([5.0, NAN])]) == "0-"


def test_machines_count_equally_whatever_their_speed_and_only_where_they_timed() -> None:
    times_s = np.array([1.0, 2.0, 4.0, 8.0])
    assert encoded([times_s, 1000 * times_s]) == encoded([times_s])
    assert encoded([times_s, np.array([NAN, 1.0, NAN, NAN])])[2:] == encoded([times_s])[2:]


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1).filter(any))
def test_the_order_of_the_faster_half_is_kept(times: list[float | None]) -> None:
    times_s = np.array([NAN if time is None else time for time in times])
    levels = decoded(encoded([times_s]), len(times))
    assert (np.isnan(levels) == np.isnan(times_s)).all()
    known = ~np.isnan(times_s)
    ordered = levels[known][np.argsort(times_s[known], kind="stable")]
    assert (np.diff(ordered) >= 0).all()
    assert 0 <= ordered[0] <= ordered[-1] <= 1


@pytest.mark.parametrize("text", ["", "000", "0!"])
def test_a_damaged_prior_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"prior: found {len(text)} characters, allowed 2 of base64"):
        decoded(text, 2)


def test_a_sampler_refuses_a_prior_of_other_configurations() -> None:
    with pytest.raises(UsageError, match="prior: found 3 characters, allowed 144"):
        make_sampler("tpe", FEASIBLE, 0, prior="000")


def test_the_mean_is_standardized_and_trees_fill_it_in() -> None:
    assert prior_mean(task(grid("ab", 12))) is None
    levels = decoded(encoded([bowl(3, 4)]), FEASIBLE.rows)
    whole = dataclasses.replace(task(grid("ab", 12)), prior=levels)
    mean = prior_mean(whole)
    assert mean is not None
    assert (mean.mean(), mean.std()) == pytest.approx((0, 1), abs=1e-9)
    some = np.where(np.arange(FEASIBLE.rows) % 3 == 0, levels, NAN)
    filled = prior_mean(dataclasses.replace(whole, prior=some))
    assert filled is not None
    assert np.corrcoef(filled, mean)[0, 1] > 0.8
    for nothing in (np.full(FEASIBLE.rows, NAN), np.zeros(FEASIBLE.rows)):
        assert prior_mean(dataclasses.replace(whole, prior=nothing)) is None


def test_the_slope_goes_from_one_to_that_of_the_data_and_never_below_zero() -> None:
    prior = np.linspace(-1, 1, 200)
    assert line(np.zeros(3), np.array([1.0, 2.0, 3.0])) == (1.0, 2.0)
    slope, offset = line(prior, 0.5 * prior + 3)
    assert 0.5 < slope < 0.6
    assert offset == pytest.approx(3)
    assert line(prior, -prior) == pytest.approx((0, 0))


def rows_of(name: str, prior: str, count: int = 14) -> list[int]:
    times_s = bowl(8, 9)
    sampler = make_sampler(name, FEASIBLE, 1, (0, 70), prior)
    rows = []
    for number in range(count):
        rows.append(ask(sampler, number))
        sampler.tell(rows[-1], float(times_s[rows[-1]]))
    return rows


def test_a_search_finds_sooner_what_is_fast_elsewhere_too() -> None:
    prior, best = encoded([bowl(8, 8)]), int(bowl(8, 9).argmin())
    without = rows_of("tpe", "", 60)
    assert rows_of("tpe", prior).index(best) < without.index(best)
    assert rows_of("tpe", prior) == rows_of("tpe", prior)


@pytest.mark.parametrize("name", [*SAMPLERS, "optuna:tpe"])
def test_every_sampler_takes_a_prior(name: str) -> None:
    prior = encoded([bowl(8, 8)])
    rows = rows_of(name, prior)
    assert len(set(rows)) == len(rows)
    if name not in ("tpe", "ensemble"):
        assert rows == rows_of(name, "")
