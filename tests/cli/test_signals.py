import os
import signal
import threading

import pytest

from tuner.cli.session import ended_by_signals
from tuner.tuning.events import Interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_the_run_to_end(number: signal.Signals) -> None:
    interruption = Interruption()
    with ended_by_signals(interruption):
        os.kill(os.getpid(), number)
        assert interruption.is_asked


def test_handlers_are_what_they_were_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with ended_by_signals(Interruption()):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_another_thread_leaves_the_handlers_alone() -> None:
    seen = []

    def work() -> None:
        with ended_by_signals(Interruption()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
