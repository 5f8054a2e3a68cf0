"""The study of a search: what Optuna makes of it without knowing the tuner."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState

import tuner
from tests import trials
from tests.search.tasks import ask
from tests.trials import measurement
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.trials import StoredTrial
from tuner.search.method import StudySampler, stored_studies
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
        row = ask(sampler, number)
        sampler.tell(row, seconds(row))
    return sampler


def test_a_trial_has_its_strategy_and_knobs_as_parameters_with_the_values_that_some_row_has() -> None:
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
    trial = next(each for each in searched().study.trials if "pack_a" in each.params)
    strategies = CategoricalDistribution(("matmul_cpu_direct", "matmul_cpu_packed"))
    orders, nothing = CategoricalDistribution(("ij", "ji")), IntDistribution(0, 0)  # smaller than any block
    expected = {"strategy": strategies, "loop_order": orders, "block_m": nothing}
    expected |= {"tile_n": IntDistribution(16, 64)}
    assert {name: trial.distributions[name] for name in expected} == expected


def test_failures_and_trials_in_flight_are_such_and_a_resumed_search_has_the_same_study() -> None:
    sampler = make_sampler("tpe", space().feasible, seed=0)
    failing, fast, _ = (ask(sampler, number) for number in range(3))
    sampler.tell(failing, None)
    sampler.tell(fast, 0.0)
    states = [trial.state for trial in sampler.study.trials]
    assert states == [TrialState.FAIL, TrialState.COMPLETE, TrialState.RUNNING]
    with pytest.raises(ValueError, match="trial: found 4, allowed 3"):
        sampler.ask(4)
    uninterrupted, resumed = searched(), make_sampler("random", space().feasible, seed=0)
    for trial in uninterrupted.study.trials:
        row = uninterrupted.row_of(trial.number)
        resumed.replay(trial.number, row)
        resumed.tell(row, seconds(row))
    given = [[(each.params, each.value) for each in one.study.trials] for one in (uninterrupted, resumed)]
    assert given[0] == given[1]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("strategy", [None, "matmul_cpu_direct", "matmul_cpu_packed"])
def test_optuna_reports_the_importance_of_each_knob(strategy: str | None) -> None:
    knobs = {each.strategy: set(each.names) for each in space().feasible.spaces}
    common = {"strategy"}.union(set.intersection(*knobs.values()))
    names = None if strategy is None else sorted(knobs[strategy])
    found = get_param_importances(searched().study, evaluator=PedAnovaImportanceEvaluator(), params=names)
    if strategy is None:
        assert common <= set(found)  # Optuna 5 adds knobs that only one of the strategies has
    else:
        assert set(found) == knobs[strategy]
    assert sum(found.values()) == pytest.approx(1)
    assert found["block_m"] == 0 < found["tile_n"]


def test_its_default_importances_and_its_plots_work_where_their_packages_are() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("plotly")
    study = searched().study
    assert get_param_importances(study)["strategy"] > 0
    for plot in ("param_importances", "optimization_history", "slice", "parallel_coordinate", "contour"):
        assert getattr(optuna.visualization, f"plot_{plot}")(study).data


def point(number: int, median_s: float | None, strategy: str = "fake", **knobs: Value) -> StoredTrial:
    made = trials.trial(number, Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s))
    return replace(made, record=replace(made.record, candidate=Candidate.of(strategy, knobs)))


def stored(*points: StoredTrial) -> optuna.Study:
    storage = stored_studies([(trials.run(), points)])
    return optuna.load_study(study_name="run 3: matmul 8x8x8 f32 nn none on fake", storage=storage)


def test_stored_trials_of_several_strategies_are_one_study(capsys: pytest.CaptureFixture[str]) -> None:
    found = stored(point(0, 2.0, x=1), point(1, None, x=4), point(2, 1.0, x=8))
    assert (found.best_value, found.best_params) == (1.0, {"strategy": "fake", "x": 8})
    assert [each.state.name for each in found.trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert found.trials[1].user_attrs == {"trial": 101, "status": "failed", "stage": "run", "reason": "crash"}
    assert found.trials[0].user_attrs["reliability"] == point(0, 2.0).reliability.text
    assert found.user_attrs["value"] == "seconds per call, the median"
    found = stored(point(0, 2.0, "a", x=1, order="ij"), point(1, 1.0, "b", y="-"), point(2, 1.0, "a", x=9))
    expected = [{"strategy", "x", "order"}, {"strategy", "y"}, {"strategy", "x"}]
    assert [set(each.params) for each in found.trials] == expected
    assert found.trials[0].distributions["x"] == IntDistribution(1, 9)
    mixed = stored(point(0, 1.0, x=1), point(1, 1.0, x="auto"))  # numbers and texts: categories
    assert [each.params["x"] for each in mixed.trials] == [1, "auto"]
    assert capsys.readouterr() == ("", "")  # no line of Optuna's
