import threading

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.targets.cpu.started_threads import no_thread_started


def test_a_thread_that_goes_on_is_seen() -> None:
    done = threading.Event()
    with (
        pytest.raises(CandidateError, match=r"^started 1 threads that go on after it returned$") as caught,
        no_thread_started(),
    ):
        threading.Thread(target=done.wait, daemon=True).start()
    done.set()
    assert caught.value.stage == Stage.RUN


def test_threads_of_before_are_none_of_its_doing() -> None:
    done = threading.Event()
    threading.Thread(target=done.wait, daemon=True).start()
    with no_thread_started():
        pass
    done.set()
