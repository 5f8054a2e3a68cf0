"""Entries for C libraries, and the C compiler that builds and runs what is exported."""

import ctypes
import functools
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.machine import Machine, variables_of
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.core.runs import ChosenStrategy
from tuner.models.library.entries import LibraryEntry, LibraryFile
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import spaces
from tuner.targets import run_plan

STRICT = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
CC = shutil.which("cc") or shutil.which("gcc")
NEEDS_CC = pytest.mark.skipif(CC is None, reason="needs a C compiler: cc or gcc on PATH")
BARE = {"PATH": "/nowhere"}  # no Python is found there
TUNED, FALLBACK, BAD_SIZES = 1, 0, -1  # what functions return
LARGE, ODD = Matmul(64, 128, 64), Matmul(33, 70, 40)
PROBLEMS = (
    (LARGE, "matmul_cpu_packed"),
    (ODD, "matmul_cpu_direct"),
    (Matmul(48, 40, 56, "f64", "nt"), "matmul_cpu_dot"),
    (Matmul(40, 72, 36, layout="tn", epilogue="bias_relu"), "matmul_cpu_packed"),
    (Matmul(33, 70, 40, "bf16"), "matmul_cpu_direct"),
    (Matmul(33, 70, 40, "bf16", epilogue="bias_relu", output="bf16"), "matmul_cpu_direct"),
    (Matmul(33, 70, 40, "f16", layout="nt"), "matmul_cpu_packed"),
    (Matmul(64, 64, 64, "i8"), "matmul_cpu_packed"),
    (BatchMatmul(3, 32, 48, 40), "matmul_cpu_direct"),
)


@functools.cache
def entry_of(
    problem: Problem, strategy: str, threads: int = 1, machine: Machine | None = None, split: str = "none"
) -> LibraryEntry:
    """Returns an entry with a feasible configuration of a strategy; ``machine`` None: this one."""
    machine = machine or describe_machine()
    variables, chosen = variables_of(problem, machine, threads), (ChosenStrategy(strategy),)
    found = spaces(chosen, load_space_file(default_space_file()), problem, machine.isa, variables)
    feasible = FeasibleSet.of(found)
    candidates = (feasible.candidate(row) for row in range(feasible.rows))
    candidate = next(each for each in candidates if dict(each.choices)["split"] == split)
    script = run_plan.bind(chosen, problem, threads, machine)(candidate)
    return LibraryEntry(problem, candidate, script.text, machine, threads, 1e-4, "", None, 7)


def write(files: Iterable[LibraryFile], folder: Path) -> Path:
    for file in files:
        (folder / file.name).write_bytes(file.content)
    return folder


def cc(folder: Path, *arguments: str) -> None:
    """Runs the C compiler in a folder; its messages are those of a failure."""
    assert CC is not None
    done = subprocess.run([CC, *STRICT, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def shared_object(folder: Path, *sources: str, options: Iterable[str] = ()) -> ctypes.CDLL:
    """Builds the files of a folder as a shared object, and loads it."""
    cc(folder, "-shared", "-fPIC", *options, *sources, "-o", "library.so")
    return ctypes.CDLL(str(folder / "library.so"))


def call(function: Any, problem: Problem, seed: int = 0) -> int:
    """Calls a function of a library on random numbers; returns its code. C is compared unless nothing ran."""
    rng = np.random.default_rng(seed)
    inputs = draw(problem, draw_base(problem, rng), rng)
    c = inputs.output_before
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (*inputs.arrays, c))
    code = int(function(*pointers, *map(ctypes.c_int64, problem.extents)))
    if code >= 0:
        verdict, worst = compare(inputs, c)
        assert verdict.max_error <= 1.0, f"{problem.key}: {worst}"
    return code
