"""A campaign on a target without compiler and clock."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.fakes import bind
from tests.tuning import fakes
from tuner.analysis.scheduler import NextTrial, Scheduler
from tuner.cli.commands.tune_shapes import read_shapes
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.machine import variables_of
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import NamedProblem, Problem
from tuner.core.processors import processor_of
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement
from tuner.core.requests import CampaignMember, CampaignSettings
from tuner.db.store import Store
from tuner.results.campaign_matrix import FAILED, NOT_TRIED, TIMED, campaign_matrix
from tuner.results.output.campaign_tables import campaign_lines
from tuner.search.cost_model.configurations import model_of
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.tuning import campaign, campaign_session
from tuner.tuning.campaign import begin_campaign, resume_campaign
from tuner.tuning.events import CampaignEvent, CampaignStarted, Interruption, RunEvent, TrialDone
from tuner.tuning.missing_cells import MissingCell, measure_cells
from tuner.tuning.pool import PoolProblem, projected_pool
from tuner.tuning.request import RunLimit
from tuner.tuning.run import resume
from tuner.tuning.tuned_run import TunedCampaign

PROBLEMS = (Matmul(8, 8, 8), Matmul(64, 8, 8), Matmul(64, 64, 8))
COUNTS = (1, 12, 2)
TRIALS = 20


def members(problems: tuple[Problem, ...] = PROBLEMS) -> tuple[CampaignMember, ...]:
    return tuple(
        CampaignMember(fakes.settings(problem=problem), f"layer {place}", COUNTS[place])
        for place, problem in enumerate(problems)
    )


def limits(trials: int | None = 15, budget_s: float | None = None) -> CampaignSettings:
    return CampaignSettings("shapes.yaml", trials, budget_s, 0, ())


def begun(store: Store, *limit: float | None, **changes: Any) -> TunedCampaign:
    of = limits(*limit)  # type: ignore[arg-type]
    return begin_campaign(of, members(), fakes.backends(**changes), store, Interruption())


def resumed(store: Store, limit: RunLimit | None = None, **changes: Any) -> TunedCampaign:
    return resume_campaign(1, fakes.backends(**changes), store, Interruption(), limit=limit)


def test_all_problems_share_one_budget_and_each_is_an_ordinary_run(store: Store) -> None:
    found = begun(store)
    assert (found.campaign.status, found.trials) == ("done", 15)
    assert (found.problems, found.counts) == (PROBLEMS, COUNTS)
    assert all(each.counts.proposed >= 4 for each in found.runs)
    for each in found.runs:
        assert (each.run.status, each.run.settings.trials) == ("done", each.counts.proposed)
        numbers = [trial.number for trial in fakes.trials_of(store, each.run.id)]
        assert numbers == [*range(each.counts.proposed)]
        assert None not in (each.selected, each.run.baseline)
        assert each.run.roofline == fakes.ROOFLINE
    times = [best.best_s for best in found.best if best is not None and best.best_s is not None]
    assert found.total_s == pytest.approx(sum(c * t for c, t in zip(COUNTS, times, strict=True)))
    seconds = f"{found.total_s:.4g} s in all, {found.reliability.word}"
    assert repr(found) == f"TunedCampaign(1: 3 problems, done, 15 trials; {seconds})"
    assert 0 < sum(each.seconds for each in found.runs) <= found.campaign.seconds
    assert 0 < found.campaign.search_s <= found.campaign.seconds


@pytest.mark.slow
def test_a_search_ends_where_nothing_is_left_to_gain_says_so_and_goes_on_if_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_floors_s", lambda *_: (0.0,) * len(PROBLEMS))  # as of fusions
    whole = fakes.plan({"x": tuple(range(60))})
    found = begun(store, 10_000, plan=whole)
    assert found.campaign.status == "done"
    assert found.ended_early.startswith("nothing is left to gain: what has gained 1% in its last 16 trials")
    assert f"early     {found.ended_early}" in campaign_lines(found)
    first = [each.run for each in store.campaign_proposals(1)][: len(PROBLEMS)]
    assert len({*first}) == len(PROBLEMS)  # initial configurations of all
    assert len(PROBLEMS) + 16 < found.trials < 60 * len(PROBLEMS)
    assert resumed(store, plan=whole).trials == found.trials  # it is done
    more = resumed(store, RunLimit(trials=found.trials + 5), plan=whole)
    assert (more.trials, more.ended_early) == (found.trials + 5, "")
    store.set_campaign_status(1, "interrupted")
    store.extend_campaign(1, found.trials + 8, None)
    assert resumed(store, plan=whole).trials == found.trials + 8  # as it was extended before


def test_the_pool_comes_from_first_points_and_seeds_and_is_stored(store: Store) -> None:
    def plan(*arguments: object) -> object:
        whole = fakes.FAKE.plan(*arguments)  # type: ignore[arg-type]
        return replace(whole, first=(6, 3), model=fakes.Preferring((3, 14)))

    found = begun(store, 6, plan=plan)
    columns = found.campaign.settings.columns
    assert [dict(column.choices)["x"] for column in columns] == [3, 1, 7]
    proposed = store.campaign_proposals(found.campaign.id)
    assert [each.column for each in proposed[:3]] == [columns[0]] * 3  # without a model in their order
    assert [each.number for each in proposed] == [*range(6)]


def test_a_failing_problem_leaves_the_others(store: Store) -> None:
    binds = {PROBLEMS[1]: fakes.failing_bind}
    found = begun(store, bind=lambda _strategies, problem, *_: binds.get(problem, bind))
    assert ([each.has_worked for each in found.runs], found.total_s) == ([True, False, True], None)
    assert not found.has_worked
    assert "not every problem has a time" in repr(found)


def test_events_name_the_run(store: Store) -> None:
    events: list[CampaignEvent] = []
    begin_campaign(limits(6), members(), fakes.backends(), store, Interruption(), events.append)
    assert isinstance(events[0], CampaignStarted)
    done = [each for each in events if isinstance(each, RunEvent) and isinstance(each.event, TrialDone)]
    assert Counter(each.run_index for each in done) == {0: 2, 1: 2, 2: 2}
    assert done[-1].proposed == 6


def test_an_interrupted_campaign_is_resumed_to_its_end(store: Store) -> None:
    interruption = Interruption()

    def observe(event: CampaignEvent) -> None:
        if isinstance(event, RunEvent) and event.proposed >= 7:
            interruption.ask()

    found = begin_campaign(limits(), members(), fakes.backends(), store, interruption, observe)
    assert found.is_interrupted
    assert {each.run.status for each in found.runs} == {"interrupted"}
    with pytest.raises(UsageError, match="run 2: belongs to campaign 1, whose runs share one budget"):
        resume(2, fakes.backends(), store, Interruption())
    whole = resumed(store)
    assert (whole.campaign.status, whole.trials) == ("done", 15)


@pytest.mark.slow
def test_a_campaign_is_extended_to_what_that_budget_would_have_done(store: Store, tmp_path: Path) -> None:
    first = begun(store)
    assert resumed(store) == first
    longer = resumed(store, RunLimit(trials=30))
    assert (longer.trials, longer.campaign.settings.trials) == (30, 30)
    proposed = [each.counts.proposed for each in longer.runs]
    assert [each.run.settings.trials for each in longer.runs] == proposed
    with Store.open(str(tmp_path / "other.db")) as other:
        begun(other, 30)
        at_once = [(each.run, each.column) for each in other.campaign_proposals(1)]
    assert [(each.run, each.column) for each in store.campaign_proposals(1)] == at_once


def test_a_run_of_a_finished_campaign_can_be_extended_and_then_the_campaign_no_more(store: Store) -> None:
    begun(store)
    longer = resume(2, fakes.backends(), store, Interruption(), limit=RunLimit(trials=12))
    assert longer.counts.proposed == 12
    with pytest.raises(UsageError, match="campaign 1: run 2 was extended on its own; start a new campaign"):
        resumed(store, RunLimit(trials=40))


def test_a_limit_below_what_is_done_and_another_compiler_are_refused(store: Store) -> None:
    begun(store)
    other: dict[str, Any] = {"compiler": lambda _target: fakes.OTHER_COMPILER}
    for limit, changes, message in (
        (RunLimit(trials=14), {}, "trials: found 14, but campaign 1 has 15 trials already"),
        (RunLimit(budget_s=1e-9), {}, "budget: found 1e-09 s, but campaign 1 has searched for"),
        (RunLimit(trials=30), other, "run 1: was made by another version of the compiler"),
    ):
        with pytest.raises(UsageError, match=message):
            resumed(store, limit, **changes)


def test_a_budget_of_time_ends_the_search_and_a_large_one_tries_everything_once(store: Store) -> None:
    least = begun(store, None, 1e-9)
    assert (least.trials, least.campaign.status) == (1, "done")
    found = begun(store, 1000)
    assert [each.counts.proposed for each in found.runs] == [20, 20, 20]
    assert found.total_s == pytest.approx(sum(COUNTS) * fakes.BEST_S)
    minutes_ago_s = time.monotonic() - 1000  # the budget is that of the command, which began then
    given = limits(None, 900.0), members(), fakes.backends(), store, Interruption()
    assert begin_campaign(*given, began_s=minutes_ago_s).trials == 1


def test_a_budget_that_seemed_spent_gives_no_proposal_of_a_campaign_more_outcomes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate of what is in flight falls while trials end: the search may go on."""
    seems_spent = np.random.default_rng(0).random(4 * TRIALS) < 0.5
    seems_spent[::2] = False  # after a trial has ended there is time again
    answers = iter(seems_spent)
    told: list[float | None] = []
    knew: dict[int, int] = {}  # trial number -> outcomes known when it was proposed

    class NotingScheduler(Scheduler):
        def suggest(self, number: int) -> NextTrial | None:
            knew[number] = len(told)
            return super().suggest(number)

        def tell(self, problem: int, candidate: Candidate, time_s: float | None) -> None:
            told.append(time_s)
            super().tell(problem, candidate, time_s)

    def is_spent(_settings: object, proposed: int, _spent_s: float) -> bool:
        return proposed >= TRIALS or bool(next(answers))

    monkeypatch.setattr(campaign_session, "is_spent", is_spent)
    monkeypatch.setattr(campaign_session, "Scheduler", NotingScheduler)
    pending_limit = begun(store, TRIALS).runs[0].run.settings.workers + 1
    assert len(told) == TRIALS
    assert knew == {number: max(0, number - pending_limit + 1) for number in range(TRIALS)}


