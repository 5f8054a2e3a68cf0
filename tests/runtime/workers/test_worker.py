import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.default_suite import ALL
from tests.fakes import HANG_S, await_death
from tests.runtime.workers.echo import spec_of
from tuner.core.errors import CandidateError, Failure, MachineError, Stage, TunerError
from tuner.runtime.workers.processes import FACTOR_VARIABLE, LONGEST_STEP_S, state_of
from tuner.runtime.workers.protocol import CALL, Event, Factory, Reply, ServiceSpec
from tuner.runtime.workers.worker import ChildTraceback, Worker

MIB = 1 << 20
TEXT_AND_DATA = "its text of 0.0 MiB and its constants of 1.0 MiB"


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(spec_of("Echo"), memory_bytes=1 << 30)
    yield made
    made.kill()


def call(worker: Worker, method: str, *args: object, timeout_s: float = HANG_S) -> Reply:
    return worker.ask(method, *args, stage=Stage.LOAD, timeout_s=timeout_s)


def pid_of(worker: Worker) -> int:
    assert worker.child is not None
    return worker.child.pid


def test_one_child_serves_many_calls_and_its_death_between_two_is_nobodys_failure(worker: Worker) -> None:
    assert call(worker, "echo", (1, "two")).value == (1, "two")
    pid = pid_of(worker)
    assert call(worker, "echo", None).value is None
    assert pid_of(worker) == pid
    call(worker, "die_later")
    first = pid_of(worker)
    assert await_death([first]) == []
    assert call(worker, "echo", 1).value == 1
    assert pid_of(worker) != first


@pytest.mark.parametrize(
    ("method", "stage", "reason"),
    [
        ("refuse", Stage.RESOURCES, "too many registers"),
        ("lock", Stage.LOAD, "TypeError: cannot pickle '_thread.lock' object"),
        ("sing", Stage.LOAD, "AttributeError: 'Echo' object has no attribute 'sing'"),
        ("spawn", Stage.RUN, "started 1 processes that go on after it returned"),
        ("slam", Stage.LOAD, "killed by SIGKILL"),
        ("babble", Stage.LOAD, "sent no message but UnpicklingError: "),
    ],
)
def test_a_call_fails_and_the_next_is_served(worker: Worker, method: str, stage: Stage, reason: str) -> None:
    failure = call(worker, method).value
    assert isinstance(failure, Failure)
    assert failure.stage is stage
    assert reason in failure.reason  # pickle of Python 3.14 says before it what it was serializing
    assert call(worker, "echo", 1).value == 1


def test_a_full_disk_is_the_machines_and_no_failure(worker: Worker) -> None:
    with pytest.raises(MachineError, match=r"^echo worker: OSError: \[Errno 28\] No space left on device"):
        call(worker, "fill_disk")
    assert call(worker, "echo", 1).value == 1


def test_events_wait_for_the_go_ahead(worker: Worker) -> None:
    worker.submit("announce_twice", stage=Stage.RUN, timeout_s=HANG_S)
    assert worker.wait() == Event("first")
    assert worker.poll() is None
    worker.go_ahead()
    assert worker.wait() == Event("second")
    worker.go_ahead()
    reply = worker.wait()
    assert isinstance(reply, Reply)
    assert reply.value == "done"


def test_a_call_lets_the_service_go_on_and_returns_what_it_did_or_raises_its_failure(worker: Worker) -> None:
    assert worker.call("announce_twice", stage=Stage.RUN, timeout_s=HANG_S) == "done"
    with pytest.raises(CandidateError, match=r"^killed by SIGFPE$") as caught:
        worker.call("die", signal.SIGFPE, stage=Stage.LOAD, timeout_s=HANG_S)
    assert caught.value.stage is Stage.LOAD


def test_an_error_in_the_child_says_what_it_was_at_and_its_traceback_is_the_cause(worker: Worker) -> None:
    message = r"^a fusion of linalg\.pack: IndexError: index out of range$"
    with pytest.raises(CandidateError, match=message) as caught:
        worker.call("stumble", "linalg.pack", stage=Stage.COMPILE, timeout_s=HANG_S)
    assert isinstance(caught.value.__cause__, ChildTraceback)
    assert "in stumble\n" in str(caught.value.__cause__)
    with pytest.raises(CandidateError, match=r"^too many registers$") as caught:
        worker.call("refuse", stage=Stage.COMPILE, timeout_s=HANG_S)
    assert caught.value.__cause__ is None


