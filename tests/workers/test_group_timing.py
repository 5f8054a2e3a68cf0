from tuner.core.bench import FinalTimes
from tuner.core.errors import Failure, Stage
from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.core.target import Artifact
from tuner.workers.group_timing import Group, time_finals

A, B, C = (Artifact(code, code, ()) for code in "abc")
SLOW = Measurement((1.0,), 1, 1.0, (1.0, 1.0))
BROKEN = Failure(Stage.RUN, "killed by SIGSEGV")


BASELINE = Baseline("cuBLAS 13.1.2", 0, SLOW)


def times(group: Group) -> FinalTimes:
    return FinalTimes((SLOW,) * len(group.artifacts))


def test_what_was_not_compiled_has_no_time() -> None:
    assert time_finals((None, A, None), times) == FinalTimes((None, SLOW, None))


def test_all_are_timed_together_in_one_call() -> None:
    groups = []

    def together(group: Group) -> FinalTimes:
        groups.append(group)
        return times(group)

    time_finals((A, None, B), together)
    assert groups == [Group((A, B), has_baseline=True)]


def test_the_one_that_breaks_the_others_is_left_out() -> None:
    groups = []

    def together(group: Group) -> FinalTimes | Failure:
        groups.append(group.artifacts)
        return BROKEN if B in group.artifacts else times(group)

    assert time_finals((A, B, C), together) == FinalTimes((SLOW, None, SLOW), reason=BROKEN.reason)
    assert groups == [(A, B, C), (A,), (B,), (C,), (A, C)]


def test_the_baseline_library_that_took_turns_is_told() -> None:
    def together(group: Group) -> FinalTimes:
        return FinalTimes(times(group).times, BASELINE if group.has_baseline else None)

    assert time_finals((A, None), together) == FinalTimes((SLOW, None), BASELINE)


def test_a_baseline_library_that_breaks_the_others_is_left_out() -> None:
    def together(group: Group) -> FinalTimes | Failure:
        return BROKEN if group.has_baseline else times(group)

    assert time_finals((A, B), together) == FinalTimes((SLOW, SLOW), reason=BROKEN.reason)


def test_those_that_only_break_together_have_no_time() -> None:
    def together(group: Group) -> FinalTimes | Failure:
        return BROKEN if len(group.artifacts) > 1 else times(group)

    assert time_finals((A, B), together) == FinalTimes((None, None), reason=BROKEN.reason)


def test_nothing_is_asked_for_nothing() -> None:
    def together(group: Group) -> FinalTimes:
        raise AssertionError("nothing to time")

    found = time_finals((None, None), together)
    assert found == FinalTimes((None, None), reason="nothing compiles any more")


def test_the_same_code_twice_is_told_twice() -> None:
    assert time_finals((A, A), times) == FinalTimes((SLOW, SLOW))
