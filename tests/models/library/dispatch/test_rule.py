import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from tests.analysis.matrices import matrix_of
from tests.fakes import bind
from tests.models.library.dispatch.rules import configurations, machine, rule_of, space
from tests.results.report.test_campaign_section import sometimes_failing
from tests.tuning import fakes
from tests.tuning.test_fake_campaign import PROBLEMS as OF_CAMPAIGN
from tests.tuning.test_fake_campaign import limits, members
from tuner.analysis.portfolio import (
    NewProblem,
    choose_portfolio,
    ranked_columns,
    regret_held_out,
    regret_in_sample,
)
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.reliability import RELIABLE
from tuner.core.runs import Compiler
from tuner.db.store import Store
from tuner.results import portfolio
from tuner.results.campaign_matrix import FAILED, campaign_matrix
from tuner.results.portfolio import (
    MeasuredCampaign,
    campaign_portfolio,
    dispatch_rule,
    measured_portfolio,
)
from tuner.space.file.reading import parse_space
from tuner.targets.backends import Backends
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.rule import StatedRegret, parse_rule, read_rule, rule_text

PROBLEMS = (Matmul(8, 64, 64), Matmul(32, 64, 64))
RULE = rule_of({PROBLEMS[0]: (2e-6, 1e-6), PROBLEMS[1]: (1e-6, 2e-6)})


def test_a_rule_is_a_matrix_of_the_least_rounds_and_finds_exact_sizes_alone() -> None:
    slower = replace(RULE.problems[0], rounds_s=((2.5e-6, 2e-6), (1e-6,)))
    matrix = replace(RULE, problems=(slower, RULE.problems[1])).matrix()
    assert (matrix.times_s, matrix.columns) == (((2e-6, 1e-6), (1e-6, 2e-6)), RULE.columns)
    assert matrix.applies == ((True, True), (True, True))
    assert RULE.tuned(PROBLEMS[0]) == RULE.problems[0]
    assert RULE.tuned(Matmul(9, 64, 64)) is None
    assert RULE.tuned(Matmul(8, 64, 64, layout="nt")) is None


UNFIT = [
    ({"configurations": ()}, "is empty"),
    ({"configurations": (RULE.configurations[0],) * 2}, "has one twice"),
    ({"problems": (RULE.problems[0],) * 2}, "problems: has one twice"),
    ({"problems": (replace(RULE.problems[0], rounds_s=((1e-6,),)),)}, "lists of another length, allowed 2"),
    ({"problems": (replace(RULE.problems[0], serves=2),)}, r"serves: found 2, allowed 0\.\.1"),
]


@pytest.mark.parametrize(("changes", "message"), UNFIT)
def test_a_table_that_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(RULE, **changes)  # type: ignore[arg-type]


def test_a_dispatch_rule_chooses_as_the_matrix_does() -> None:
    times = [[4.1, 2.3, 1.0, 3.2], [1.0, 2.2, 4.5, 3.1], [2.4, 1.0, 4.7, 3.3]]
    costs = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 2.0, 5.0]]
    columns = tuple(Candidate.of("matmul_cpu_direct", {"tile_m": tile}) for tile in range(1, 5))
    matrix = replace(matrix_of(times, costs=costs), columns=columns)
    chosen = choose_portfolio(matrix, 2)
    rounds = tuple(tuple((time, 1.1 * time) for time in row) for row in times)
    compiler = Compiler("22", (), "0" * 64)
    campaign = MeasuredCampaign(matrix, rounds, (None, 0.5, None), (RELIABLE,) * 3, machine(), 1, compiler)
    regret = StatedRegret.of(regret_in_sample(matrix, chosen), regret_held_out(matrix, 2))
    rule = dispatch_rule(campaign, chosen, regret)

    assert rule.columns == tuple(matrix.columns[column] for column in chosen.columns)
    serving = [chosen.columns.index(column) for column in chosen.serving if column is not None]
    assert [each.serves for each in rule.problems] == serving
    assert rule.problems[1].baseline_s == 0.5
    assert rule.problems[0].rounds_s == tuple(rounds[0][column] for column in chosen.columns)
    assert rule.regret is not None
    assert rule.regret.geomean == regret_in_sample(matrix, chosen).geomean
    for problem in (matrix.problems[1], Matmul(6, 64, 64), Matmul(100, 640, 64)):
        asked = NewProblem(problem, (True,) * 4, (1.0, 1.1, 1.2, 1.3))
        costs_of_rule = tuple(asked.costs[column] for column in chosen.columns)
        of_rule = NewProblem(problem, (True,) * 2, costs_of_rule)
        found = ranked_columns(matrix, asked, chosen.columns)
        expected = tuple(chosen.columns[place] for place in ranked_columns(rule.matrix(), of_rule).columns)
        if found.source != "cost model":  # whose residuals are relative to the configurations in the table
            assert found.columns == expected


