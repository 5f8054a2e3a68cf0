"""Code that calls ``puts`` and ``abort`` as lowered assertions do, and code that fails otherwise."""

import ctypes

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.programs.run.host_assertions import ABORT, PUTS, HostAssertions


def test_an_assertion_is_an_error_of_the_call() -> None:
    assertions = HostAssertions()
    addresses = assertions.addresses()
    puts = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(addresses[PUTS])
    abort = ctypes.CFUNCTYPE(None)(addresses[ABORT])

    def code() -> None:
        puts(b"x is\nodd")
        abort()

    with pytest.raises(CandidateError, match=r"^the program's assertion fails: x is odd$") as failure:
        assertions.call(code)
    assert failure.value.stage is Stage.RUN
    assertions.call(lambda: None)  # the next call has forgotten it


def test_another_exception_reaches_the_caller() -> None:
    def code() -> None:
        raise ValueError("no such function")

    with pytest.raises(ValueError, match="no such function"):
        HostAssertions().call(code)
