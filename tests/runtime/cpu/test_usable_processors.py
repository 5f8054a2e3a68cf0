"""Processors that a process may use: by its real affinity, and by control groups in a tree of files."""

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.core.processors import Processors
from tuner.runtime.cpu import host
from tuner.runtime.cpu.host import present_load, usable_processors

STAT = "cpu  {total} 0 0 0 0 0 0 0\ncpu0 {zero} 0 0 0 0 0 0 {stolen} 0 0\ncpu1 {one} 0 0 0 0 0 0 0 0 0\n"


def pinned_to_one() -> Processors:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return usable_processors()


def test_a_pinned_process_may_use_one_processor() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(pinned_to_one)
    assert (found.present, found.allowed, found.usable) == (os.cpu_count(), 1, 1)
    if found.present > 1:
        assert found.limit.endswith(f"(taskset, cpuset) allows 1 of {found.present}")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight processors, and no control group that limits them."""
    monkeypatch.setattr(host, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host, "CONTROL_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/build.slice/job\n")
    return tmp_path


def limit(tree: Path, group: str, name: str, text: str) -> None:
    folder = tree / "cgroup" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_without_a_limit_all_are_usable(tree: Path) -> None:
    limit(tree, "build.slice/job", "cpu.max", "max 100000\n")
    assert usable_processors() == Processors(8, 8, None)
    assert (usable_processors().usable, usable_processors().limit) == (8, "")


@pytest.mark.parametrize("group", ["build.slice/job", "build.slice", "."])
def test_the_quota_of_a_group_or_of_one_around_it_limits(tree: Path, group: str) -> None:
    limit(tree, group, "cpu.max", "250000 100000\n")
    found = usable_processors()
    assert (found.quota, found.usable) == (2.5, 2)
    assert found.limit == "the quota of the control group (cpu.max) is 2.5 processors"


def test_the_smallest_of_several_quotas_limits(tree: Path) -> None:
    limit(tree, "build.slice/job", "cpu.max", "400000 100000\n")
    limit(tree, "build.slice", "cpu.max", "50000 100000\n")
    assert (usable_processors().quota, usable_processors().usable) == (0.5, 1)


@pytest.mark.parametrize(("quota", "found"), [("-1\n", None), ("300000\n", 3.0)])
def test_control_groups_of_version_1_are_read(tree: Path, quota: str, found: float | None) -> None:
    limit(tree, "cpu", "cpu.cfs_quota_us", quota)
    limit(tree, "cpu", "cpu.cfs_period_us", "100000\n")
    assert usable_processors().quota == found


def counting(tree: Path, clock: list[float]) -> Callable[[float], None]:
    """Returns a sleep during which processor 0 is busy half of the time and given away a quarter of it."""

    def sleep(seconds: float) -> None:
        clock.append(clock[-1] + seconds)
        ticks = round(seconds / host.TICK_S)
        text = STAT.format(total=9 * ticks, zero=100 + ticks // 2, one=100 + ticks, stolen=10 + ticks // 4)
        (tree / "proc" / "stat").write_text(text)

    return sleep


@pytest.mark.parametrize(
    ("allowed", "busy", "stolen"), [({0}, 0.5, 0.25), ({1}, 1.0, 0.0), ({0, 1}, 1.5, 0.25)]
)
def test_only_the_load_of_processors_that_may_be_used_counts(
    tree: Path, monkeypatch: pytest.MonkeyPatch, allowed: set[int], busy: float, stolen: float
) -> None:
    clock = [0.0]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
    monkeypatch.setattr(time, "monotonic", lambda: clock[-1])
    (tree / "proc" / "stat").write_text(STAT.format(total=9, zero=100, one=100, stolen=10))
    found = present_load(4.0, counting(tree, clock))
    assert found.busy == pytest.approx(busy)
    assert found.stolen == pytest.approx(stolen)


def test_this_machine_has_a_load_that_fits_its_processors() -> None:
    found = present_load(0.05)
    assert 0 <= found.busy <= len(os.sched_getaffinity(0)) + 1  # a tick more than the window
    assert found.stolen >= 0
