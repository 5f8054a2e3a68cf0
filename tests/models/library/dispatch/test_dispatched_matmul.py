"""``tuner.matmul`` with the real compiler, on tiny shapes."""

import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.forked import in_child
from tests.models.library.dispatch.rules import rule_of, ship, space
from tuner.analysis.portfolio import MODEL, SAME_WEIGHTS, TUNED
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.models.library.dispatch.first_use import LEAST_GAIN
from tuner.models.library.dispatch.matmul import DispatchedMatmul
from tuner.models.library.dispatch.resolver import BASELINE, FIRST_USE, SHIPPED
from tuner.payload.reference import Array
from tuner.results import database_name
from tuner.runtime.cpu.memory import placed_copy
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.registry import real_backends
from tuner.tuning.rule import rule_text

pytestmark = pytest.mark.mlir


class Subclass(np.ndarray[Any, Any]):
    """An array of a user's class."""


SLOW_S, FAST_S = 2e-3, 1e-9  # of problems of some thousand flop


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUNER_DB", raising=False)
    monkeypatch.setattr(database_name, "default_file", lambda: tmp_path / "results.db")
    ship(tmp_path, monkeypatch)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    done: list[Problem] = []
    compile_ = CpuCompiler.compile

    def counted(self: CpuCompiler, problem: Problem, script: Any) -> Any:
        done.append(problem)
        return compile_(self, problem, script)

    monkeypatch.setattr(CpuCompiler, "compile", counted)
    return done


def matmul(folder: Path) -> DispatchedMatmul:
    return DispatchedMatmul(real_backends, lambda: folder / "first-use")


def arrays(m: int, n: int, k: int, dtype: Any = np.float32) -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


Times = dict[Problem, tuple[float, ...]]  # of the packed and of the direct configuration


def rule_file(folder: Path, times_s: Times, baseline_s: float | None = None) -> Path:
    path = folder / "mm.rule.yaml"
    path.write_text(rule_text(rule_of(times_s, baseline_s)))
    return path


def test_a_new_shape_is_compiled_and_measured_once(tmp_path: Path, compilations: list[Problem]) -> None:
    mm, (a, b) = matmul(tmp_path), arrays(5, 40, 24)
    assert np.allclose(mm(a, b), a @ b, atol=1e-4)
    first = len(compilations)
    assert 1 <= first <= 4
    assert {*compilations} == {Matmul(5, 40, 24)}
    for _ in range(3):
        assert np.allclose(mm(a, b), a @ b, atol=1e-4)
    mm(*arrays(5, 40, 24))
    assert len(compilations) == first
    mm(*arrays(6, 40, 24))  # no bucket: another m is another problem
    assert compilations[first] == Matmul(6, 40, 24)


@pytest.mark.slow
def test_after_first_use_nothing_slower_than_the_baseline_as_timed_is_used(tmp_path: Path) -> None:
    mm, (a, b) = matmul(tmp_path), arrays(4, 33, 20)
    found = mm.chosen(a, b)
    assert found.first_use is not None
    assert found.source in (FIRST_USE, BASELINE)
    medians = {each.configuration.candidate: each.median_s for each in found.first_use.timed}
    projected = space().projected(Matmul(4, 33, 20), space().first)
    first_of_space = next(each for each in projected.candidates if each)
    assert first_of_space in medians  # the default stays among what is measured
    best_s = min(median for median in medians.values() if median is not None)
    if found.candidate is None:
        assert found.first_use.baseline_s * (1 - LEAST_GAIN) <= best_s
        assert re.match(r"(faster|within 2%|no kernel was clearly faster) at first use: ", found.reason)
    else:
        assert medians[found.candidate] == best_s < found.first_use.baseline_s * (1 - LEAST_GAIN)


