import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import bind
from tests.tuning import fakes
from tests.tuning.test_group_run import PROBLEMS, limits, members
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.db.store import Store
from tuner.library.dispatch.portfolio import campaign_portfolio, measured_campaign, measured_portfolio
from tuner.results.campaign_matrix import FAILED, campaign_matrix
from tuner.targets.backends import Backends
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption


def sometimes_failing(candidate: Candidate) -> Script:
    return (fakes.failing_bind if dict(candidate.choices)["x"] == 0 else bind)(candidate)


def custom_for_odd(candidate: Candidate) -> Script:
    script = bind(candidate)
    odd = int(dict(candidate.choices)["x"]) % 2
    return Script.of(script.text + '\n"tuner.prefetch"(%0) : (i32) -> ()\n' * odd)


def grouped(store: Store, backends: Backends, trials: int = 9) -> Store:
    begin_campaign(limits(trials), members(), backends, store, Interruption())
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        yield opened


@pytest.mark.slow
def test_each_round_of_a_cell_is_kept_and_the_least_counts(store: Store) -> None:
    grouped(store, fakes.backends())
    found = campaign_matrix(1, fakes.backends(), store)
    measured = measured_campaign(found, store.campaign(1))
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
    measured = measured_campaign(found, store.campaign(1))
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
    assert len(after.regret().known) == len(PROBLEMS)


@pytest.mark.slow
def test_stock_configurations_alone_are_chosen_where_wanted(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: custom_for_odd)
    grouped(store, backends, trials=40)
    found = campaign_portfolio(1, 4, backends, store, is_stock=True)
    assert all(int(dict(column.choices)["x"]) % 2 == 0 for column in found.columns)
    assert len(found.allowed) < len(found.measured.matrix.columns)


@pytest.mark.slow
def test_an_interruption_raises_after_what_was_measured_is_stored(store: Store) -> None:
    grouped(store, fakes.backends(), trials=5)
    asked = Interruption()
    asked.ask()
    with pytest.raises(KeyboardInterrupt):
        measured_portfolio(1, 2, fakes.backends(), store, asked)


@pytest.mark.slow
def test_a_campaign_without_a_time_is_refused(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    grouped(store, backends)
    with pytest.raises(UsageError, match="campaign 1: has no time"):
        campaign_portfolio(1, 1, backends, store)
