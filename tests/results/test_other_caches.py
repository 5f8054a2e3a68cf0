from dataclasses import replace

import pytest

from tests.tuning import fakes
from tuner.core.problem import Matmul
from tuner.core.runs import StoredTrial
from tuner.db.store import Store
from tuner.results.best_trials import other_winners
from tuner.results.output.run_result import other_cache_lines
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

PROBLEM = Matmul(8, 8, 8)


def best_of(store: Store, cache: str, trials: int | None = None) -> StoredTrial:
    settings = replace(
        fakes.settings(trials=trials, sampler="exhaustive"), problem=replace(PROBLEM, cache=cache)
    )
    tuned = begin(settings, fakes.backends(), store, Interruption())
    assert tuned.selected is not None
    return tuned.selected.best


def test_another_winner_of_another_state_is_a_line(store: Store) -> None:
    first = best_of(store, "cold", trials=1)
    best = best_of(store, "warm")
    assert first.record.script_sha256 != best.record.script_sha256
    (other,) = other_winners(store, best)
    assert other.id == first.id
    (line,) = other_cache_lines([other])
    assert line.startswith(f"caches    cold: trial {first.id} is the best, fake")


@pytest.mark.slow
def test_the_same_winner_is_not(store: Store) -> None:
    best_of(store, "cold")
    assert other_winners(store, best_of(store, "warm")) == ()
    assert other_cache_lines(()) == []
