from tuner.errors import Failure, Stage
from tuner.record import Measurement
from tuner.target import Artifact
from tuner.workers.finals import Times, time_finals

A, B, C = (Artifact(code, code, ()) for code in "abc")
SLOW = Measurement((1.0,), 1, 1.0, (1.0, 1.0))
BROKEN = Failure(Stage.RUN, "killed by SIGSEGV")


def times(group: tuple[Artifact, ...]) -> Times:
    return (SLOW,) * len(group)


def test_what_was_not_compiled_has_no_time() -> None:
    assert time_finals((None, A, None), times) == (None, SLOW, None)


def test_all_are_timed_together_in_one_call() -> None:
    groups = []

    def together(group: tuple[Artifact, ...]) -> Times:
        groups.append(group)
        return times(group)

    time_finals((A, None, B), together)
    assert groups == [(A, B)]


def test_the_one_that_breaks_the_others_is_left_out() -> None:
    groups = []

    def together(group: tuple[Artifact, ...]) -> Times | Failure:
        groups.append(group)
        return BROKEN if B in group else times(group)

    assert time_finals((A, B, C), together) == (SLOW, None, SLOW)
    assert groups == [(A, B, C), (A,), (B,), (C,), (A, C)]


def test_those_that_only_break_together_have_no_time() -> None:
    def together(group: tuple[Artifact, ...]) -> Times | Failure:
        return BROKEN if len(group) > 1 else times(group)

    assert time_finals((A, B), together) == (None, None)


def test_nothing_is_asked_for_nothing() -> None:
    def together(group: tuple[Artifact, ...]) -> Times:
        raise AssertionError("nothing to time")

    assert time_finals((None, None), together) == (None, None)


def test_the_same_code_twice_is_told_twice() -> None:
    assert time_finals((A, A), times) == (SLOW, SLOW)
