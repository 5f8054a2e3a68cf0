from dataclasses import replace

from tests.trials import measurement, trial
from tuner.core.candidate import Candidate, Value
from tuner.core.runs import StoredTrial
from tuner.output.tables import history_table


def of_knobs(number: int, **knobs: Value) -> StoredTrial:
    timed = trial(number, measurement(1e-3))
    return replace(timed, record=replace(timed.record, candidate=Candidate.of("fake", knobs)))


def test_knobs_that_all_trials_share_stand_below_the_table() -> None:
    trials = (of_knobs(1, x=1, y=2, z="a"), of_knobs(2, x=1, y=3, z="a"))
    *rows, shared, below = history_table(trials)
    assert [row.split("  ")[-1] for row in rows[1:]] == ["fake y=2", "fake y=3"]
    assert shared == "all of run 3, problem matmul 8x8x8 f32, target fake, threads 1"
    assert below == "fake everywhere: x=1 z=a"


def test_columns_that_vary_stay_in_the_table() -> None:
    one = of_knobs(1, x=1)
    header, *_, shared, _ = history_table((one, replace(one, run=4, threads=2)))
    assert header.split()[:3] == ["trial", "run", "threads"]
    assert shared == "all of problem matmul 8x8x8 f32, target fake"


def test_a_trial_alone_shares_nothing() -> None:
    assert history_table((of_knobs(1, x=1, y=2),))[-1].endswith("fake x=1 y=2")


def test_many_knobs_go_on_below_where_a_terminal_ends() -> None:
    knobs = {f"knob_{number}": number for number in range(12)}
    trials = tuple(
        of_knobs(number, **{name: number + value for name, value in knobs.items()}) for number in (1, 2)
    )
    whole = history_table(trials)
    assert max(map(len, whole)) > 140
    narrow = history_table(trials, 80)
    assert max(map(len, narrow)) <= 80
    assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(whole).split())