def test_regret_is_not_stated_where_nothing_was_timed() -> None:
    matrix = matrix_of([[None, None]], applies=[[True, True]])
    chosen = choose_portfolio(matrix, 1)
    assert StatedRegret.of(regret_in_sample(matrix, chosen), regret_held_out(matrix, 1)) is None


F64 = Matmul(32, 64, 64, dtype="f64", layout="nt")
RULE_FILE_RULE = rule_of({Matmul(8, 64, 64): (2e-6, 1e-6), F64: (1e-6, 2e-6)})
FILE = rule_text(RULE_FILE_RULE)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mm.rule.yaml"
    path.write_text(text)
    return path


def test_a_file_is_read_as_it_was_written_and_yaml_that_a_person_can_read(tmp_path: Path) -> None:
    text = rule_text(RULE_FILE_RULE)
    assert read_rule(written(tmp_path, text), space()) == RULE_FILE_RULE
    assert text.startswith("format: tuner-rule\nversion: 1\nsha256: ")
    assert "strategy: matmul_cpu_direct" in text
    assert "held_out_geomean: 0.95" in text
    assert max(map(len, text.splitlines())) <= 250


DAMAGED = {
    "cut off": FILE[:-40],
    "a value": FILE.replace("held_out_geomean: 0.95", "held_out_geomean: 0.96"),
    "a line": FILE + "more: 1\n",
    "head alone": "format: tuner-rule\nversion: 1\n",
}


@pytest.mark.parametrize("changed", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, changed: str) -> None:
    with pytest.raises(UsageError, match="damaged or was changed") as caught:
        read_rule(written(tmp_path, changed), space())
    assert "\n" not in caught.value.message
    assert caught.value.hint.startswith("tuner portfolio")


def test_another_file_and_another_version_are_refused() -> None:
    for text, message in (
        ("", "found format '', allowed 'tuner-rule'"),
        ("strategies: {}\n", "found format 'strategies: {}', allowed 'tuner-rule'"),
        (FILE.replace("version: 1", "version: 2", 1), "found version 2 of tuner-rule, allowed 1"),
        (FILE.replace("version: 1", "version: one", 1), "found version 'one'"),
    ):
        with pytest.raises(UsageError, match=message):
            parse_rule(text, "mm.rule.yaml")


def test_a_file_of_another_machine_search_space_or_number_of_threads_is_refused(tmp_path: Path) -> None:
    known = RULE_FILE_RULE
    of_others = tuple(replace(each, strategy="mine") for each in known.configurations[:1])
    for rule, threads, message in (
        (replace(known, machine="Xeon (avx2)"), 1, r"was measured on 'Xeon .*', this machine is"),
        (replace(known, space_sha256="0" * 64), 1, "belongs to another search space"),
        (replace(known, configurations=of_others, problems=()), 1, "belongs to another search space"),
        (known, 2, "was measured with threads=1, not with 2"),
    ):
        with pytest.raises(UsageError, match=message):
            read_rule(written(tmp_path, rule_text(rule)), space(threads))


def test_a_file_that_is_not_there_and_a_wrong_value_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mm\.rule\.yaml: cannot be read"):
        read_rule(tmp_path / "mm.rule.yaml", space())
    broken = replace(RULE_FILE_RULE, problems=(replace(RULE_FILE_RULE.problems[0], rounds_s=((-1.0,), ())),))
    with pytest.raises(UsageError, match=r"problems\[0\]\.rounds_s\[0\]\[0\]: found -1\.0, allowed seconds"):
        parse_rule(rule_text(broken), "mm.rule.yaml")


PACKED, DIRECT = (each.candidate for each in configurations())


def test_a_direct_configuration_applies_to_any_problem() -> None:
    for problem in (Matmul(1, 1, 1), Matmul(1, 7, 3), Matmul(3, 5, 2, dtype="f64")):
        found = space().projected(problem, (PACKED, DIRECT))
        assert found.candidates[1] is not None, problem
        assert found.costs[1] < float("inf")
        assert "linalg.matmul" in space().script(problem, found.candidates[1]).text


