import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.library.dispatch.rules import configurations
from tuner.core.problem import Matmul
from tuner.core.reliability import NOT_RECORDED, RELIABLE, unreliable
from tuner.library.dispatch.first_use import (
    BoundCandidate,
    FirstUse,
    FirstUseCache,
    FirstUseKey,
    TimedConfiguration,
)

KEY = FirstUseKey(Matmul(64, 64, 64), "a machine", "a compiler", 1, "a library x1")
PACKED, DIRECT = configurations()
FOUND = FirstUse(
    "a library x1",
    2e-6,
    (TimedConfiguration(PACKED, 1e-6), TimedConfiguration(DIRECT, None, "why")),
    RELIABLE,
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    cache = FirstUseCache(tmp_path / "new" / "folder")
    assert cache.read(KEY) is None
    cache.write(KEY, FOUND)
    assert cache.read(KEY) == FOUND


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, problem=Matmul(65, 64, 64)),
        replace(KEY, problem=Matmul(64, 64, 64, align="any")),
        replace(KEY, problem=Matmul(64, 64, 64, layout="nt")),
        replace(KEY, machine="another"),
        replace(KEY, compiler="another"),
        replace(KEY, threads=2),
        replace(KEY, baseline="a library x2"),
    ],
    ids=["m", "align", "layout", "machine", "compiler", "threads", "baseline"],
)
def test_each_part_of_a_key_counts_as_it_is(tmp_path: Path, other: FirstUseKey) -> None:
    cache = FirstUseCache(tmp_path)
    cache.write(KEY, FOUND)
    assert cache.read(other) is None
    (file,) = tmp_path.glob("*.json")
    file.rename(tmp_path / f"{other.name}.json")  # as if two keys had one name
    assert cache.read(other) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format": "tuner-first-use", "version": 2}', b"\xff\xfe"]
)
def test_a_damaged_file_counts_as_none_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    cache = FirstUseCache(tmp_path)
    cache.write(KEY, FOUND)
    (tmp_path / f"{KEY.name}.json").write_bytes(content)
    assert cache.read(KEY) is None
    cache.write(KEY, FOUND)
    assert cache.read(KEY) == FOUND


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = FirstUseCache(tmp_path / "file")
    with cache.held(KEY):
        cache.write(KEY, FOUND)
    assert cache.read(KEY) is None


def test_readers_meet_whole_files_while_others_write(tmp_path: Path) -> None:
    cache = FirstUseCache(tmp_path)
    cache.write(KEY, FOUND)
    read: list[FirstUse | None] = []

    def write() -> None:
        for _ in range(20):
            cache.write(KEY, FOUND)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        read.append(cache.read(KEY))
    assert all(each == FOUND for each in read)
    assert len(list(tmp_path.iterdir())) == 1


def test_one_at_a_time_holds_a_key(tmp_path: Path) -> None:
    cache, inside, order = FirstUseCache(tmp_path), threading.Event(), []

    def second() -> None:
        inside.wait()
        with FirstUseCache(tmp_path).held(KEY):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with cache.held(KEY):
        inside.set()
        thread.join(timeout=0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_the_fastest_is_a_configuration_asked_for_that_beats_the_baseline() -> None:
    both = (PACKED.candidate, DIRECT.candidate)
    assert FOUND.fastest(both) == PACKED.candidate
    assert FOUND.fastest((DIRECT.candidate,)) is None  # it failed
    slow = replace(FOUND, baseline_s=1e-6)
    assert slow.fastest(both) is None
    assert slow.why_baseline == "faster at first use: 1 us, the best kernel 1 us"
    assert replace(FOUND, timed=FOUND.timed[1:]).why_baseline == "why"


@pytest.mark.parametrize(
    ("doubt", "reason"),
    [
        ({"reliability": unreliable("load")}, "unreliable: load"),
        ({"no_ratio": "not distinguishable"}, "not distinguishable"),
        ({"reliability": NOT_RECORDED}, "unknown: it was not recorded"),
    ],
)
def test_times_of_a_first_use_that_are_no_evidence_are_not_called_faster(
    doubt: dict[str, Any], reason: str
) -> None:
    found = replace(FOUND, baseline_s=1e-6, **doubt).why_baseline
    assert found == f"no kernel was clearly faster at first use: 1 us, the best kernel 1 us; {reason}"


def test_a_kernel_that_hardly_beats_the_baseline_is_not_used() -> None:
    both = (PACKED.candidate, DIRECT.candidate)
    close = replace(FOUND, baseline_s=1.019e-6)
    assert close.fastest(both) is None
    assert close.why_baseline == "within 2% at first use: 1.019 us, the best kernel 1 us"
    assert replace(FOUND, baseline_s=1.021e-6).fastest(both) == PACKED.candidate


def test_a_first_use_holds_while_it_has_all_that_is_asked_for() -> None:
    asked = tuple(BoundCandidate(each.candidate, "") for each in (PACKED, DIRECT))
    assert FOUND.has(asked)
    assert not replace(FOUND, timed=FOUND.timed[:1]).has(asked)
