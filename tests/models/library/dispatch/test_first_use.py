import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.models.library.dispatch.rules import configurations, space
from tuner.core.candidate import Candidate
from tuner.core.errors import Refusal
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.reliability import NOT_RECORDED, RELIABLE, unreliable
from tuner.models.library.dispatch import first_use
from tuner.payload.reference import Array
from tuner.runtime.cpu.memory import placed_copy

PROBLEM = Matmul(6, 40, 24, layout="nt")


def refused(_a: Array, _b: Array, _out: Array | None, reason: str) -> Array:
    raise AssertionError(reason)


def bound() -> first_use.BoundCandidate:
    (direct,) = space().projected(PROBLEM, (configurations()[1].candidate,)).candidates
    assert direct is not None
    return first_use.BoundCandidate(direct, space().script(PROBLEM, direct).text)


def test_the_baseline_is_named_with_its_threads() -> None:
    name = first_use.baseline_name()
    assert name.rpartition(" x")[2].isdecimal() or name == f"numpy {np.__version__}"


@pytest.mark.mlir
def test_what_fails_is_left_out_with_its_reason_and_the_rest_is_timed() -> None:
    both = (first_use.BoundCandidate(Candidate.of("broken", {}), "no MLIR"), bound())
    found, calls = first_use.time_first_use(PROBLEM, both, first_use.KernelLoader(1), refused)
    broken, direct = found.timed
    assert broken.median_s is None
    assert broken.failure.startswith("bind: script:1:1: ")
    assert direct.median_s is not None
    assert found.baseline_s > 0
    assert [*calls] == [direct.configuration.candidate]
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 24), (40, 24)))
    call = calls[direct.configuration.candidate]
    assert np.allclose(call(a, b.T, None), first_use.numpy_product(a, b.T, None), atol=1e-4)


class WrongLoader:
    def loaded(self, _problem: Problem, _script_text: str, _otherwise: object) -> first_use.MatmulCall:
        def call(a: Array, b: Array, out: Array | None) -> Array:
            assert out is not None
            kept = out[-1, -1].copy()
            np.matmul(a, b, out=out)
            out[-1, -1] = kept
            return out

        return call


def test_a_wrong_kernel_is_neither_timed_nor_used() -> None:
    loader = cast(first_use.KernelLoader, WrongLoader())
    found, calls = first_use.time_first_use(PROBLEM, (bound(),), loader, refused)
    (wrong,) = found.timed
    assert wrong.median_s is None
    assert wrong.failure.startswith("verify: ")
    assert calls == {}
    assert found.fastest((wrong.configuration.candidate,)) is None
    assert found.why_baseline == wrong.failure


KEY = first_use.FirstUseKey(Matmul(64, 64, 64), "a machine", "a compiler", 1, "a library x1")
PACKED, DIRECT = configurations()
FOUND = first_use.FirstUse(
    "a library x1",
    2e-6,
    (first_use.TimedConfiguration(PACKED, 1e-6), first_use.TimedConfiguration(DIRECT, None, "why")),
    RELIABLE,
)


def test_what_was_written_is_read_and_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    cache = first_use.FirstUseCache(tmp_path / "new" / "folder")
    assert cache.read(KEY) is None
    cache.write(KEY, FOUND)
    assert cache.read(KEY) == FOUND
    (tmp_path / "file").write_text("no folder")
    cache = first_use.FirstUseCache(tmp_path / "file")
    with cache.held(KEY):
        cache.write(KEY, FOUND)
    assert cache.read(KEY) is None


@pytest.fixture
def cache(tmp_path: Path) -> first_use.FirstUseCache:
    made = first_use.FirstUseCache(tmp_path)
    made.write(KEY, FOUND)
    return made


