import numpy as np

from tests.search.tasks import grid, task, tell
from tuner.search.simple_methods import ARMS, PROBE_EVERY, Ensemble, Evolution, best, credit, probed


def test_every_method_is_probed_in_turn() -> None:
    turns = [probed(turn) for turn in range(8 * PROBE_EVERY)]
    assert turns[::PROBE_EVERY] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert len([turn for turn in turns if turn is None]) == 8 * (PROBE_EVERY - 1)


def test_credit_goes_to_the_method_whose_probes_were_fast() -> None:
    square = task(grid("ab"))
    for turn in range(32):
        tell(square, (turn, 1.0 if probed(turn) == 1 else None if turn % 3 == 0 else 5.0 + turn))
    assert best(square.pool) == 1
    assert credit(square.pool, 1) == 22 / 32  # all that have a time
    assert credit(square.pool, 0) < 0.3


def test_what_was_good_long_ago_is_forgotten() -> None:
    square = task(grid("abc"))
    for turn in range(96):
        tell(square, (turn, 1.0 if probed(turn) == (1 if turn < 48 else 2) else 5.0 + turn))
    assert best(square.pool) == 2


def test_the_best_method_chooses_between_probes() -> None:
    square = task(grid("ab"))
    for turn in range(33):
        tell(square, (turn, 1.0 if probed(turn) == ARMS.index(Evolution) else 5.0 + turn))
    chosen = [Ensemble(square).choose(np.random.default_rng(seed)) for seed in range(5)]
    assert chosen == [Evolution(square).choose(np.random.default_rng(seed)) for seed in range(5)]


def test_a_method_whose_probes_are_pending_is_worth_a_try() -> None:
    square = task(grid("ab"))
    assert best(square.pool) == 0
    tell(square, (0, None))  # of the first
    square.pool.propose(1)
    assert [credit(square.pool, arm) for arm in range(len(ARMS))] == [0, 1, 1, 1]