def test_what_cannot_be_tuned_is_refused_before_anything_is_stored(store: Store) -> None:
    def plan(settings: object, machine: object) -> object:
        raise UsageError("no strategy can do it")

    with pytest.raises(UsageError, match="matmul 8x8x8 f32 nn none: no strategy can do it"):
        begun(store, plan=plan)
    with pytest.raises(UsageError, match="no problem to tune"):
        begin_campaign(limits(), (), fakes.backends(), store, Interruption())
    assert store.campaigns() == ()


@pytest.fixture
def finished(store: Store) -> Store:
    begun(store, 5)
    return store


def missing(store: Store) -> tuple[MissingCell, ...]:
    found = campaign_matrix(1, fakes.backends(), store)
    return tuple(
        MissingCell(place, column, cell.candidate)
        for place, row in enumerate(found.cells)
        for column, cell in zip(found.columns, row, strict=True)
        if cell.state == NOT_TRIED and cell.candidate is not None
    )


def measure(store: Store, cells: tuple[MissingCell, ...], interruption: Interruption | None = None) -> int:
    return measure_cells(1, cells, fakes.backends(), store, interruption or Interruption())


@pytest.mark.slow
def test_cells_become_complete_trials_of_their_runs_and_of_the_campaign(finished: Store) -> None:
    cells = missing(finished)
    before = finished.campaign_proposals(1)
    assert cells
    assert (measure(finished, cells), missing(finished)) == (len(cells), ())
    proposals = finished.campaign_proposals(1)
    assert proposals[: len(before)] == before
    assert [each.number for each in proposals] == [*range(len(before) + len(cells))]
    added = proposals[len(before) :]
    assert [each.column for each in added] == [cell.column for cell in cells]
    for each in added:
        outcome = fakes.present(each.proposal.trial).record.outcome
        assert isinstance(outcome, Measurement)
        assert outcome.is_complete
    found = campaign_matrix(1, fakes.backends(), finished)
    assert all(cell.state == TIMED for row in found.cells for cell in row)


