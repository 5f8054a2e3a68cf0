"""What Linux reports about a machine, read from a tree of files like its own."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.core.instruction_sets import ISAS
from tuner.core.machine import Processors
from tuner.core.processors import PROCESSORS, instruction_sets_of
from tuner.runtime.cpu import host
from tuner.runtime.cpu.host import present_load, usable_processors

CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC 9575F 64-Core Processor
physical id\t: 0
core id\t\t: {core}
flags\t\t: fpu sse2 fma avx2 {flags}

"""
AVX512 = "avx512f avx512dq avx512bw avx512vl"
TILES = "amx_tile amx_bf16 amx_int8"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cores of two threads each: 0 with 2, 1 with 3."""
    text = "".join(CPUINFO.format(core=core, flags=f"{AVX512} avx512_bf16") for core in (0, 1, 0, 1))
    (tmp_path / "cpuinfo").write_text(text)
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings + "\n")
    caches = "1 Data 48K, 1 Instruction 32K, 2 Unified 1024K, 3 Unified 256M"
    for index, cache in enumerate(caches.split(", ")):
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, given in zip(("level", "type", "size"), cache.split(), strict=True):
            (folder / name).write_text(given + "\n")
    monkeypatch.delenv(host.LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(host, "may_use_tiles", lambda: True)
    monkeypatch.setattr(host, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(host, "SYSTEM_PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    return tmp_path


def test_a_machine_is_described_by_what_linux_reports(tree: Path) -> None:
    machine = host.describe_machine()
    described = "(family 26 model 2, avx512 bf16, caches 48K/1M/256M)"
    assert machine.name == f"AMD EPYC 9575F 64-Core Processor {described}"
    assert (machine.physical_cores, machine.logical_cores, machine.has_bf16) == (2, 4, True)
    assert (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes) == (48 << 10, 1 << 20, 256 << 20)
    assert machine.memory_bytes > 1 << 20


@pytest.mark.parametrize(
    ("flags", "extensions"),
    [
        (f"fma avx2 {AVX512} avx512_bf16 avx512_vnni", "avx512 bf16 vnni"),
        (f"fma avx2 {AVX512} avx512_bf16", "avx512 bf16"),
        (f"fma avx2 {AVX512} avx512_vnni", "avx512 vnni"),
        (f"fma avx2 {AVX512}", "avx512"),
        ("fma avx2 avx512f avx512dq", "avx2"),  # Xeon Phi: half of AVX-512
        ("fma avx2 avx_vnni", "avx2 vnni"),
        ("fma avx2 avx_vnni_int8", "avx2"),
        ("fma avx2", "avx2"),
        ("avx2", "none"),
        ("avx512_fp16 avx2x", "none"),
        (f"fma avx2 {AVX512} avx512_bf16 avx512_vnni {TILES}", "avx512 bf16 vnni amx_bf16 amx_int8"),
        (f"fma avx2 {AVX512} amx_tile amx_int8", "avx512 amx_int8"),
        (f"fma avx2 {AVX512} amx_bf16 amx_int8", "avx512"),  # no tiles
    ],
)
def test_a_machine_is_named_with_what_code_is_generated_for(tree: Path, flags: str, extensions: str) -> None:
    (tree / "cpuinfo").write_text(f"model name : any\ncpu family : 6\nmodel : 85\nflags : {flags}\n")
    machine = host.describe_machine()
    assert machine.name == f"any (family 6 model 85, {extensions}, caches 48K/1M/256M)"
    isa, *others = extensions.split()
    known = ("bf16", "vnni", "amx_bf16", "amx_int8")
    assert (machine.isa, [name for name in known if getattr(machine, f"has_{name}")]) == (isa, others)


def test_tiles_without_a_permission_do_not_count(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that refuses the system call: the first tile instruction would end the process."""
    monkeypatch.setattr(host, "may_use_tiles", lambda: False)
    flags = f"fma avx2 {AVX512} avx512_vnni {TILES}"
    (tree / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n")
    machine = host.describe_machine()
    assert (machine.has_amx_bf16, machine.has_amx_int8) == (False, False)
    assert "avx512 vnni, caches" in machine.name


LEVELS = {"x86-64-v3": "avx2", "x86-64-v4": "avx512"}


@pytest.mark.parametrize("level", LEVELS)
def test_a_process_limited_to_a_level_is_a_machine_with_nothing_beyond_it(
    level: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = f"fma avx2 f16c {AVX512} avx512ifma avx512_vbmi2 avx512_vnni avx512_bf16 avx_vnni {TILES}"
    (tree / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n")
    monkeypatch.setenv(host.LIMIT_VARIABLE, level)
    machine = host.describe_machine()
    assert machine.name.startswith(f"any as {level} (")
    assert f", {LEVELS[level]}, caches" in machine.name
    assert instruction_sets_of(machine) == ISAS[LEVELS[level]].includes
    assert host.own_flags() == {"fma", "avx2", "f16c", *(AVX512.split() if level == "x86-64-v4" else ())}
    assert not host.has_refused_tiles()


def test_a_level_that_is_unknown_or_beyond_the_processor_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "cpuinfo").write_text("model name : any\nflags : fma avx2\n")
    monkeypatch.setenv(host.LIMIT_VARIABLE, "x86-64-v4")
    with pytest.raises(UsageError, match="TUNER_CPU=x86-64-v4: this processor does not offer avx512"):
        host.describe_machine()
    for unknown in ("zen3", "neoverse-n1"):
        monkeypatch.setenv(host.LIMIT_VARIABLE, unknown)
        with pytest.raises(
            UsageError, match=f"TUNER_CPU: found '{unknown}', allowed x86-64-v3, x86-64-v4, has"
        ):
            host.describe_machine()


@pytest.mark.parametrize(
    ("name", "described", "offered"),
    [
        ("znver3", "avx2, caches 32K/512K/32M", True),
        ("haswell", "avx2, caches 32K/256K/30M", True),
        ("alderlake", "avx2 vnni, caches 48K/1M/30M", True),
        ("skylake-avx512", "avx512, caches 32K/1M/39424K", True),
        ("cascadelake", "avx512 vnni, caches 32K/1M/39424K", True),
        ("znver5", "", False),
        ("neoverse-n1", "", False),
    ],
)
def test_a_process_limited_to_a_processor_has_its_sets_and_at_most_its_caches(
    name: str, described: str, offered: bool, tree: Path
) -> None:
    flags = f"fma avx2 f16c {AVX512} avx512_vnni avx_vnni"
    (tree / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n")
    assert host.offers(PROCESSORS[name]) == offered
    if not offered:
        return
    machine = host.describe_machine(name)
    assert machine.name == f"any as {name} (family  model , {described})"
    assert instruction_sets_of(machine) == instruction_sets_of(PROCESSORS[name].machine)
    assert host.own_flags(name) < set(flags.split())


def test_every_limit_that_constraints_ask_is_in_the_name(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the cores, which are those that the process may use: a taskset makes no other machine."""
    machine = host.describe_machine()
    seen = {machine.name: machine.limits()}
    changes = [(f"cpu0/cache/index{at}/size", size) for at, size in ((0, "32K"), (2, "2048K"), (3, "32M"))]
    flags = (f"fma avx2 {AVX512} amx_tile amx_bf16", f"fma avx2 {AVX512}", "fma avx2")
    changes += [("cpuinfo", CPUINFO.format(core=0, flags=each)) for each in flags]
    for name, text in changes:
        (tree / name).write_text(f"{text}\n")
        other = host.describe_machine()
        seen[other.name] = other.limits()
    assert len(seen) == 7
    limits = [tuple(pair for pair in each if pair[0] != "cores") for each in seen.values()]
    assert len(set(limits)) == 7
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert host.describe_machine().name == [*seen][-1]


def test_what_linux_does_not_report_is_unknown(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of another make, in a container without /sys."""
    monkeypatch.setattr(host, "CPUINFO", tree / "none")
    monkeypatch.setattr(host, "SYSTEM_PROCESSORS", tree / "none")
    machine = host.describe_machine()
    assert (machine.processor, machine.isa) == ("unknown processor", "none")
    assert (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes) == (0, 0, 0)
    assert (machine.physical_cores, machine.logical_cores) == (4, 4)
    assert host.processors(2) == (0, 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert host.describe_machine().physical_cores == 1
    assert host.processors(3) == (3, 3, 3)


@pytest.mark.parametrize(
    ("siblings", "ordered"),
    [
        ("0,2 1,3 0,2 1,3", (0, 1, 2, 3, 0)),
        ("0-1 0-1 2-3 2-3", (0, 2, 1, 3, 0)),
        ("0 1 2 3", (0, 1, 2, 3, 0)),
        ("0-1,3 0-1,3 2 0-1,3", (0, 2, 1, 3, 0)),
    ],
)
def test_threads_take_a_core_each_first(tree: Path, siblings: str, ordered: tuple[int, ...]) -> None:
    for cpu, text in enumerate(siblings.split()):
        (tree / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(text + "\n")
    assert host.processors(5) == ordered


@pytest.mark.parametrize(
    ("allowed", "cores"), [({0}, (0,)), ({2}, (0,)), ({0, 2}, (0,)), ({2, 3}, (0, 1)), ({0, 1, 3}, (0, 1))]
)
def test_two_threads_of_one_core_are_one_core(
    tree: Path, monkeypatch: pytest.MonkeyPatch, allowed: set[int], cores: tuple[int, ...]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed)
    assert host.cores_of(allowed) == cores
    assert host.describe_machine().physical_cores == len(cores)
    assert host.with_siblings(allowed) == {each + 2 * thread for each in cores for thread in (0, 1)}


def test_this_machine_can_be_described_and_has_a_load_that_fits_its_processors() -> None:
    machine = host.describe_machine()
    assert machine.isa in ("avx512", "avx2", "neon", "none")
    assert 1 <= machine.physical_cores <= machine.logical_cores == len(os.sched_getaffinity(0))
    assert set(host.processors(machine.logical_cores)) == os.sched_getaffinity(0)
    assert host.load_average() >= 0.0
    found = present_load(0.05)
    assert 0 <= found.busy <= len(os.sched_getaffinity(0)) + 1  # a tick more than the window
    assert found.stolen >= 0


# Processors that a process may use: by its real affinity, and by control groups in a tree of files.

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
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight processors, and no control group that limits them."""
    monkeypatch.setattr(host, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host, "CONTROL_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/build.slice/job\n")
    return tmp_path


def limit(limited: Path, group: str, name: str, text: str) -> None:
    folder = limited / "cgroup" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_without_a_limit_all_are_usable_and_of_several_quotas_the_smallest_limits(limited: Path) -> None:
    limit(limited, "build.slice/job", "cpu.max", "max 100000\n")
    assert usable_processors() == Processors(8, 8, None)
    assert (usable_processors().usable, usable_processors().limit) == (8, "")
    limit(limited, "build.slice/job", "cpu.max", "400000 100000\n")
    limit(limited, "build.slice", "cpu.max", "50000 100000\n")
    assert (usable_processors().quota, usable_processors().usable) == (0.5, 1)


@pytest.mark.parametrize("group", ["build.slice/job", "build.slice", "."])
def test_the_quota_of_a_group_or_of_one_around_it_limits(limited: Path, group: str) -> None:
    limit(limited, group, "cpu.max", "250000 100000\n")
    found = usable_processors()
    assert (found.quota, found.usable) == (2.5, 2)
    assert found.limit == "the quota of the control group (cpu.max) is 2.5 processors"


@pytest.mark.parametrize(("quota", "found"), [("-1\n", None), ("300000\n", 3.0)])
def test_control_groups_of_version_1_are_read(limited: Path, quota: str, found: float | None) -> None:
    limit(limited, "cpu", "cpu.cfs_quota_us", quota)
    limit(limited, "cpu", "cpu.cfs_period_us", "100000\n")
    assert usable_processors().quota == found


@pytest.mark.parametrize(
    ("allowed", "busy", "stolen"), [({0}, 0.5, 0.25), ({1}, 1.0, 0.0), ({0, 1}, 1.5, 0.25)]
)
def test_only_the_load_of_processors_that_may_be_used_counts(
    limited: Path, monkeypatch: pytest.MonkeyPatch, allowed: set[int], busy: float, stolen: float
) -> None:
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock.append(clock[-1] + seconds)
        ticks = round(seconds / host.TICK_S)
        text = STAT.format(total=9 * ticks, zero=100 + ticks // 2, one=100 + ticks, stolen=10 + ticks // 4)
        (limited / "proc" / "stat").write_text(text)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
    monkeypatch.setattr(time, "monotonic", lambda: clock[-1])
    (limited / "proc" / "stat").write_text(STAT.format(total=9, zero=100, one=100, stolen=10))
    found = present_load(4.0, sleep)
    assert (found.busy, found.stolen) == pytest.approx((busy, stolen))
