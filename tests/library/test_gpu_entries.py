"""Which trials on GPUs become entries of a library; fakes in place of compiler, simulator and clock."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.runs import TaskQuery
from tuner.db.store import Store
from tuner.library.entries import gpu_entries

TUNE = ("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
VERIFIED = ("--target", "simulator", "--dtype", "f16", "--chip", "sm_90")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuner = Tuner(tmp_path_factory.mktemp("verified") / "results.db", fakes.untimed_backends())
    assert tuner(*TUNE, *VERIFIED).code == 0
    return tuner.database


@pytest.mark.slow
def test_the_first_that_was_verified_is_taken_with_a_note_where_nothing_was_timed(verified: Path) -> None:
    with Store.open(str(verified)) as store:
        found = gpu_entries(store, TaskQuery(target="simulator"))
        (entry,) = found.entries
        assert (entry.median_s, entry.baseline, entry.baseline_s) == (None, "", None)
        assert entry.script == store.trial(entry.trial).script_text
        assert entry.program == store.program(entry.trial)
    assert found.notes == (
        "matmul 8x8x8 f16 nn none: not timed on a GPU: trial 1 is the first of 18 verified",
    )


def test_runs_that_are_not_named_do_not_count(verified: Path) -> None:
    with Store.open(str(verified)) as store:
        assert [entry.trial for entry in gpu_entries(store, TaskQuery(), (1,)).entries] == [1]
        with pytest.raises(UsageError, match="nothing measured or verified on a GPU that fits the options"):
            gpu_entries(store, TaskQuery(target="cuda"), (1,))


@pytest.mark.slow
def test_a_trial_that_was_timed_is_taken_before_those_that_were_verified(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    assert tuner(*TUNE).code == 0
    with Store.open(str(tuner.database)) as store:
        found = gpu_entries(store, TaskQuery())
    (entry,) = found.entries
    assert found.notes == ()
    assert entry.median_s == pytest.approx(fakes.BEST_S)
    assert (entry.baseline, entry.baseline_s) == ("FakeBLAS 1.0", fakes.BASELINE_S)


@pytest.mark.mlir
def test_the_command_takes_entries_of_gpus_for_a_target_or_a_run_on_one(
    verified: Path, tmp_path: Path
) -> None:
    tuner = Tuner(verified, fakes.untimed_backends())
    for option in (("--target", "simulator"), ("--run", "1")):
        # fakes verify without code: the entry is compiled again, and its script is none
        done = tuner("export", "--format", "c", *option, "-o", str(tmp_path / "out"))
        assert (done.code, done.err[:42]) == (1, "error: trial 1: matmul 8x8x8 f16 nn none: ")
