import numpy as np
import pytest

from benchmarks.replay_synthetic import ROWS, synthetic_space


@pytest.mark.parametrize("seed", range(4))
def test_spaces_have_interactions_and_a_time_for_most_rows(seed: int) -> None:
    space = synthetic_space(seed)
    assert ROWS[0] <= space.feasible.rows <= ROWS[1]
    assert space.feasible.rows < 0.9 * space.feasible.cartesian
    assert np.isnan(space.times_s).mean() < 0.05
    assert np.median(space.ordered_s) > 1.5 * space.ordered_s[0]


def test_equal_seeds_give_equal_spaces_and_others_do_not() -> None:
    one, again, other = synthetic_space(3), synthetic_space(3), synthetic_space(5)
    assert one.feasible.spaces == again.feasible.spaces != other.feasible.spaces
    assert np.array_equal(one.times_s, again.times_s, equal_nan=True)