def test_an_interrupted_call_leaves_no_child(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> Reply:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        worker.call("nap", 100.0, stage=Stage.RUN, timeout_s=HANG_S)
    assert worker.child is None


def test_a_function_with_its_first_arguments_is_a_service() -> None:
    worker = Worker(ServiceSpec("product", partial(math.prod, (2, 3))), memory_bytes=1 << 30)
    assert worker.call(CALL, stage=Stage.RUN, timeout_s=HANG_S) == 6
    worker.kill()


def test_a_death_after_other_calls_is_doubtful_and_a_time_out_not(worker: Worker) -> None:
    first = call(worker, "die", signal.SIGFPE)
    assert first == Reply(Failure(Stage.LOAD, "killed by SIGFPE"), first.seconds, is_doubtful=False)
    assert call(worker, "echo", 1).value == 1
    assert call(worker, "die", signal.SIGFPE).is_doubtful
    call(worker, "echo", 1)
    reply = call(worker, "nap", 100.0, timeout_s=0.25)
    assert reply.value == Failure(Stage.LOAD, "timed out after 0.2 s")
    assert not reply.is_doubtful


def test_a_crash_a_time_out_and_a_lack_of_memory_name_the_step_at_which_they_happened(worker: Worker) -> None:
    at = "pass convert-scf-to-cf"
    reply = call(worker, "work_on", at, "die", signal.SIGSEGV)
    assert reply.value == Failure(Stage.LOAD, f"killed by SIGSEGV in {at}")
    reply = call(worker, "work_on", "the kernel", "nap", 100.0, timeout_s=0.25)
    assert reply.value == Failure(Stage.LOAD, "timed out after 0.2 s in the kernel")
    assert call(worker, "work_on", at, "echo", 1).value == 1
    reply = call(worker, "die", signal.SIGFPE)
    assert reply.value == Failure(Stage.LOAD, "killed by SIGFPE")  # the step is over


def test_a_lack_of_memory_says_what_the_call_may_have_more_for() -> None:
    worker = Worker(spec_of("Echo"), memory_bytes=100 * MIB)
    more = f"108 MiB of memory, 8 of them for {TEXT_AND_DATA}"
    try:
        for data_bytes, allowed in ((0, "100 MiB of memory"), (MIB, more)):
            reply = worker.ask("hold", 150, stage=Stage.LOAD, timeout_s=HANG_S, data_bytes=data_bytes)
            assert reply.value == Failure(Stage.LOAD, f"exceeded {allowed}")
    finally:
        worker.kill()


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def clocked(now: list[float]) -> Iterator[Worker]:
    made = Worker(spec_of("Echo"), memory_bytes=1 << 30, clock=lambda: now[0])
    yield made
    made.kill()


def test_the_start_of_the_child_does_not_count_against_the_call(clocked: Worker, now: list[float]) -> None:
    clocked.submit("echo", 1, stage=Stage.LOAD, timeout_s=LONGEST_STEP_S / 2)
    now[0] = 50.0
    reply = clocked.wait()
    assert isinstance(reply, Reply)
    assert (reply.value, reply.seconds) == (1, 0.0)


def test_paused_time_does_not_count(clocked: Worker, now: list[float], tmp_path: Path) -> None:
    call(clocked, "echo", 1)
    clocked.submit("wait_for", str(tmp_path), stage=Stage.RUN, timeout_s=LONGEST_STEP_S / 2)
    clocked.pause()
    now[0] = 100.0
    assert clocked.poll() is None
    clocked.resume()
    now[0] += LONGEST_STEP_S / 4
    assert clocked.poll() is None
    (tmp_path / "go").touch()
    reply = clocked.wait()
    assert isinstance(reply, Reply)
    assert reply.seconds == pytest.approx(LONGEST_STEP_S / 4)


# Calls with a limit of a minute. Its clock is as far ahead as a file says, printed after each look.
CALLER = """
import sys, time
from pathlib import Path
from tests.runtime.workers.echo import spec_of
from tuner.core.errors import Stage
from tuner.runtime.workers.processes import TICK_S
from tuner.runtime.workers.child_process import sleep_until_news
from tuner.runtime.workers.worker import Worker

folder = Path(sys.argv[1])
worker = Worker(spec_of("Echo"), 1 << 30, lambda: time.monotonic() + float((folder / "ahead").read_text()))
worker.submit("wait_for", str(folder), stage=Stage.LOAD, timeout_s=60.0)
while (news := worker.poll()) is None:
    print((folder / "ahead").read_text(), flush=True)
    sleep_until_news([worker.child], TICK_S)
print(news.value)
worker.kill()
"""


@pytest.mark.slow
def test_a_pause_of_all_processes_is_not_the_failure_of_a_call(tmp_path: Path) -> None:
    """The pause is a real one; that it took an hour is what the clock of the caller says."""
    (tmp_path / "ahead").write_text("0")
    with Popen([sys.executable, "-c", CALLER, tmp_path], stdout=PIPE, text=True, process_group=0) as caller:
        assert caller.stdout is not None
        while not (tmp_path / "process").exists():
            assert caller.stdout.readline()
        child = int((tmp_path / "process").read_text())
        os.killpg(child, signal.SIGSTOP)
        os.killpg(caller.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, caller.pid, os.WSTOPPED | os.WNOWAIT)
        while state_of(child) != "T":
            time.sleep(0.001)
        (tmp_path / "ahead").write_text("3600")
        os.killpg(caller.pid, signal.SIGCONT)
        while (line := caller.stdout.readline()) == "0\n":
            pass
        assert line == "3600\n"  # the caller goes on first, and has looked
        assert caller.stdout.readline() == "3600\n"
        os.killpg(child, signal.SIGCONT)
        (tmp_path / "go").touch()
        assert caller.stdout.read().splitlines()[-1] == "done"


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("service", "reason"),
    [
        ("Broken", r"^echo worker did not start: ImportError: no module named 'mlir'$"),
        ("Refusing", r"^echo worker did not start: killed by SIGABRT: LLVM ERROR: no such processor$"),
        ("Missing", r"^echo worker did not start: AttributeError: module .* has no attribute 'Missing'$"),
    ],
)
def test_a_child_that_cannot_start_is_no_candidates_failure(service: str, reason: str) -> None:
    worker = Worker(spec_of(service), 1 << 30)
    worker.submit("echo", 1, stage=Stage.RUN, timeout_s=HANG_S)
    with pytest.raises(TunerError, match=reason):
        worker.wait()
    assert worker.child is None


