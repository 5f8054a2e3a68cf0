"""What Linux reports about a machine, read from a tree of files like its own."""

import os
from pathlib import Path

import pytest

from tuner.runtime.cpu import host
from tuner.runtime.cpu.host import may_use_tiles

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


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cores of two threads each: 0 with 2, 1 with 3."""
    text = "".join(CPUINFO.format(core=core, flags=f"{AVX512} avx512_bf16") for core in (0, 1, 0, 1))
    (tmp_path / "cpuinfo").write_text(text)
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings + "\n")
    caches = (
        ("1", "Data", "48K"),
        ("1", "Instruction", "32K"),
        ("2", "Unified", "1024K"),
        ("3", "Unified", "256M"),
    )
    for index, (level, kind, size) in enumerate(caches):
        cache = tmp_path / "cpu0" / "cache" / f"index{index}"
        cache.mkdir(parents=True)
        for name, given in (("level", level), ("type", kind), ("size", size)):
            (cache / name).write_text(given + "\n")
    monkeypatch.setattr(host, "may_use_tiles", lambda: True)
    monkeypatch.setattr(host, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(host, "PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    return tmp_path


def test_a_machine_is_described_by_what_linux_reports(tree: Path) -> None:
    machine = host.describe_machine()
    assert machine.name == (
        "AMD EPYC 9575F 64-Core Processor (family 26 model 2, avx512 bf16, caches 48K/1M/256M)"
    )
    assert (machine.physical_cores, machine.logical_cores) == (2, 4)
    assert (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes) == (48 << 10, 1 << 20, 256 << 20)
    assert machine.has_bf16
    assert machine.memory_bytes > 1 << 20


@pytest.mark.parametrize(
    ("flags", "isa", "has_bf16"),
    [
        (f"fma avx2 {AVX512} avx512_bf16", "avx512", True),
        (f"fma avx2 {AVX512}", "avx512", False),
        ("fma avx2 avx512f avx512dq", "avx2", False),  # Xeon Phi: half of AVX-512
        ("fma avx2", "avx2", False),
        ("avx2", "none", False),
        ("avx512_fp16 avx2x", "none", False),
    ],
)
def test_an_instruction_set_counts_only_when_it_is_whole(
    tree: Path, flags: str, isa: str, has_bf16: bool
) -> None:
    (tree / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n")
    assert (host.describe_machine().isa, host.describe_machine().has_bf16) == (
        isa,
        has_bf16,
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("avx2 avx512_vnni", True), ("avx2 avx_vnni", True), ("avx2 avx512f", False), ("avx_vnni_int8", False)],
)
def test_dots_of_bytes_are_of_either_vnni(tree: Path, flags: str, expected: bool) -> None:
    (tree / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n")
    assert host.describe_machine().has_vnni == expected


@pytest.mark.parametrize(
    ("flags", "extensions"),
    [
        (f"fma avx2 {AVX512} avx512_bf16 avx512_vnni", "avx512 bf16 vnni"),
        (f"fma avx2 {AVX512} avx512_bf16", "avx512 bf16"),
        (f"fma avx2 {AVX512} avx512_vnni", "avx512 vnni"),
        (f"fma avx2 {AVX512}", "avx512"),
        ("fma avx2 avx_vnni", "avx2 vnni"),
        (
            f"fma avx2 {AVX512} avx512_bf16 avx512_vnni amx_tile amx_bf16 amx_int8",
            "avx512 bf16 vnni amx_bf16 amx_int8",
        ),
        (f"fma avx2 {AVX512} amx_tile amx_int8", "avx512 amx_int8"),
    ],
)
def test_a_machine_is_named_with_all_that_code_is_generated_for(
    tree: Path, flags: str, extensions: str
) -> None:
    (tree / "cpuinfo").write_text(f"model name : any\ncpu family : 6\nmodel : 85\nflags : {flags}\n")
    name = f"any (family 6 model 85, {extensions}, caches 48K/1M/256M)"
    assert host.describe_machine().name == name


@pytest.mark.parametrize(
    ("flags", "has_bf16", "has_int8"),
    [
        ("amx_tile amx_bf16 amx_int8", True, True),
        ("amx_tile amx_int8", False, True),
        ("amx_bf16 amx_int8", False, False),  # no tiles
    ],
)
def test_products_of_tiles_need_tiles(tree: Path, flags: str, has_bf16: bool, has_int8: bool) -> None:
    (tree / "cpuinfo").write_text(f"model name : any\nflags : fma avx2 {AVX512} {flags}\n")
    machine = host.describe_machine()
    assert (machine.has_amx_bf16, machine.has_amx_int8) == (has_bf16, has_int8)


def test_tiles_without_a_permission_do_not_count(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that refuses the system call: the first tile instruction would end the process."""
    monkeypatch.setattr(host, "may_use_tiles", lambda: False)
    flags = f"fma avx2 {AVX512} avx512_vnni amx_tile amx_bf16 amx_int8"
    (tree / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n")
    machine = host.describe_machine()
    assert not machine.has_amx_bf16
    assert not machine.has_amx_int8
    assert "avx512 vnni, caches" in machine.name


def test_the_permission_is_asked_of_this_system() -> None:
    assert may_use_tiles() == may_use_tiles()


def test_every_limit_of_the_hardware_that_constraints_ask_is_reported_by_the_name(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the cores, which are those that the process may use: a taskset makes no other machine."""
    machine = host.describe_machine()
    seen = {machine.name: machine.limits()}
    for cache, size in ((0, "32K"), (2, "2048K"), (3, "32M")):
        (tree / "cpu0" / "cache" / f"index{cache}" / "size").write_text(f"{size}\n")
        other = host.describe_machine()
        seen[other.name] = other.limits()
    for flags in (f"fma avx2 {AVX512} amx_tile amx_bf16", f"fma avx2 {AVX512}", "fma avx2"):
        (tree / "cpuinfo").write_text(CPUINFO.format(core=0, flags=flags))
        other = host.describe_machine()
        seen[other.name] = other.limits()
    assert len(seen) == 7
    limits = [tuple(pair for pair in each if pair[0] != "cores") for each in seen.values()]
    assert len(set(limits)) == 7
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert host.describe_machine().name == [*seen][-1]


def test_what_is_not_reported_is_unknown(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of another make, in a container without /sys."""
    monkeypatch.setattr(host, "CPUINFO", tree / "none")
    monkeypatch.setattr(host, "PROCESSORS", tree / "none")
    machine = host.describe_machine()
    assert (machine.processor, machine.isa) == ("unknown processor", "none")
    assert (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes) == (0, 0, 0)
    assert (machine.physical_cores, machine.logical_cores) == (4, 4)
    assert host.processors(2) == (0, 1)


def test_a_container_has_no_more_cores_than_processors_it_may_use(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert host.describe_machine().physical_cores == 1
    assert host.processors(3) == (3, 3, 3)


@pytest.mark.parametrize(
    ("siblings", "ordered"),
    [
        (("0,2", "1,3", "0,2", "1,3"), (0, 1, 2, 3, 0)),
        (("0-1", "0-1", "2-3", "2-3"), (0, 2, 1, 3, 0)),
        (("0", "1", "2", "3"), (0, 1, 2, 3, 0)),
        (("0-1,3", "0-1,3", "2", "0-1,3"), (0, 2, 1, 3, 0)),
    ],
)
def test_threads_take_a_core_each_before_they_share_one(
    tree: Path, siblings: tuple[str, ...], ordered: tuple[int, ...]
) -> None:
    for cpu, text in enumerate(siblings):
        (tree / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(text + "\n")
    assert host.processors(5) == ordered


def test_this_machine_can_be_described() -> None:
    machine = host.describe_machine()
    assert machine.isa in ("avx512", "avx2", "none")
    assert 1 <= machine.physical_cores <= machine.logical_cores == len(os.sched_getaffinity(0))
    assert set(host.processors(machine.logical_cores)) == os.sched_getaffinity(0)
    assert host.load_average() >= 0.0