@pytest.mark.slow
def test_threads_that_come_first_together_measure_once(tmp_path: Path, compilations: list[Problem]) -> None:
    mm, (a, b) = matmul(tmp_path), arrays(5, 18, 9)
    with ThreadPoolExecutor(6) as threads:
        products = [*threads.map(lambda _: mm(a, b), range(6))]
    assert all(np.allclose(each, a @ b, atol=1e-4) for each in products)
    assert len(compilations) <= 4


def _called(folder: Path, barrier: Any, results: Any) -> None:
    mm, (a, b) = matmul(folder), arrays(5, 19, 9)
    barrier.wait()
    right = bool(np.allclose(mm(a, b), a @ b, atol=1e-4))
    results.put((right, mm.chosen(a, b).first_use))


@pytest.mark.slow
def test_processes_that_come_first_together_share_one_measurement(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=_called, args=(tmp_path, barrier, results)) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert [right for right, _ in found] == [True, True]
    assert found[0][1] == found[1][1]
    assert len(list((tmp_path / "first-use").glob("*.json"))) == 1


def test_a_problem_of_the_rule_is_tuned_and_no_miss(tmp_path: Path, compilations: list[Problem]) -> None:
    rule = rule_file(tmp_path, {Matmul(8, 48, 32): (SLOW_S, FAST_S)})
    mm, (a, b) = matmul(tmp_path), arrays(8, 48, 32)
    assert np.allclose(mm(a, b, rule=rule, measure="never"), a @ b, atol=1e-4)
    found = mm.chosen(a, b, rule=rule, measure="never")
    assert (found.source, found.is_tuned, found.first_use) == (TUNED, True, None)
    assert found.candidate is not None
    assert found.candidate.strategy == "matmul_cpu_direct"
    assert mm.misses() == ()
    assert len(compilations) == 1


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("sizes", "source", "strategy", "reason"),
    [
        ((13, 48, 32), SAME_WEIGHTS, "matmul_cpu_packed", "never tuned: same n and k"),
        ((3, 21, 64), MODEL, "", "never tuned: cost model"),
        # a direct configuration serves any shape
        ((1, 1, 1), MODEL, "matmul_cpu_direct", "never tuned: cost model"),
        ((1, 7, 3), MODEL, "matmul_cpu_direct", "never tuned: cost model"),
        ((3, 2, 5), MODEL, "matmul_cpu_direct", "never tuned: cost model"),
    ],
)
def test_the_same_n_and_k_serve_an_m_between_and_the_model_of_the_rule_all_others(
    tmp_path: Path, sizes: tuple[int, int, int], source: str, strategy: str, reason: str
) -> None:
    rule = rule_file(tmp_path, {Matmul(8, 48, 32): (FAST_S, SLOW_S), Matmul(32, 48, 32): (FAST_S, SLOW_S)})
    mm, (a, b) = matmul(tmp_path), arrays(*sizes)
    assert np.allclose(mm(a, b, rule=rule, measure="never"), a @ b, atol=1e-4)
    found = mm.chosen(a, b, rule=rule, measure="never")
    assert found.source == source
    assert found.candidate is not None
    assert found.candidate.strategy == (strategy or found.candidate.strategy)
    ((counted, calls),) = [(miss.reason, miss.calls) for miss in mm.misses()]
    assert (counted[: len(reason)], calls) == (reason, 1)


def test_the_baseline_is_used_where_it_was_faster_or_nothing_is_known(
    tmp_path: Path, compilations: list[Problem]
) -> None:
    rule = rule_file(tmp_path, {Matmul(8, 48, 32): (SLOW_S, SLOW_S)}, baseline_s=SLOW_S / 2)
    found = matmul(tmp_path).chosen(*arrays(8, 48, 32), rule=rule, measure="never")
    assert found.source == BASELINE
    times = "faster when the problem was tuned: 1 ms, the kernel 2 ms"
    assert found.reason == f"{times} (unknown: it was not recorded)"
    assert compilations == []
    found = matmul(tmp_path).chosen(*arrays(8, 24, 17), measure="never")
    assert (found.source, found.reason) == (BASELINE, "never tuned, and no rule file")


