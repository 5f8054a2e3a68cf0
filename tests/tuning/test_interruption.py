import pytest

from tuner.tuning.events import Interruption


def test_a_request_cuts_waiting_off() -> None:
    interruption = Interruption()
    with pytest.raises(KeyboardInterrupt), interruption.waiting():
        interruption.ask()
    assert interruption.is_asked


def test_a_request_waits_for_what_must_not_be_cut_off() -> None:
    interruption = Interruption()
    interruption.ask()  # while storing: nothing is raised
    assert interruption.is_asked


def test_waiting_does_not_begin_after_a_request() -> None:
    interruption = Interruption()
    interruption.ask()
    reached = False
    with pytest.raises(KeyboardInterrupt), interruption.waiting():
        reached = True
    assert not reached


def test_a_request_after_waiting_raises_nothing() -> None:
    interruption = Interruption()
    with interruption.waiting():
        pass
    interruption.ask()
    assert interruption.is_asked