@pytest.mark.slow
def test_the_campaign_is_finished_and_can_be_extended_afterwards(finished: Store) -> None:
    index = missing(finished)[0].index
    cells = tuple(cell for cell in missing(finished) if cell.index == index)
    rounds = [len(finished.rounds(run.id)) for run in finished.campaign(1).runs]
    measure(finished, cells)
    campaign = finished.campaign(1)
    assert campaign.status == "done"
    added = [len(finished.rounds(run.id)) - count for run, count in zip(campaign.runs, rounds, strict=True)]
    assert added == [int(each == index) for each in range(3)]
    run = campaign.runs[index]
    assert run.settings.trials == len(finished.trials(TrialQuery(run=run.id)))
    done = len(finished.campaign_proposals(1))
    again = resumed(finished, RunLimit(trials=done + 3))
    assert (again.problems, again.trials) == (PROBLEMS, done + 3)


@pytest.mark.slow
def test_cells_of_a_pruned_campaign_are_stored_and_a_stale_time_counts_no_more(store: Store) -> None:
    begun(store, 12)
    assert store.prune().trials > 0
    cells = missing(store)
    assert (measure(store, cells), missing(store)) == (len(cells), ())
    trial = next(each for each in store.trials(TrialQuery(run=1)) if each.best_s is not None)
    store.mark_stale(trial.id, "failed in an audit")
    states = {
        (cell.state, cell.reason)
        for row in campaign_matrix(1, fakes.backends(), store).cells
        for cell in row
        if cell.trial is not None and cell.trial.id == trial.id
    }
    assert states == {(FAILED, "failed in an audit")}