@pytest.mark.parametrize(("factor", "start_s", "limit_s"), [("", 60, 60), ("", 144, 144), ("2", 60, 120)])
def test_a_child_that_starts_for_ever_is_given_up(
    factor: str, start_s: float, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FACTOR_VARIABLE, factor)
    now = [0.0]
    spec = ServiceSpec("slow", Factory("time:sleep", (HANG_S,)))
    worker = Worker(spec, 1 << 30, clock=lambda: now[0], start_timeout_s=start_s)
    worker.start()
    assert worker.poll() is None

    def look_until(moment_s: float) -> None:
        while now[0] < moment_s:
            # the clock of the test stands, too, while a child is stopped, as by benchmarks/stress.py
            while worker.child is not None and worker.child.is_stopped:
                os.sched_yield()
            now[0] += LONGEST_STEP_S
            assert worker.poll() is None

    look_until(limit_s - 1.0)
    with pytest.raises(TunerError, match=rf"^slow worker did not start: timed out after {limit_s:g} s$"):
        look_until(limit_s + 1.0)


def mortal(tmp_path: Path, deaths: int) -> Worker:
    factory = Factory("tests.runtime.workers.echo:Mortal", (str(tmp_path / "log"), deaths))
    return Worker(ServiceSpec("echo", factory, announces=True), memory_bytes=1 << 30)


@pytest.mark.parametrize(
    ("deaths", "value"),
    [(2, 1), (3, Failure(Stage.LOAD, "echo worker did not start: killed by SIGKILL, 3 attempts"))],
)
def test_a_call_starts_a_killed_child_three_times(deaths: int, value: object, tmp_path: Path) -> None:
    worker = mortal(tmp_path, deaths)
    call(worker, "die", signal.SIGKILL)
    assert call(worker, "echo", 1).value == value
    assert call(worker, "echo", 2).value == 2
    assert (tmp_path / "log").read_text() == "." * (deaths + 2)
    worker.kill()


def test_a_stopped_child_charges_no_innocent_call_but_one_that_stops_it_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuner.runtime.workers.worker.STOPPED_LIMIT_S", 0.05)
    worker = mortal(tmp_path, 0)
    assert call(worker, "stand_still_once", str(tmp_path / "stopped"), timeout_s=HANG_S).value == "done"
    failure = call(worker, "stand_still", timeout_s=HANG_S).value
    assert failure == Failure(Stage.LOAD, "stopped by a signal, 3 attempts")
    worker.kill()


def test_a_busy_worker_takes_no_second_call_and_an_idle_one_is_not_waited_for(worker: Worker) -> None:
    with pytest.raises(RuntimeError, match="echo worker has nothing to wait for"):
        worker.wait()
    worker.submit("nap", 1.0, stage=Stage.RUN, timeout_s=HANG_S)
    with pytest.raises(RuntimeError, match="echo worker is busy"):
        worker.submit("echo", 1, stage=Stage.RUN, timeout_s=HANG_S)
