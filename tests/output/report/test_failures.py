from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.output.report.failures import LINKS_SHOWN, failure_kinds, stage_bars

SPILLS = (
    trial(0, Failure(Stage.COMPILE, "spills 12 bytes")),
    trial(1, Failure(Stage.COMPILE, "spills 7 bytes")),
    trial(2, Failure(Stage.RUN, "spills 7 bytes")),
)


def test_failures_are_gathered_by_stage_and_reason_without_numbers() -> None:
    kinds = failure_kinds(3, (*SPILLS, trial(3, measurement(1.0))))
    assert [(each.stage, each.reason, each.trials) for each in kinds] == [
        (Stage.COMPILE, "spills 12 bytes", (100, 101)),
        (Stage.RUN, "spills 7 bytes", (102,)),
    ]


def test_each_stage_has_a_bar_in_the_order_of_stages() -> None:
    bars = stage_bars(failure_kinds(3, SPILLS[::-1]))
    assert [(bar.name, bar.share, bar.figure) for bar in bars] == [
        ("compile", 1.0, "2 trials"),
        ("run", 0.5, "1 trial"),
    ]


def test_a_kind_leads_to_its_trials_that_are_listed_and_of_many_to_some() -> None:
    spills, crashes = failure_kinds(3, SPILLS)
    assert spills.linked(frozenset({100, 102})) == (100,)
    assert crashes.linked(frozenset({100, 102})) == (102,)
    trials = tuple(trial(n, Failure(Stage.COMPILE, "no")) for n in range(LINKS_SHOWN + 5))
    (many,) = failure_kinds(3, trials)
    assert many.linked(frozenset(many.trials)) == many.trials[:LINKS_SHOWN]


def test_rare_kinds_of_failure_have_no_place() -> None:
    trials = tuple(trial(n, Failure(Stage.COMPILE, "x" * n)) for n in range(1, 20))
    places = [kind.place for kind in failure_kinds(3, trials)]
    assert places == [*(f"failure-3-{index}" for index in range(12)), *[""] * 7]