def test_an_interruption_leaves_the_rest_and_an_unfinished_campaign_is_refused(finished: Store) -> None:
    asked, cells = Interruption(), missing(finished)
    asked.ask()
    assert (measure(finished, cells, asked), missing(finished)) == (0, cells)
    finished.set_campaign_status(1, "interrupted")
    with pytest.raises(UsageError, match="campaign 1: is interrupted"):
        measure(finished, missing(finished))


# A file of shapes, of which a campaign is made; its pool.

EVERYTHING = """\
# the layers of a model
- {op: matmul, shape: 128x768x768, count: 12, name: attention}
- shape: [8, 64, 64, 32]
  dtype: bf16
  layout: nt
  output: bf16
- 1x768x3072
- {shape: 1X768x3072, count: 3, name: "out"}
- {op: batch_matmul, shape: 2x4x4x4, epilogue: bias_relu, align: any, cache: cold}
- {shape: 4x4x4, align: 64, dtype: f64, output: f64}
"""


def written(tmp_path: Path, text: str, name: str = "shapes.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_yaml_and_csv_give_each_problem_once_with_its_count_and_names(tmp_path: Path) -> None:
    expected = (
        NamedProblem(Matmul(128, 768, 768), "attention", 12),
        NamedProblem(BatchMatmul(8, 64, 64, 32, "bf16", "nt", output="bf16")),
        NamedProblem(Matmul(1, 768, 3072), "out", 4),
        NamedProblem(BatchMatmul(2, 4, 4, 4, epilogue="bias_relu", align="any", cache="cold")),
        NamedProblem(Matmul(4, 4, 4, "f64", align=64)),
    )
    assert read_shapes(written(tmp_path, EVERYTHING)) == expected
    nested = "shapes:\n" + "".join(f"  {line}\n" for line in EVERYTHING.splitlines())
    assert read_shapes(written(tmp_path, nested, "nested.yml")) == expected
    text = 'shape,name,count,dtype\n128x768x768,"q, k",12,\n\n 4x8x16 ,,,f64\n'
    assert read_shapes(written(tmp_path, text, "shapes.csv")) == (
        NamedProblem(Matmul(128, 768, 768), "q, k", 12),
        NamedProblem(Matmul(4, 8, 16, "f64")),
    )
    with pytest.raises(UsageError, match=r"shapes\.txt: found the suffix '\.txt', allowed \.yaml, \.csv"):
        read_shapes(tmp_path / "shapes.txt")
    with pytest.raises(UsageError, match="cannot be read"):
        read_shapes(tmp_path / "absent.yaml")


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {shape: 8x8}", r"shapes\.yaml: line 1: shape: found '8x8', allowed MxNxK"),
        ("- {shape: 8x8x8}\n- {op: matmul}", r"shapes\.yaml: line 2: shape: is missing"),
        ("- {shape: 8x8x8}\n\n- {shap: 8x8x8}", r"shapes\.yaml: line 3: key: found 'shap', allowed"),
        (
            "- {shape: 8x8x8, op: conv}",
            r"line 1: op: found 'conv', allowed matmul, batch_matmul, grouped_matmul",
        ),
        ("- {shape: 8x8x8, dtype: f31}", r"line 1: dtype: found 'f31'"),
        ("- {shape: 8x8x8, layout: 1}", r"line 1: layout: found 1, allowed a text"),
        ("- {shape: 8x8x8, count: 0}", r"line 1: count: found 0, allowed 1\.\."),
        ("- {shape: 8x8x8, count: many}", r"line 1: count: found 'many', allowed an integer"),
        ("- {shape: 8x8x8, count: 1.5}", r"line 1: count: found 1\.5, allowed an integer"),
        ("- {shape: 0x8x8}", r"line 1: size m: found 0"),
        ("- {shape: 8x8x8, op: batch_matmul}", r"line 1: shape: found '8x8x8', allowed BxMxNxK"),
        ("- {shape: 8x8x8, shape: 8x8x8}", r"line 1: the key 'shape' is given twice"),
        ("- {shape: 8x8x8}\n- 7", r"line 2: found 7, allowed such as"),
        ("shape: 8x8x8", r"shapes\.yaml: is not a list of problems"),
        ("", r"shapes\.yaml: is not a list of problems"),
        ("[]", r"shapes\.yaml: has no problem"),
        ("- {shape: 8x8x8", r"shapes\.yaml: line \d+, column \d+: found no YAML"),
        ("shape,shap\n", r"shapes\.csv: line 1: column: found 'shap', allowed"),
        ("shape,shape\n", r"shapes\.csv: line 1: the column 'shape' is given twice"),
        ("shape,count\n8x8x8,2\n8x8x8\n", r"shapes\.csv: line 3: found 1 fields, allowed 2"),
        ("shape,count\n8x8x8,-2\n", r"shapes\.csv: line 2: count: found '-2', allowed an integer"),
        ("name\nfirst\n", r"shapes\.csv: line 2: shape: is missing"),
        ('shape\n"8x8x8', r"shapes\.csv: line 2: found no CSV"),
        ("shape\n", r"shapes\.csv: has no problem"),
    ],
)
def test_an_error_is_one_line_with_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_shapes(written(tmp_path, text, "shapes.csv" if "csv" in message else "shapes.yaml"))
    assert "\n" not in raised.value.message


