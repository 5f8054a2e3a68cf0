"""Operands are out of the caches when a call of a cold problem begins; nothing else changes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tuner.core.matmul import Matmul
from tuner.payload.reference import Array
from tuner.runtime.cpu import cold_caches, host, timing_conditions
from tuner.runtime.cpu.memory import placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam


@pytest.mark.mlir
@pytest.mark.parametrize("offset", [0, 16, 48])
@pytest.mark.parametrize("size", [1, 3, 4, 5, 16, 100])
def test_every_line_that_an_array_touches_is_evicted(size: int, offset: int) -> None:
    array = placed_empty((size,), np.dtype(np.float32), offset)
    start, lines = cold_caches.lines_of(array)
    begin, line_bytes = array.ctypes.data, cold_caches.LINE_BYTES
    touched = {byte // line_bytes for byte in range(begin, begin + array.nbytes)}
    assert {start // line_bytes + line for line in range(lines)} == touched


@pytest.mark.mlir
def test_an_eviction_changes_no_number() -> None:
    arrays: list[Array] = [np.arange(1000.0, dtype=np.float32), np.ones((33, 7))]
    copies = [each.copy() for each in arrays]
    cold_caches.Eviction(arrays)()
    assert all(np.array_equal(one, other) for one, other in zip(arrays, copies, strict=True))


@pytest.mark.mlir
@pytest.mark.parametrize(("cache", "evicted"), [("warm", 0), ("weights-cold", 1), ("cold", 4)])
def test_what_is_evicted_follows_from_the_state(cache: str, evicted: int) -> None:
    operands = [np.zeros(4, np.float32) for _ in range(4)]
    found = cold_caches.eviction_of(Matmul(2, 2, 2, epilogue="bias_relu", cache=cache), operands)
    assert (found is None) == (evicted == 0)
    if found is not None:
        assert len(found.arrays) == evicted
        assert any(each is operands[1] for each in found.arrays)


# What other programs do on this machine meanwhile, and what is made of two readings.

SPIN = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
STAT = "cpu  100 20 30 4000 9 7 3 50 0 0\ncpu0 100 20 30 4000 9 7 3 50 0 0\n"


def test_work_of_other_programs_is_reported_apart_from_our_own() -> None:
    allowed = os.sched_getaffinity(0)
    before = timing_conditions.read_activity((os.getpid(),), allowed)
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    after = timing_conditions.read_activity((os.getpid(),), allowed)
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    assert others_s >= 0.15
    assert after.clock_s > before.clock_s
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert timing_conditions.read_activity((os.getpid(),), allowed).own_s - after.own_s >= 0.08


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_work_on_a_processor_that_this_process_may_not_use_is_no_load_of_it() -> None:
    """On one processor of two (taskset, a container) every run was unreliable while the other one worked."""
    ours, theirs = sorted(os.sched_getaffinity(0))[:2]
    before = [timing_conditions.read_activity((), {each}) for each in (ours, theirs)]
    pinned = f"import os; os.sched_setaffinity(0, {{{theirs}}})\n{SPIN}"
    subprocess.run([sys.executable, "-c", pinned], check=True)
    after = [timing_conditions.read_activity((), {each}) for each in (ours, theirs)]
    ours_s, theirs_s = (late.busy_s - early.busy_s for early, late in zip(before, after, strict=True))
    elapsed_s = after[0].clock_s - before[0].clock_s
    assert theirs_s >= 0.15
    assert ours_s <= elapsed_s + 2 * host.TICK_S  # whatever else ran there, not both processors' work


LISTED = "cpu  900 0 0 0 0 0 0 90 0 0\n" + "".join(
    f"cpu{number} {100 + number} 0 0 0 0 0 0 {number} 0 0\n" for number in range(4)
)


@pytest.mark.parametrize(
    ("processors", "busy", "stolen"),
    [
        ({1}, 101, 1),
        ({0, 3}, 203, 3),
        ({64, 65}, 900, 90),  # a container's /proc/stat (lxcfs) numbers from 0, its affinity mask does not
    ],
)
def test_the_load_is_that_of_the_given_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: set[int], busy: int, stolen: int
) -> None:
    monkeypatch.setattr(host, "PROC", tmp_path)
    (tmp_path / "stat").write_text(LISTED)
    found = timing_conditions.read_activity((), processors)
    assert (found.busy_s, found.stolen_s) == pytest.approx((busy * host.TICK_S, stolen * host.TICK_S))


@pytest.mark.mlir
def test_a_watch_of_a_pinned_thread_looks_at_what_its_process_may_use_and_at_siblings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "PROC", tmp_path)
    monkeypatch.setattr(host, "SYSTEM_PROCESSORS", tmp_path)
    (tmp_path / "stat").write_text(LISTED)
    (tmp_path / "cpu1" / "topology").mkdir(parents=True)
    (tmp_path / "cpu1" / "topology" / "thread_siblings_list").write_text("1,3\n")
    team = ThreadTeam(1)
    found = timing_conditions.HostWatch(team, frozenset({0, 1})).read()
    team.close()
    assert found.busy_s == pytest.approx((100 + 101 + 103) * host.TICK_S)


def test_counters_are_read_by_place_or_are_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (timing_conditions, host):
        monkeypatch.setattr(module, "PROC", tmp_path)
    monkeypatch.setattr(timing_conditions, "THROTTLING", ())
    found = timing_conditions.read_activity((7,), {0})
    assert (found.busy_s, found.stolen_s, found.own_s, found.waited_s, found.throttled_s) == (0,) * 5
    assert timing_conditions.thread_waited_s() == 0.0
    files = {
        "stat": STAT,
        "7/stat": f"7 (a (b) c) R {' '.join('0' * 10)} 200 100 0\n",
        "7/task/7/schedstat": "5 3000000000 2\n",
        "thread-self/schedstat": "5 4000000000 2\n",
        "cpu.stat": "nr_throttled 4\nthrottled_usec 2500000\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    throttling = ((tmp_path / "missing", "x", 1.0), (tmp_path / "cpu.stat", "throttled_usec", 1e-6))
    monkeypatch.setattr(timing_conditions, "THROTTLING", throttling)
    found = timing_conditions.read_activity((7,), {0})
    ticks = [each / host.TICK_S for each in (found.busy_s, found.stolen_s, found.own_s)]
    assert (*ticks, found.waited_s, found.throttled_s) == pytest.approx((160, 50, 300, 3.0, 2.5))
    assert timing_conditions.thread_waited_s() == 4.0


def activity(clock_s: float, busy_s: float, own_s: float, *others: float) -> timing_conditions.HostActivity:
    stolen_s, waited_s, throttled_s = others or (0.0, 0.0, 0.0)
    return timing_conditions.HostActivity(clock_s, busy_s, stolen_s, own_s, waited_s, throttled_s)


@pytest.mark.mlir
def test_conditions_are_what_changed_between_two_readings_and_the_anchor_is_timed() -> None:
    team = ThreadTeam(2)
    watch = timing_conditions.HostWatch(team)
    before = activity(10.0, 100.0, 50.0, 1.0, 2.0, 3.0)
    after = activity(14.0, 110.0, 54.0, 1.8, 3.6, 3.4)
    found = watch.conditions(before, after, (1e-3, 3e-3, 2e-3), interleaved_s=(4e-3,) * 3 + (5e-3,) * 3)
    team.close()
    shares = found.stolen_share, found.waited_share, found.throttled_share, found.reference_drift
    assert (found.others_cores, *shares) == pytest.approx((1.5, 0.1, 0.2, 0.1, 0.25))
    assert found.reference_s == 2e-3
    team = ThreadTeam(1)
    samples_s = timing_conditions.HostWatch(team).sample_reference()
    team.close()
    assert len(samples_s) == 3
    assert min(samples_s) > 0