def test_shipped_results_of_this_class_are_used_untimed_those_of_another_only_where_they_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, (a, b) = rule_of({Matmul(8, 48, 32): (FAST_S, SLOW_S)}), arrays(8, 48, 33)
    ship(tmp_path, monkeypatch, own)
    mm = matmul(tmp_path)
    found = mm.chosen(a, b, measure="never")
    assert (found.source, found.first_use) == (SHIPPED, None)
    assert np.allclose(mm(a, b, measure="never"), a @ b, atol=1e-4)
    timed = mm.chosen(a, b)
    assert timed.source in (FIRST_USE, BASELINE)
    assert timed.first_use is not None
    candidates = [each.configuration.candidate for each in timed.first_use.timed]
    assert candidates[0] == found.candidate
    (tmp_path / "other").mkdir()
    ship(tmp_path / "other", monkeypatch, replace(own, machine="another"))
    found = matmul(tmp_path).chosen(a, b, measure="never")
    reason = "never tuned, and shipped results of some (1 shapes) are of other processors"
    assert (found.source, found.reason) == (BASELINE, reason)
    assert matmul(tmp_path).chosen(a, b).first_use is not None


@pytest.mark.slow
def test_what_the_database_has_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backends = real_candidates()
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)
    database = tmp_path / "results.db"
    with brief_remeasurement():
        run = tuner.tune(Matmul(8, 24, 16), target="cpu", trials=2, db=database)
    assert run.best is not None
    mm, (a, b) = matmul(tmp_path), arrays(8, 24, 16)
    found = mm.chosen(a, b, db=database)
    assert found.source in (TUNED, BASELINE)
    assert found.first_use is not None  # it is timed against the baseline all the same
    assert [each.configuration.candidate for each in found.first_use.timed] == [run.best.record.candidate]
    assert np.allclose(mm(a, b, db=database), a @ b, atol=1e-4)


def test_arrays_that_no_kernel_takes_are_numpys_and_counted_by_reason(tmp_path: Path) -> None:
    mm, (a, b) = matmul(tmp_path), arrays(4, 6, 5, np.int64)
    assert np.array_equal(mm(a, b), a @ b)
    mm(a, b)
    assert np.array_equal(mm(a.view(Subclass), b), a @ b)
    assert mm([[1.0, 2.0]], [[3.0], [4.0]]).tolist() == [[11.0]]  # type: ignore[arg-type]
    assert mm(np.ones((2, 3, 4)), np.ones((4, 2))).shape == (2, 3, 2)
    with pytest.raises(ValueError, match="mismatch"):
        mm(np.ones((2, 3)), np.ones((4, 2)))
    counted = {miss.reason: miss.calls for miss in mm.misses()}
    assert counted["baseline: types int64 and int64"] == 2
    assert counted["baseline: not two plain numpy arrays"] == 2
    assert counted["baseline: shapes (2, 3) and (4, 2)"] == 1


def test_bad_options_are_refused_in_one_line(tmp_path: Path) -> None:
    bad: tuple[tuple[dict[str, Any], str], ...] = (
        ({"measure": "always"}, "measure: found 'always', allowed first-use, never"),
        ({"threads": 0}, "threads: found 0, allowed 1 or more"),
        ({"rule": 3}, "rule: found 3, allowed a text, a path or None"),
        ({"rule": "missing.yaml"}, "missing.yaml: cannot be read"),
    )
    for options, message in bad:
        with pytest.raises(UsageError, match=message):
            matmul(tmp_path)(*arrays(4, 4, 4), **options)


def test_the_public_name_is_one_object_and_says_what_was_chosen() -> None:
    assert tuner.matmul is tuner.matmul
    a, b = arrays(2, 2, 2, np.int32)
    assert np.array_equal(tuner.matmul(a, b), a @ b)
    assert tuner.matmul.chosen(a, b).source == BASELINE


# After a call, arrays of which one component differs are multiplied right.

