"""A C library of a range of rows: one function that is right for every m, by kernels of a few m."""

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.models.library.c.c_programs import NEEDS_CC, call, cc, entry_of, shared_object, write
from tuner.analysis.row_ranges import RowRange
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.models.library.c.kernels import function_of
from tuner.models.library.c.writer import c_files
from tuner.models.library.entries import LibraryEntry

pytestmark = [pytest.mark.mlir, NEEDS_CC]
SOURCES = ("tuner_matmul.c", "tuner_kernels.o")
GREATEST = 41
TUNED, FALLBACK = 1, 0
FIXED_S = 4e-6  # of a call, as to read B; the rest is by the row
ROW_S = 1e-6


def range_entries(
    problem: Problem, strategy: str = "matmul_cpu_direct", threads: int = 1
) -> tuple[LibraryEntry, ...]:
    """Returns entries of a range up to the problem's m, with times that nobody measured."""
    row_range = RowRange(problem)
    entries = []
    for named in row_range.tuned_problems:
        split = "none" if threads == 1 else "n"
        entry = entry_of(named.problem, strategy, threads, split=split)
        median_s = FIXED_S + ROW_S * named.problem.sizes[0]
        entries.append(replace(entry, median_s=median_s, row_range=row_range))
    return tuple(entries)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("range")
    return shared_object(write(c_files(range_entries(Matmul(GREATEST, 70, 36))), folder), *SOURCES)


def test_every_m_of_a_range_and_beyond_runs_tuned_kernels(library: ctypes.CDLL) -> None:
    problem = Matmul(1, 70, 36)
    function = library[function_of(problem, "tuner").name]
    for rows in range(1, 2 * GREATEST + 3):
        assert call(function, replace(problem, sizes=(rows, 70, 36)), seed=rows) == TUNED


def test_rows_before_and_after_those_of_a_call_are_left_alone(library: ctypes.CDLL) -> None:
    function = library[function_of(Matmul(1, 70, 36), "tuner").name]
    a = np.ones((GREATEST, 36), np.float32)
    b = np.ones((36, 70), np.float32)
    for rows in range(1, GREATEST):
        c = np.full((rows + 2, 70), 7, np.float32)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (a, b, c[1:]))
        assert function(*pointers, *map(ctypes.c_int64, (rows, 70, 36))) == TUNED
        assert np.all(c[1:-1] == 36)
        assert np.all(c[[0, -1]] == 7)


def test_another_n_or_k_runs_the_portable_loop(library: ctypes.CDLL) -> None:
    problem = Matmul(8, 71, 36)
    function = library[function_of(problem, "tuner").name]
    assert call(function, problem) == FALLBACK
    library.tuner_limit_features(0)
    assert call(function, Matmul(8, 70, 36)) == FALLBACK
    library.tuner_limit_features(-1)


RANGES = (
    (Matmul(21, 48, 40, layout="nt", epilogue="bias_relu_residual"), "matmul_cpu_dot", 1),
    (Matmul(21, 48, 40, epilogue="accumulate"), "matmul_cpu_direct", 1),
    (Matmul(21, 48, 40, "bf16", epilogue="bias_relu", output="bf16"), "matmul_cpu_direct", 1),
    (Matmul(21, 64, 64, "i8"), "matmul_cpu_direct", 1),
    (Matmul(21, 96, 40), "matmul_cpu_direct", 2),
)


@pytest.mark.slow
def test_epilogues_types_and_threads_of_ranges_are_right_for_every_m(tmp_path: Path) -> None:
    entries: tuple[LibraryEntry, ...] = ()
    for problem, strategy, threads in RANGES:
        entries += range_entries(problem, strategy, threads)
    library = shared_object(write(c_files(entries), tmp_path), *SOURCES, options=("-lm",))
    for problem, _, _ in RANGES:
        function = library[function_of(problem, "tuner").name]
        _, *others = problem.sizes
        for rows in range(1, 30):
            assert call(function, replace(problem, sizes=(rows, *others)), seed=rows) == TUNED
    cc(tmp_path, "check.c", *SOURCES, "-o", "check", "-lm")
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "WRONG" not in done.stdout
