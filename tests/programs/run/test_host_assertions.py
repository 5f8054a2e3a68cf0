"""Code that calls ``puts`` and ``abort`` as lowered assertions do, and code that fails otherwise."""

import ctypes
import threading
from collections.abc import Callable

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.programs.run.host_errors import ABORT, PUTS, HostAssertions


def failing(assertions: HostAssertions, *, aborts: bool) -> Callable[[], None]:
    addresses = assertions.addresses()
    puts = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(addresses[PUTS])
    abort = ctypes.CFUNCTYPE(None)(addresses[ABORT])

    def code() -> None:
        puts(b"x is\nodd")
        if aborts:
            abort()

    return code


@pytest.mark.parametrize("aborts", [False, True])
def test_an_assertion_is_an_error_of_the_call(*, aborts: bool) -> None:
    assertions = HostAssertions(aborts=aborts)
    code = failing(assertions, aborts=aborts)
    with pytest.raises(CandidateError, match=r"^the program's assertion fails: x is odd$") as failure:
        assertions.call(code)
    assert failure.value.stage is Stage.RUN
    assertions.call(lambda: None)  # the next call has forgotten it


@pytest.mark.parametrize("aborts", [False, True])
def test_another_exception_reaches_the_caller(*, aborts: bool) -> None:
    def code() -> None:
        raise ValueError("no such function")

    with pytest.raises(ValueError, match="no such function"):
        HostAssertions(aborts=aborts).call(code)


def test_only_so_many_failures_may_keep_a_thread() -> None:
    assertions = HostAssertions(aborts=True, limit=2)
    code = failing(assertions, aborts=True)
    for _ in range(2):
        with pytest.raises(CandidateError, match="assertion fails"):
            assertions.call(code)
    threads = threading.active_count()
    with pytest.raises(
        CandidateError, match=r"^found 2 failed assertions of the program, allowed 2"
    ) as error:
        assertions.call(code)
    assert error.value.stage is Stage.RUN
    assert threading.active_count() == threads
