from tests.output.report.parsed import parsed
from tests.output.report.values import many
from tests.trials import measurement, trial
from tuner.analysis.ablation import Ablation, ablate
from tuner.output.report.bars import WIDTH
from tuner.output.report.importance import importance


def ablation_of(count: int) -> Ablation:
    found = ablate(many(count))
    assert isinstance(found, Ablation)
    return found


def test_the_most_important_knob_has_the_longest_bar() -> None:
    drawn = parsed(importance(ablation_of(40)))
    widths = [float(each["width"]) for each in drawn.of("rect", "ours")]
    assert widths[0] == WIDTH
    assert widths == sorted(widths, reverse=True)
    assert "40 measured trials of fake" in drawn.text


def test_each_figure_of_the_tables_knows_its_column() -> None:
    drawn = parsed(importance(ablation_of(40)))
    assert len(drawn.of("table", "cards")) == 2
    assert all(each["data-label"] for each in drawn.of("td"))
    assert all(each["scope"] in ("col", "row") for each in drawn.of("th"))


def test_without_a_knob_that_varies_only_strategies_are_told() -> None:
    alike = tuple(trial(n, measurement(1e-3), knobs=0) for n in range(30))
    found = ablate(alike)
    assert isinstance(found, Ablation)
    assert parsed(importance(found)).of("rect") == []
