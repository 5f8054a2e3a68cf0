from tests.output.report.values import many
from tests.trials import measurement, trial
from tuner.analysis.ablation import Ablation, ablate
from tuner.core.runs import StoredTrial
from tuner.output.report.importance import importance_bars, knob_rows, strategy_rows


def ablation_of(trials: tuple[StoredTrial, ...]) -> Ablation:
    found = ablate(trials)
    assert isinstance(found, Ablation)
    return found


def test_the_most_important_knob_has_the_longest_bar() -> None:
    shares = [bar.share for bar in importance_bars(ablation_of(many(40)))]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1


def test_gains_are_told_of_times_that_are_trusted_only() -> None:
    ablation = ablation_of(many(40))
    assert [", gain" in bar.figure for bar in importance_bars(ablation)] == [True, True]
    assert not any("gain" in bar.figure for bar in importance_bars(ablation, is_trusted=False))


def test_each_row_of_the_tables_is_as_wide_as_its_head() -> None:
    for rows in (knob_rows(ablation_of(many(40))), strategy_rows(ablation_of(many(40)))):
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 1


def test_without_a_knob_that_varies_only_strategies_are_told() -> None:
    alike = ablation_of(tuple(trial(n, measurement(1e-3), knobs=0) for n in range(30)))
    assert importance_bars(alike) == ()
    assert len(strategy_rows(alike)) == 2
