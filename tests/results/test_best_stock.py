import pytest

from tests.trials import trial
from tests.tuning import fakes
from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.records import Verdict
from tuner.core.runs import StoredTrial
from tuner.db.store import Store
from tuner.results.best_trials import BestStock, best_stock
from tuner.targets.backends import Backends
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

OWN_FASTEST = fakes.backends(bind=lambda *_: fakes.bind_with_custom_op)


def tuned(store: Store, backends: Backends, trials: int = 20) -> StoredTrial:
    """Returns the best of a run that tries the initial configurations of the space in their order."""
    run = begin(fakes.settings(trials=trials, sampler="exhaustive"), backends, store, Interruption())
    assert run.selected is not None
    return run.selected.best


def knob_x(found: BestStock) -> object:
    return dict(found.trial.record.candidate.choices)["x"]


def test_a_portable_winner_is_its_own_stand_in(store: Store) -> None:
    winner = tuned(store, fakes.backends())
    found = best_stock(store, winner)
    assert found.trial is winner
    assert isinstance(found.compared, NotComparable)
    assert found.compared.is_equal


def test_the_fastest_script_without_custom_ops_comes_with_its_slowdown(store: Store) -> None:
    found = best_stock(store, tuned(store, OWN_FASTEST))
    assert knob_x(found) in (6, 8)
    assert isinstance(found.compared, Comparable)
    assert found.compared.longer == pytest.approx(1.0)
    assert found.compared.longer_interval == pytest.approx((1.0, 1.0))


@pytest.mark.slow
def test_another_runs_script_is_taken_where_it_is_faster_and_told_to_be_of_another_round(
    store: Store,
) -> None:
    tuned(store, fakes.backends())
    winner = tuned(store, OWN_FASTEST)
    found = best_stock(store, winner)
    assert found.trial.run != winner.run
    assert knob_x(found) == 7
    assert found.compared == NotComparable("not timed interleaved in one round")


def test_where_all_timed_scripts_call_custom_ops_they_are_named(store: Store) -> None:
    def bind(chosen: Candidate) -> Script:
        return fakes.bind_with_custom_op(Candidate.of("fake", dict(chosen.choices) | {"x": 7}))

    winner = tuned(store, fakes.backends(bind=lambda *_: bind), trials=3)
    message = r"--stock: matmul 8x8x8 f32 nn none: all 3 timed scripts call custom ops \(tuner\.fast\); more"
    with pytest.raises(UsageError, match=message):
        best_stock(store, winner)


def test_what_was_not_timed_has_no_stand_in(store: Store) -> None:
    with pytest.raises(UsageError, match="--stock: trial 104 was not timed"):
        best_stock(store, trial(4, Verdict(0.0, 1)))