def test_a_configuration_that_does_not_apply_has_no_cost_and_an_unsupported_problem_is_refused() -> None:
    found = space().projected(Matmul(1, 8, 8), (PACKED, Candidate.of("unknown", {})))
    assert found.candidates == (None, None)
    assert found.costs == (float("inf"),) * 2
    assert found.new_problem.applies == (False, False)
    with pytest.raises(UsageError, match="no strategy can do"):
        space().projected(Matmul(8, 8, 8, dtype="tf32"), (DIRECT,))


@pytest.mark.slow
def test_the_hash_covers_what_a_configuration_means_and_nothing_else() -> None:
    text = space().space_file.text
    names = ("matmul_cpu_packed", "matmul_cpu_direct")
    known = space().sha256(names)

    def with_text(changed: str) -> str:
        assert changed != text
        return replace(space(), space_file=parse_space(changed, "changed.yaml")).sha256(names)

    assert space().sha256(reversed(names)) == known
    assert with_text("# a comment\n" + text) == known
    assert with_text(text.replace('"tile_m <= m"', '"tile_m < m"')) != known
    assert with_text(text.replace("tile_m: [2, 4, 6, 8, 10, 12, 14]", "tile_m: [2, 4, 6]")) != known
    assert space().sha256(names[:1]) != known


# The portfolio of a campaign, with its dispatch rule; its missing times are measured.


def custom_for_odd(candidate: Candidate) -> Script:
    script = bind(candidate)
    odd = int(dict(candidate.choices)["x"]) % 2
    return Script.of(script.text + '\n"tuner.prefetch"(%0) : (i32) -> ()\n' * odd)


def grouped(store: Store, backends: Backends, trials: int = 9) -> Store:
    begin_campaign(limits(trials), members(), backends, store, Interruption())
    return store


@pytest.mark.slow
def test_each_round_of_a_cell_is_kept_and_the_least_counts(store: Store) -> None:
    grouped(store, fakes.backends())
    found = campaign_matrix(1, fakes.backends(), store)
    measured = portfolio.measured_campaign(found, store.campaign(1))
    for row, cells in enumerate(found.cells):
        for column, cell in enumerate(cells):
            rounds = measured.rounds_s[row][column]
            assert measured.matrix.times_s[row][column] == min(rounds, default=None)
            finals = [] if cell.trial is None or cell.trial.final is None else [cell.trial.final.median_s]
            assert list(rounds[1:]) == finals
    assert measured.machine == store.campaign(1).runs[0].machine
    assert all(baseline_s is not None for baseline_s in measured.baselines_s)


@pytest.mark.slow
def test_a_configuration_that_failed_on_a_problem_does_not_serve_it(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: sometimes_failing)
    grouped(store, backends, trials=40)
    found = campaign_matrix(1, backends, store)
    measured = portfolio.measured_campaign(found, store.campaign(1))
    pairs = itertools.product(range(len(found.cells)), range(len(found.cells[0])))
    failed = [(row, column) for row, column in pairs if found.cells[row][column].state == FAILED]
    assert failed
    assert not any(measured.matrix.applies[row][column] for row, column in failed)


@pytest.mark.slow
def test_nothing_is_missing_after_it_was_measured(store: Store) -> None:
    grouped(store, fakes.backends(), trials=5)
    before = campaign_portfolio(1, 2, fakes.backends(), store)
    reported: list[int] = []
    after = measured_portfolio(1, 2, fakes.backends(), store, Interruption(), report_missing=reported.append)
    assert reported == [len(before.missing)]
    assert before.missing
    assert after.missing == ()
    assert set(after.columns) == set(before.columns)
    assert len(after.regret().known) == len(OF_CAMPAIGN)


@pytest.mark.slow
def test_stock_configurations_alone_are_chosen_where_wanted(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: custom_for_odd)
    grouped(store, backends, trials=40)
    found = campaign_portfolio(1, 4, backends, store, is_stock=True)
    assert all(int(dict(column.choices)["x"]) % 2 == 0 for column in found.columns)
    assert len(found.allowed) < len(found.measured.matrix.columns)


def test_an_interruption_raises_after_what_was_measured_is_stored(store: Store) -> None:
    grouped(store, fakes.backends(), trials=5)
    asked = Interruption()
    asked.ask()
    with pytest.raises(KeyboardInterrupt):
        measured_portfolio(1, 2, fakes.backends(), store, asked)


def test_a_campaign_without_a_time_is_refused(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    grouped(store, backends)
    with pytest.raises(UsageError, match="campaign 1: has no time"):
        campaign_portfolio(1, 1, backends, store)
