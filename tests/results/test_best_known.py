import pytest

from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.db.store import Store
from tuner.results.best_trials import best_here, best_result
from tuner.targets.interface import TargetStatus
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

PROBLEM = Matmul(8, 8, 8)


@pytest.mark.slow
def test_the_best_over_runs_is_the_answer_of_the_better_run(store: Store) -> None:
    begin(fakes.settings(trials=1, sampler="exhaustive"), fakes.backends(), store, Interruption())
    good = begin(fakes.settings(trials=None, sampler="exhaustive"), fakes.backends(), store, Interruption())
    selected = best_result(store, PROBLEM, fakes.MACHINE.name)
    assert good.selected is not None
    assert selected.best.id == good.selected.best.id


def test_nothing_measured_says_how_to_begin(store: Store) -> None:
    with pytest.raises(UsageError, match="8x8x8 f32 nn none: nothing measured yet; tuner tune"):
        best_result(store, PROBLEM, fakes.MACHINE.name)
    with pytest.raises(UsageError, match=r"yet; tuner tune matmul 8x8x8 --threads 2 --target fake$"):
        best_result(store, PROBLEM, fakes.MACHINE.name, "fake", threads=2)


def test_the_hint_keeps_a_type_that_one_target_alone_has(store: Store) -> None:
    statuses = tuple(TargetStatus(name, True, "") for name in ("cpu", "simulator"))
    with pytest.raises(UsageError, match=r"yet; tuner tune matmul 8x8x8 --dtype f16 --target simulator$"):
        best_here(store, fakes.backends(statuses), Matmul(8, 8, 8, dtype="f16"), "auto")


def test_what_is_only_verified_is_named_by_its_trial(store: Store) -> None:
    simulator = TargetName("simulator")
    begin(fakes.settings(trials=3, target=simulator), fakes.untimed_backends(), store, Interruption())
    with pytest.raises(UsageError, match=r"only verified, .* trial is 3 of run 1; tuner export --trial 3$"):
        best_result(store, PROBLEM, fakes.MACHINE.name)


def test_another_machine_is_named(store: Store) -> None:
    begin(fakes.settings(trials=2), fakes.backends(), store, Interruption())
    with pytest.raises(
        UsageError,
        match=r"nothing measured on 'mine', only on fake; choose with --machine, in Python with machine=$",
    ):
        best_result(store, PROBLEM, "mine")


def test_another_alignment_is_named(store: Store) -> None:
    begin(fakes.settings(trials=2), fakes.backends(), store, Interruption())
    message = r"none: nothing measured with align=64, only with align=16; choose with --align 16, in Python"
    with pytest.raises(UsageError, match=message):
        best_result(store, Matmul(8, 8, 8, align=64), fakes.MACHINE.name)
    with pytest.raises(UsageError, match=r"with align=any: .* yet; tuner tune matmul 9x9x9 --align any$"):
        best_result(store, Matmul(9, 9, 9, align="any"), fakes.MACHINE.name)


def test_another_cache_state_is_named(store: Store) -> None:
    begin(fakes.settings(trials=2), fakes.backends(), store, Interruption())
    message = (
        r"none: nothing measured with cache=cold, only with cache=warm; choose with --cache warm, in Python"
    )
    with pytest.raises(UsageError, match=message):
        best_result(store, Matmul(8, 8, 8, cache="cold"), fakes.MACHINE.name)
    with pytest.raises(UsageError, match=r"with cache=cold: .* yet; tuner tune matmul 9x9x9 --cache cold$"):
        best_result(store, Matmul(9, 9, 9, cache="cold"), fakes.MACHINE.name)


def test_threads_and_target_must_match(store: Store) -> None:
    begin(fakes.settings(trials=2), fakes.backends(), store, Interruption())
    with pytest.raises(UsageError, match="cpu with threads=4: nothing measured yet"):
        best_result(store, PROBLEM, fakes.MACHINE.name, "cpu", 4)


def test_auto_is_the_first_target_here_that_has_an_answer(store: Store) -> None:
    statuses = tuple(TargetStatus(name, True, "") for name in ("idle", "fake"))
    backends = fakes.backends(statuses)
    tuned = begin(fakes.settings(trials=2), backends, store, Interruption())
    for text in ("auto", "fake"):
        assert best_here(store, backends, PROBLEM, text).best == (tuned.selected and tuned.selected.best)
    with pytest.raises(UsageError, match="idle: nothing measured yet"):
        best_here(store, backends, PROBLEM, "idle")
    with pytest.raises(UsageError, match="target: found 'tpu', allowed auto, idle, fake"):
        best_here(store, backends, PROBLEM, "tpu")
