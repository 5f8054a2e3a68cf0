from math import comb, exp

import pytest

from tuner.analysis.constraint_mining import log_chance_of_one_kind


@pytest.mark.parametrize(
    ("drawn", "kind", "every"), [(0, 0, 0), (0, 3, 7), (1, 3, 7), (3, 3, 7), (7, 7, 7), (5, 40, 200)]
)
def test_the_chance_is_the_share_of_draws_of_that_kind(drawn: int, kind: int, every: int) -> None:
    share = comb(kind, drawn) / comb(every, drawn)
    assert exp(log_chance_of_one_kind(drawn, kind, every)) == pytest.approx(share, rel=1e-12)
