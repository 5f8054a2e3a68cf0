"""Tuned machine code instead of matmuls, called from a program on the host."""

from typing import Any

import numpy as np
import pytest

from tests.programs.lowering.compiled import host_function
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Script
from tuner.core.machine import variables_of
from tuner.core.problem import Matmul, Problem
from tuner.payload.cpu import partition, partitions_comment
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.matmul_calls")

PROBLEM, OTHER = Matmul(40, 24, 16), Matmul(40, 24, 8)
TEXT = text_beside(__file__, "TEXT")


def script(problem: Problem, threads: int = 1) -> Script:
    """Returns the script of the first preferred point of the packing strategy."""
    machine = describe_machine()
    space_file = load_space_file(default_space_file())
    variables = variables_of(problem, machine, threads)
    names = ("matmul_cpu_packed", "matmul_cpu_direct")
    spaces = spaces_for(space_file, problem, machine.isa, variables, names)
    strategies = tuple(load_strategy(name) for name in names)
    feasible = FeasibleSet.of(spaces)
    point = feasible.part(feasible.is_preferred).candidate(0)
    return Binder(strategies, problem, variables, threads).bind(point)


def arrays() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    shapes = (40, 16), (16, 24), (40, 8), (8, 24), (40, 24)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def test_kernels_of_two_problems_are_linked_into_one_program() -> None:
    function = host_function(TEXT, scripts={PROBLEM: script(PROBLEM), OTHER: script(OTHER)})
    for entry in ("matmul_0", "matmul_1"):
        assert f"llvm.func @{entry}(" in function.program.llvm
    assert function.program.llvm.count("call @matmul_0(") == 2
    a, b, u, v, c = arrays()
    np.testing.assert_allclose(function(a, b, u, v, c), u @ v - c, rtol=0, atol=2e-5)
    assert function.allocations == 0


def test_only_the_product_of_a_kernel_is_written() -> None:
    program = host_function(text_beside(__file__, "ON_BUFFERS"), scripts={OTHER: script(OTHER)}).program
    assert program.llvm.count("call @matmul_0(") == 1
    assert program.written == (False, False, True)


def test_matmuls_without_a_script_stay_loops() -> None:
    function = host_function(TEXT, scripts={OTHER: script(OTHER)})
    assert function.program.llvm.count("call @matmul_0(") == 1
    a, b, u, v, c = arrays()
    np.testing.assert_allclose(function(a, b, u, v, c), u @ v - c, rtol=0, atol=2e-5)


def test_a_script_for_several_threads_is_called_panel_by_panel() -> None:
    bound = script(OTHER, threads=2)
    assert "// panels: " in bound.text
    function = host_function(TEXT, scripts={OTHER: bound})
    calls = [line for line in function.program.llvm.splitlines() if "llvm.call @matmul_" in line]
    assert len(calls) >= 2
    a, b, u, v, c = arrays()
    np.testing.assert_allclose(function(a, b, u, v, c), u @ v - c, rtol=0, atol=2e-5)


def test_a_script_for_another_problem_is_refused() -> None:
    bound = Script.of(partitions_comment(partition(PROBLEM, 2, "m", 30)) + "\n" + script(OTHER).text)
    with pytest.raises(CandidateError, match="script: panels") as caught:
        host_function(TEXT.replace("40x", "44x"), scripts={Matmul(44, 24, 8): bound})
    assert caught.value.stage is Stage.BIND
