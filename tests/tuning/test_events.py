"""What is looked at before a run begins: load, and the processors that this process may use."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.processors import PresentLoad, Processors
from tuner.db.store import Store
from tuner.targets.backends import Backends
from tuner.tuning.events import Event, Interruption, MachineBusy, RunStarted
from tuner.tuning.run import begin, resume

PINNED = """import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import tuner.cli
tuner.cli.main()
"""


def busy(load: PresentLoad) -> Backends:
    return dataclasses.replace(fakes.backends(), present_load=lambda: load)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("load", "is_reported"),
    [
        (PresentLoad(busy=0.1, stolen=0.0), False),
        (PresentLoad(busy=1.8, stolen=0.0), True),
        (PresentLoad(busy=0.0, stolen=0.2), True),
    ],
)
def test_load_is_reported_before_timing(store: Store, load: PresentLoad, is_reported: bool) -> None:
    events: list[Event] = []
    begin(fakes.settings(), busy(load), store, Interruption(), events.append)
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[1], MachineBusy) is is_reported
    assert sum(isinstance(event, MachineBusy) for event in events) == is_reported


@pytest.mark.slow
def test_load_is_reported_before_the_best_are_timed_again(store: Store) -> None:
    run = begin(fakes.settings(), fakes.backends(), store, Interruption()).run.id
    events: list[Event] = []
    resume(run, busy(PresentLoad(1.8, 0.0)), store, Interruption(), events.append, retime=True)
    assert events[1] == MachineBusy(run, PresentLoad(1.8, 0.0), 2)


def test_a_run_whose_threads_may_not_run_at_once_is_neither_begun_nor_resumed(store: Store) -> None:
    pinned = dataclasses.replace(fakes.backends(), processors=lambda: Processors(present=8, allowed=1))
    message = "threads: found 2, allowed up to 1: the affinity mask of this process"
    with pytest.raises(UsageError, match=message):
        begin(fakes.settings(threads=2), pinned, store, Interruption())
    run = begin(fakes.settings(threads=2), fakes.backends(), store, Interruption()).run.id
    with pytest.raises(UsageError, match=message):
        resume(run, pinned, store, Interruption(), retime=True)


@pytest.mark.slow
@pytest.mark.mlir
def test_the_command_names_the_affinity_mask_that_limits_its_threads(tmp_path: Path) -> None:
    options = ("tune", "matmul", "16x16x16", "--target", "cpu", "--threads", "2", "--db")
    command = [sys.executable, "-c", PINNED, *options, str(tmp_path / "r.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "threads: found 2, allowed up to 1" in done.stderr
    if (os.cpu_count() or 1) > 1:
        assert "(taskset, cpuset) allows 1 of" in done.stderr


def test_a_request_cuts_waiting_off_and_then_waiting_does_not_begin() -> None:
    interruption = Interruption()
    with pytest.raises(KeyboardInterrupt), interruption.waiting():
        interruption.ask()
    assert interruption.is_asked
    reached = False
    with pytest.raises(KeyboardInterrupt), interruption.waiting():
        reached = True
    assert not reached


@pytest.mark.parametrize("waits", [0, 1])
def test_a_request_before_or_after_waiting_raises_nothing(waits: int) -> None:
    """Such as while a trial is stored, which must not be cut off."""
    interruption = Interruption()
    for _ in range(waits):
        with interruption.waiting():
            pass
    interruption.ask()
    assert interruption.is_asked