def test_each_part_of_a_key_counts_as_it_is(cache: first_use.FirstUseCache, tmp_path: Path) -> None:
    problems = (Matmul(65, 64, 64), Matmul(64, 64, 64, align="any"), Matmul(64, 64, 64, layout="nt"))
    of_problems = (replace(KEY, problem=each) for each in problems)
    elsewhere = replace(KEY, machine="another"), replace(KEY, compiler="another")
    for other in (*of_problems, *elsewhere, replace(KEY, threads=2), replace(KEY, baseline="a library x2")):
        assert cache.read(other) is None, other
        (file,) = tmp_path.glob("*.json")
        file.rename(tmp_path / f"{other.name}.json")  # as if two keys had one name
        assert cache.read(other) is None, other


def test_a_damaged_file_is_none_and_is_replaced(cache: first_use.FirstUseCache, tmp_path: Path) -> None:
    for content in (b"", b"{", b"[]", b'{"format": "tuner-first-use", "version": 2}', b"\xff\xfe"):
        (tmp_path / f"{KEY.name}.json").write_bytes(content)
        assert cache.read(KEY) is None, content
        cache.write(KEY, FOUND)
        assert cache.read(KEY) == FOUND


def test_readers_meet_whole_files_while_others_write(cache: first_use.FirstUseCache, tmp_path: Path) -> None:
    read: list[first_use.FirstUse | None] = []

    def write() -> None:
        for _ in range(20):
            cache.write(KEY, FOUND)

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write) for _ in range(3)]
        while not all(writer.done() for writer in writers):
            read.append(cache.read(KEY))
    assert all(each == FOUND for each in read)
    assert len(list(tmp_path.iterdir())) == 1


def test_one_at_a_time_holds_a_key(tmp_path: Path) -> None:
    cache, inside, order = first_use.FirstUseCache(tmp_path), threading.Event(), []

    def second() -> None:
        inside.wait()
        with first_use.FirstUseCache(tmp_path).held(KEY):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with cache.held(KEY):
        inside.set()
        thread.join(timeout=0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_who_holds_a_key_for_long_is_named_and_is_not_waited_for_without_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = first_use.FirstUseCache(tmp_path, wait_limit_s=0.1, reported_after_s=0.0)
    entered = []
    with first_use.FirstUseCache(tmp_path).held(KEY), waiting.held(KEY):
        entered.append("after the limit")
    assert entered == ["after the limit"]
    (record,) = caplog.records
    holder = f"waiting for process {os.getpid()}, at most 0.1 s: it times {KEY.problem.key} at its first use"
    assert record.getMessage() == holder


def test_the_fastest_is_a_configuration_asked_for_that_clearly_beats_the_baseline() -> None:
    both = (PACKED.candidate, DIRECT.candidate)
    assert FOUND.fastest(both) == PACKED.candidate
    assert FOUND.fastest((DIRECT.candidate,)) is None  # it failed
    assert replace(FOUND, timed=FOUND.timed[1:]).why_baseline == "why"
    for baseline_s, why in (
        (1e-6, "faster at first use: 1 us, the best kernel 1 us"),
        (1.019e-6, "within 2% at first use: 1.019 us, the best kernel 1 us"),
    ):
        slow = replace(FOUND, baseline_s=baseline_s)
        assert (slow.fastest(both), slow.why_baseline) == (None, why)
    assert replace(FOUND, baseline_s=1.021e-6).fastest(both) == PACKED.candidate
    asked = tuple(first_use.BoundCandidate(each, "") for each in both)
    assert FOUND.has(asked)
    assert not replace(FOUND, timed=FOUND.timed[:1]).has(asked)


def test_times_that_are_no_evidence_are_not_called_faster() -> None:
    as_fast = replace(FOUND, baseline_s=1e-6)
    for found, reason in (
        (replace(as_fast, reliability=unreliable("load")), "unreliable: load"),
        (replace(as_fast, no_ratio="not distinguishable"), "not distinguishable"),
        (replace(as_fast, reliability=NOT_RECORDED), "unknown: it was not recorded"),
    ):
        times = "1 us, the best kernel 1 us"
        assert found.why_baseline == f"no kernel was clearly faster at first use: {times}; {reason}"


RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((6, 20)).astype(np.float32), RNG.standard_normal((20, 33)).astype(np.float32)


def test_arrays_are_the_problem_of_their_exact_sizes_a_transposed_view_is_a_layout() -> None:
    wide = Matmul(6, 33, 20, "f64", align="any")
    assert first_use.problem_of(A, B, "16") == Matmul(6, 33, 20)
    assert first_use.problem_of(A.astype(np.float64), B.astype(np.float64), "any") == wide
    assert first_use.problem_of(A, np.asfortranarray(B), "16") == Matmul(6, 33, 20, layout="nt")
    assert first_use.problem_of(np.asfortranarray(A), B, "16") == Matmul(6, 33, 20, layout="tn")


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (A, B.astype(np.float64), "types float32 and float64"),
        (A.astype(">f4"), B.astype(">f4"), "types >f4 and >f4"),
        (A.astype(np.int8), B.astype(np.int8), "types int8 and int8"),
        (A[0], B, "shapes (20,) and (20, 33)"),
        (A[:, :3], B, "shapes (6, 3)"),
        (A[:0], B, "shapes (0, 20)"),
        (A[:, ::2], B[:10], "strides"),
        (np.asfortranarray(A), np.asfortranarray(B), "strides"),
        (np.ma.array(A), B, "not two plain numpy arrays"),
    ],
)
def test_what_no_kernel_is_tuned_for_is_said(a: Array, b: Array, reason: str) -> None:
    found = first_use.problem_of(a, b, "16")
    assert isinstance(found, Refusal)
    assert reason in found.text


