"""The study of a search: what Optuna makes of it without knowing the tuner."""

from functools import cache
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState

import tuner
from tuner.search.method import StudySampler
from tuner.search.samplers import make_sampler
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace, RecordedTime

SHIPPED = Path(tuner.__file__).parent / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
TRIALS = 60


@cache
def space() -> RecordedSpace:
    return read_recorded(SHIPPED)


def seconds(row: int) -> float | None:
    outcome = space().outcomes[row]
    return outcome.time_s if isinstance(outcome, RecordedTime) else None


@cache
def searched(name: str = "random") -> StudySampler:
    sampler = make_sampler(name, space().feasible, seed=0)
    for number in range(TRIALS):
        row = sampler.ask(number)
        assert row is not None
        sampler.tell(row, seconds(row))
    return sampler


def test_a_trial_has_its_strategy_and_the_knobs_of_that_as_parameters() -> None:
    sampler = searched()
    trials = sampler.study.trials
    assert len(trials) == TRIALS
    assert {trial.params["strategy"] for trial in trials} == {"matmul_cpu_direct", "matmul_cpu_packed"}
    for trial in trials:
        row = sampler.row_of(trial.number)
        candidate = space().feasible.candidate(row)
        assert trial.params == {"strategy": candidate.strategy, **dict(candidate.choices)}
        assert trial.value == seconds(row)
    best = sampler.study.best_trial
    assert best.params["strategy"] == space().feasible.candidate(sampler.row_of(best.number)).strategy


def test_a_knob_may_take_the_values_that_some_row_has() -> None:
    trial = next(each for each in searched().study.trials if "pack_a" in each.params)
    assert trial.distributions["strategy"] == CategoricalDistribution(
        ("matmul_cpu_direct", "matmul_cpu_packed")
    )
    assert trial.distributions["loop_order"] == CategoricalDistribution(("ij", "ji"))
    assert trial.distributions["tile_n"] == IntDistribution(16, 64)
    assert trial.distributions["block_m"] == IntDistribution(0, 0)  # the problem is smaller than any block


def test_a_candidate_that_fails_is_a_failed_trial_and_one_in_flight_runs() -> None:
    sampler = make_sampler("tpe", space().feasible, seed=0)
    rows = [sampler.ask(number) for number in range(3)]
    assert None not in rows
    sampler.tell(rows[0] or 0, None)
    sampler.tell(rows[1] or 0, 0.0)
    assert [trial.state for trial in sampler.study.trials] == [
        TrialState.FAIL,
        TrialState.COMPLETE,
        TrialState.RUNNING,
    ]


def test_a_resumed_search_has_the_study_of_an_uninterrupted_one() -> None:
    uninterrupted, resumed = searched(), make_sampler("random", space().feasible, seed=0)
    for trial in uninterrupted.study.trials:
        row = uninterrupted.row_of(trial.number)
        resumed.replay(trial.number, row)
        resumed.tell(row, seconds(row))
    given = [[(each.params, each.value) for each in one.study.trials] for one in (uninterrupted, resumed)]
    assert given[0] == given[1]


def test_proposals_are_asked_for_in_order() -> None:
    sampler = make_sampler("random", space().feasible, seed=0)
    with pytest.raises(ValueError, match="trial: found 1, allowed 0"):
        sampler.ask(1)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("strategy", [None, "matmul_cpu_direct", "matmul_cpu_packed"])
def test_optuna_reports_the_importance_of_each_knob(strategy: str | None) -> None:
    knobs = {each.strategy: set(each.names) for each in space().feasible.spaces}
    common = {"strategy"}.union(set.intersection(*knobs.values()))
    names = None if strategy is None else sorted(knobs[strategy])
    found = get_param_importances(searched().study, evaluator=PedAnovaImportanceEvaluator(), params=names)
    assert set(found) == (common if strategy is None else knobs[strategy])
    assert sum(found.values()) == pytest.approx(1)
    assert found["block_m"] == 0 < found["tile_n"]


def test_its_default_importances_and_its_plots_work_where_their_packages_are() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("plotly")
    study = searched().study
    assert get_param_importances(study)["strategy"] > 0
    for plot in ("param_importances", "optimization_history", "slice", "parallel_coordinate", "contour"):
        assert getattr(optuna.visualization, f"plot_{plot}")(study).data
