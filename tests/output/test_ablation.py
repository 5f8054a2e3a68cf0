from tests.analysis.test_ablation import grid, of
from tests.trials import measurement, run
from tuner.analysis.ablation import TooFew, ablate
from tuner.output.ablation import ablation_document, ablation_lines


def test_strategies_are_compared_where_the_best_one_has_too_few_trials() -> None:
    few = tuple(of(number, "quick", {"tile": number}, measurement(1e-4)) for number in range(40, 44))
    ablation = ablate((*grid(), *few))
    assert isinstance(ablation, TooFew)
    first, *_, quick, slow = ablation_lines(run(), ablation, "")
    assert first == "ablation  run 3: found 4 measured trials of quick, allowed 20 or more to compare knobs"
    assert (quick.split()[:2], slow.split()[:2]) == (["quick", "4"], ["s", "32"])
    assert ablation_lines(run(), ablation, "load")[1] == "badge     unreliable: load"
    document = ablation_document(run(), ablation)
    assert (document["knobs"], len(document["strategies"])) == ((), 2)