def loaded(problem: Problem, threads: int = 1) -> first_use.KernelCall:
    (candidate,) = space(threads).projected(problem, (DIRECT.candidate,)).candidates
    assert candidate is not None
    text, loader = space(threads).script(problem, candidate).text, first_use.KernelLoader(threads)
    return loader.loaded(problem, text, lambda _a, _b, _out, reason: np.array([reason]))


@pytest.fixture(scope="module")
def call() -> first_use.KernelCall:
    return loaded(Matmul(6, 33, 20))


@pytest.mark.mlir
def test_a_kernel_fills_a_new_array_or_out_of_enough_alignment(call: first_use.KernelCall) -> None:
    expected = first_use.numpy_product(A, B, None)
    a = A.copy()
    a.flags.writeable = False
    assert np.allclose(call(a, B, None), expected, atol=1e-5)
    out = np.full((6, 33), np.nan, np.float32)
    assert call(A, B, out) is out
    assert np.allclose(out, expected, atol=1e-5)
    off = placed_copy(A, 4)
    assert call(off, B, None)[0] == first_use.MISALIGNED.format(16)
    assert np.allclose(loaded(Matmul(6, 33, 20, align="any"))(off, B, None), A @ B, atol=1e-5)


@pytest.mark.mlir
@pytest.mark.parametrize("layout", ["nt", "tn"])
def test_a_transposed_view_is_read_as_it_is_stored(layout: str) -> None:
    a = np.asfortranarray(A) if layout == "tn" else A
    b = np.asfortranarray(B) if layout == "nt" else B
    assert np.allclose(loaded(Matmul(6, 33, 20, layout=layout))(a, b, None), A @ B, atol=1e-5)


@pytest.mark.mlir
def test_outputs_that_kernels_cannot_write_are_left_to_numpy(call: first_use.KernelCall) -> None:
    read_only = np.empty((6, 33), np.float32)
    read_only.flags.writeable = False
    square = RNG.standard_normal((33, 33)).astype(np.float32)
    shaped = (np.empty((7, 33), np.float32), np.empty((6, 66), np.float32)[:, ::2])
    others = (read_only, np.empty((6, 33)), *shaped, np.empty((33, 6), np.float32).T)
    assert [call(A, B, out)[0] for out in others] == [first_use.OUT] * len(others)
    assert call(A, square[:20], square[:6])[0] == first_use.OUT  # shares memory with b
