from dataclasses import replace

from tests.trials import measurement, trial
from tuner.cli.output.tables import history_table
from tuner.core.candidate import Candidate, Value
from tuner.core.runs import StoredTrial, record_of


def of_knobs(number: int, **knobs: Value) -> StoredTrial:
    timed = trial(number, measurement(1e-3))
    return replace(timed, record=replace(record_of(timed), candidate=Candidate.of("fake", knobs)))


def test_knobs_that_all_trials_share_stand_below_the_table() -> None:
    trials = (of_knobs(1, x=1, y=2, z="a"), of_knobs(2, x=1, y=3, z="a"))
    *rows, shared, below = history_table(trials).splitlines()
    assert [row.split("  ")[-1] for row in rows[1:]] == ["fake y=2", "fake y=3"]
    assert shared == "all of run 3, problem matmul 8x8x8 f32, target fake, threads 1"
    assert below == "fake everywhere: x=1 z=a"


def test_columns_that_vary_stay_in_the_table() -> None:
    one = of_knobs(1, x=1)
    header, *_, shared, _ = history_table((one, replace(one, run=4, threads=2))).splitlines()
    assert header.split()[:3] == ["trial", "run", "threads"]
    assert shared == "all of problem matmul 8x8x8 f32, target fake"


def test_a_trial_alone_shares_nothing() -> None:
    assert history_table((of_knobs(1, x=1, y=2),)).splitlines()[-1].endswith("fake x=1 y=2")
