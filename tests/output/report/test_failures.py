from tests.output.report.parsed import Parsed, parsed
from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.output.report.failures import LINKS_SHOWN, failure_kinds, failures

SPILLS = (
    trial(0, Failure(Stage.COMPILE, "spills 12 bytes")),
    trial(1, Failure(Stage.COMPILE, "spills 7 bytes")),
    trial(2, Failure(Stage.RUN, "spills 7 bytes")),
)


def drawn(trials: tuple[StoredTrial, ...], listed: frozenset[int] = frozenset()) -> Parsed:
    return parsed(failures(3, failure_kinds(trials), listed))


def test_failures_are_gathered_by_stage_and_reason_without_numbers() -> None:
    kinds = failure_kinds((*SPILLS, trial(3, measurement(1.0)), trial(4, None)))
    assert [(each.stage, each.reason, each.trials) for each in kinds] == [
        (Stage.COMPILE, "spills 12 bytes", (100, 101)),
        (Stage.RUN, "spills 7 bytes", (102,)),
    ]


def test_each_stage_has_a_bar_in_the_order_of_stages() -> None:
    found = drawn(SPILLS[::-1])
    widths = [float(each["width"]) for each in found.of("rect", "failed")]
    assert widths == [1000, 500]
    assert found.text.startswith("compile2 trialsrun1 trial")


def test_a_kind_leads_to_its_trials_that_are_listed() -> None:
    found = drawn(SPILLS, frozenset({100, 102}))
    assert [each["href"] for each in found.of("a")] == ["#t100", "#t102"]
    assert [each["id"] for each in found.of("details")] == ["failure-3-0", "failure-3-1"]
    assert "and 1 more: tuner history --run 3 --status failed" in found.text


def test_a_kind_of_many_trials_leads_to_some() -> None:
    trials = tuple(trial(n, Failure(Stage.COMPILE, "no")) for n in range(LINKS_SHOWN + 5))
    found = drawn(trials, frozenset(each.id for each in trials))
    assert len(found.of("a")) == LINKS_SHOWN
    assert "and 5 more" in found.text


def test_rare_kinds_of_failure_are_left_out_and_that_is_told() -> None:
    trials = tuple(trial(n, Failure(Stage.COMPILE, "x" * n)) for n in range(1, 20))
    assert "7 rarer kinds left out." in drawn(trials).text


def test_without_failures_there_are_none() -> None:
    assert drawn((trial(0, measurement(1.0)),)).text == "None."
