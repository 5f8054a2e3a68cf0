from dataclasses import replace

from tests.trials import measurement, trial
from tuner.analysis.selected_result import complexity, knobs_on, script_lines
from tuner.core.candidate import Candidate, Value


def test_comments_and_blank_lines_do_not_make_a_script_longer() -> None:
    assert script_lines("// why\n\nmodule {\n  // what\n}\n") == 2


def test_knobs_that_leave_something_out_do_not_count() -> None:
    values: dict[str, Value] = {"block": 0, "unroll": 1, "split": "none", "tile": 8, "order": "ji"}
    assert knobs_on(Candidate.of("s", values)) == 2


def test_a_shorter_script_is_simpler_whatever_its_knobs() -> None:
    short = trial(4, measurement(1.0), script="a\n", knobs=9)
    assert complexity(short) < complexity(trial(4, measurement(1.0), script="a\nb\n", knobs=1))


def test_of_equal_scripts_the_one_that_does_less_is_simpler() -> None:
    busy = trial(4, measurement(1.0))
    idle = replace(busy, record=replace(busy.record, candidate=Candidate.of("fake", {"knob_0": 0})))
    assert complexity(idle) < complexity(busy)
