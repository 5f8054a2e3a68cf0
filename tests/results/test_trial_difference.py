from dataclasses import replace

import pytest

from tests import trials
from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.errors import Failure, Stage
from tuner.results.differences import trial_difference

RUN = trials.run()
FAST = trials.trial(1, trials.measurement(1e-3), trials.measurement(1e-3), knobs=2)
SLOW = trials.top_trial(2, trials.measurement(2e-3))
FAILED = trials.trial(3, Failure(Stage.VERIFY, "wrong"))


def test_knobs_that_one_does_not_have_differ() -> None:
    found = trial_difference(RUN, FAST, SLOW, (), ())
    assert found.knobs == (("knob_0", 1, 2), ("knob_1", 1, None))


def test_the_second_is_compared_with_the_first() -> None:
    found = trial_difference(RUN, FAST, SLOW, (), ())
    assert isinstance(found.compared, Comparable)
    assert found.compared.longer == pytest.approx(1.0)
    assert trial_difference(RUN, FAST, FAILED, (), ()).compared is None


def test_first_times_and_those_of_another_run_are_not_compared() -> None:
    for other in (replace(FAST, final=None), replace(FAST, run=4)):
        found = trial_difference(RUN, other, SLOW, (), ())
        assert found.compared == NotComparable("not timed interleaved in one round")


def test_only_stages_that_both_have_are_compared() -> None:
    ours = (("script", "a\nb\nc"), ("payload", "p"), ("code", "    llvm.store %2, %1"))
    found = trial_difference(RUN, FAST, SLOW, ours, (("script", "a\nx\nc\nd"), ("payload", "p")))
    script, payload = found.stages
    assert (script.stage, script.added, script.removed) == ("script", 2, 1)
    assert (payload.stage, payload.lines) == ("payload", ())
    assert found.first_stage == "script"
    assert found.instructions == ()


def test_the_first_stage_is_the_first_whose_texts_differ() -> None:
    ours, theirs = (
        (("script", "a"), ("loops", "b"), ("code", "c")),
        (("script", "a"), ("loops", "x"), ("code", "y")),
    )
    assert trial_difference(RUN, FAST, SLOW, ours, theirs).first_stage == "loops"
    assert trial_difference(RUN, FAST, SLOW, ours, ours).first_stage is None


def test_instructions_are_reported_whose_counts_differ() -> None:
    store, load = "    llvm.store %2, %1\n", "    %3 = llvm.load %1\n"
    found = trial_difference(RUN, FAST, SLOW, (("code", store * 2 + load),), (("code", store + load * 9),))
    assert found.instructions == (("load", 1, 9), ("store", 2, 1))
