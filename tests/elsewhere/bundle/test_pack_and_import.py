from contextlib import closing
from pathlib import Path

import pytest

from tests.db.test_remote_results import add, run_of
from tests.elsewhere.bundle.values import PROVENANCE, program, result, timed
from tuner.core.errors import Failure, Stage, TunerError
from tuner.core.matmul import Matmul
from tuner.core.queries import Imported, TaskQuery, TrialQuery
from tuner.core.remote_results import RemoteResults
from tuner.db.remote_results import import_results
from tuner.db.store import Store
from tuner.elsewhere.bundle.archive import read_bundle
from tuner.elsewhere.bundle.exchange import choose_pending, import_file, packed, passing_bundle
from tuner.elsewhere.bundle.results_file import ResultsFile

ANY = TrialQuery(sort="number")


@pytest.fixture
def filled(store: Store) -> Store:
    run = run_of(store)
    for number, spills in enumerate((8, 0, 0)):
        code = program(f"//\n.version 8.0 // {number}", spills=spills)
        add(store, run, number, code=code, script=f"// {number}\n")
    add(store, run_of(store, problem=Matmul(32, 8, 8)), 7)
    return store


def test_the_most_promising_of_each_problem_or_one_chip_are_packed(filled: Store, tmp_path: Path) -> None:
    assert [trial.origin.number for trial in choose_pending(filled, ANY)] == [1, 2, 0, 7]
    assert [trial.origin.number for trial in choose_pending(filled, ANY, limit=1)] == [1, 7]
    assert len(choose_pending(filled, ANY, chip="sm_90")) == 4
    with pytest.raises(TunerError, match=r"^no compiled trial waits for a time; tuner tune "):
        choose_pending(filled, ANY, chip="sm_80")
    trials = choose_pending(filled, ANY)
    (tmp_path / "b").write_bytes(packed(trials, 5))
    bundle = read_bundle(tmp_path / "b")
    assert (bundle.trials, bundle.seed) == (trials, 5)


def test_results_of_a_passing_bundle_are_stored_even_when_the_user_interrupts(filled: Store) -> None:
    trials = choose_pending(filled, ANY)
    done: list[Imported] = []
    used: list[Path] = []

    def measure_and_interrupt() -> None:
        with passing_bundle(filled, trials, 0, done.append) as path:
            used.append(path)
            with closing(ResultsFile(path.with_name(f"{path.name}.results.jsonl"), PROVENANCE)) as file:
                file.append(result(trials[0], timed()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_and_interrupt()
    assert done == [Imported(runs=1, trials=1, known=0)]
    assert not used[0].exists()
    assert len(choose_pending(filled, ANY)) == 3


def test_a_passing_bundle_without_results_stores_nothing(filled: Store) -> None:
    done: list[Imported] = []
    with passing_bundle(filled, choose_pending(filled, ANY), 0, done.append) as path:
        assert len(read_bundle(path).trials) == 4
    assert done == []


def test_a_results_file_is_imported(filled: Store, tmp_path: Path) -> None:
    with closing(ResultsFile(tmp_path / "r", PROVENANCE)) as file:
        file.append(result(choose_pending(filled, ANY)[0], timed()))
    assert import_file(filled, tmp_path / "r") == Imported(1, 1, 0)


def test_a_refuted_trial_is_not_packed_and_neither_is_its_code_of_another_run(filled: Store) -> None:
    """Whether the simulator's verification was refuted, or a time on a GPU that was imported."""
    one, two, *others = choose_pending(filled, ANY)
    (simulated,) = (each for each in filled.trials(ANY) if each.run == 1 and each.number == one.origin.number)
    filled.refute(simulated.id, Failure(Stage.VERIFY, "in a check: wrong"))
    assert choose_pending(filled, ANY) == (two, *others)
    import_results(filled.database, RemoteResults(PROVENANCE, (result(two, timed()),)))
    (on_gpu,) = filled.trials(TrialQuery(TaskQuery(target="cuda")))
    filled.refute(on_gpu.id, Failure(Stage.VERIFY, "in the final re-measurement: wrong"))
    again = run_of(filled)
    add(filled, again, 0, code=two.program, script="// 1\n")
    assert choose_pending(filled, ANY) == tuple(others)