# What a campaign tries of each problem: the columns of all, projected onto it.

SHIPPED = load_space_file(default_space_file())
MACHINE = processor_of("sapphirerapids").machine
NAMES = tuple(f"matmul_cpu_{kind}" for kind in ("packed", "direct", "dot"))
FIRST = tuple(point for name in NAMES for point in SHIPPED.strategy(name).first_on(""))


def place(problem: Problem, count: int = 1) -> PoolProblem:
    variables = variables_of(problem, MACHINE, 1)
    return PoolProblem(problem, count, spaces_for(SHIPPED, problem, MACHINE.isa, variables, None))


def test_every_column_is_projected_onto_every_problem() -> None:
    places = (place(Matmul(128, 768, 768)), place(Matmul(1, 768, 768), 3))
    pool = projected_pool(places, FIRST, MACHINE, 1)
    assert (pool.counts, pool.columns) == ((1, 3), FIRST)
    for each, row in zip(places, pool.candidates, strict=True):
        by_name = {space.strategy: space for space in each.spaces}
        for column, candidate in zip(FIRST, row, strict=True):
            if candidate is not None:
                assert candidate.strategy == column.strategy
                assert by_name[candidate.strategy].violated(candidate) is None
    packed, _, dots = ([at for at, column in enumerate(FIRST) if column.strategy == name] for name in NAMES)
    assert all(pool.candidates[1][at] is None for at in packed)  # m = 1
    assert all(row[at] is None for row in pool.candidates for at in dots)  # layout nn


def test_costs_and_preferences_are_those_of_the_projection() -> None:
    problem = Matmul(100, 300, 200)
    here = place(problem)
    pool = projected_pool((here,), FIRST, MACHINE, 1)
    feasible = FeasibleSet.of(here.spaces)
    projected = zip(pool.candidates[0], pool.costs[0], pool.is_demoted[0], strict=True)
    for candidate, cost, is_demoted in projected:
        if candidate is None:
            assert (cost, is_demoted) == (np.inf, False)
            continue
        assert is_demoted == (feasible.demoted_by(candidate) is not None)
        at = [space.strategy for space in feasible.spaces].index(candidate.strategy)
        model = fakes.present(model_of(feasible.spaces[at], problem, MACHINE, 1))
        within = fakes.present(feasible.row_of(candidate)) - sum(map(len, feasible.index[:at]))
        costs = model.costs(feasible.index[at][within : within + 1], {})
        assert cost == pytest.approx(float(costs[0]))
    bf16, columns = Matmul(64, 64, 64, dtype="bf16"), SHIPPED.strategy("matmul_cpu_amx").first_on("")
    pool = projected_pool((place(bf16),), columns, MACHINE, 1)
    assert set(pool.costs[0]) == {np.inf}
    assert any(candidate is not None for candidate in pool.candidates[0])