SIZE = 16  # of both matrices: one that takes another for it is wrong, and does not fail
RNG = np.random.default_rng(3)
A, B = (RNG.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))


def steps(a: Array) -> Array:
    """Returns the same numbers with another row between two rows."""
    wide = np.zeros((2 * SIZE, SIZE), a.dtype)
    wide[::2] = a
    return wide[::2]


def read_only(a: Array) -> Array:
    found = a.copy()
    found.flags.writeable = False
    return found


Pair = tuple[Array, Array]
VARIANTS: dict[str, Callable[[], Pair]] = {
    "contents": lambda: (B, A),
    "rows": lambda: (A[:5], B),
    "columns": lambda: (A, np.ascontiguousarray(B[:, :5])),
    "depth": lambda: (np.ascontiguousarray(A[:, :5]), B[:5]),
    "type": lambda: (A.astype(np.float64), B.astype(np.float64)),
    "type of one": lambda: (A, B.astype(np.float64)),
    "integers": lambda: ((A * 9).astype(np.int64), (B * 9).astype(np.int64)),
    "sign": lambda: ((A * 9).astype(np.int8).view(np.uint8), (B * 9).astype(np.int8).view(np.uint8)),
    "order of bytes": lambda: (A.astype(">f4"), B.astype(">f4")),
    "transposed A": lambda: (A.T, B),
    "transposed B": lambda: (A, B.T),
    "both transposed": lambda: (A.T, B.T),
    "steps": lambda: (steps(A), B),
    "steps of B": lambda: (A, steps(B)),
    "reversed": lambda: (A[::-1], B[:, ::-1]),
    "repeated": lambda: (np.broadcast_to(A[0], A.shape), B),
    "address": lambda: (placed_copy(A, 4), B),
    "address of B": lambda: (A, placed_copy(B, 8)),
    "sharing": lambda: (A, A),
    "sharing, transposed": lambda: (A, A.T),
    "read-only": lambda: (read_only(A), read_only(B)),
    "class": lambda: (A.view(Subclass), B),
    "negated": lambda: (-A, B),
}


@pytest.fixture(scope="module")
def multiply(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Array]:
    """Gives products by a kernel, from a rule that has one for the base shape; the base was called."""
    folder: Path = tmp_path_factory.mktemp("rule")
    rule = rule_file(folder, {Matmul(SIZE, SIZE, SIZE): (SLOW_S, FAST_S)})
    multiply = matmul(folder)

    def call(a: Array, b: Array, **options: Any) -> Array:
        return multiply(a, b, rule=rule, measure="never", **options)

    assert multiply.chosen(A, B, rule=rule, measure="never").source != BASELINE
    assert right(call(A, B), A, B)
    return call


def right(found: Array, a: Array, b: Array) -> bool:
    expected = np.matmul(a, b)
    return found.dtype == expected.dtype and np.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", VARIANTS)
def test_arrays_that_differ_in_one_way_multiply_right(multiply: Callable[..., Array], name: str) -> None:
    a, b = VARIANTS[name]()
    assert right(multiply(a, b), a, b)
    assert right(multiply(A, B), A, B)


def test_outputs_of_other_kinds_are_filled_right(multiply: Callable[..., Array]) -> None:
    memory = np.zeros((SIZE, 2 * SIZE), np.float32)
    shared = A.copy()
    outputs = (np.zeros_like(A), np.asfortranarray(A), memory[:, ::2], np.zeros(A.shape), placed_copy(A, 4))
    for out in outputs:
        assert multiply(A, B, out=out) is out
        assert np.allclose(out, A @ B, atol=1e-4)
    assert np.allclose(multiply(shared, B, out=shared), A @ B, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_other_threads_and_a_forked_process_multiply_right(multiply: Callable[..., Array]) -> None:
    with ThreadPoolExecutor(1) as thread:
        assert right(thread.submit(multiply, A.T, B).result(), A.T, B)
    assert in_child(lambda: right(multiply(A, B), A, B) and right(multiply(A[:7], B), A[:7], B))
