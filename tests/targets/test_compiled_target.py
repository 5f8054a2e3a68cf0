"""A target that is neither a processor nor a GPU has four methods; what it lacks is refused with its name."""

from typing import final

import pytest

from tests.trials import trial
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Verdict
from tuner.core.runs import ChosenStrategy, Compiler
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.targets.compiled_target import CompiledTarget
from tuner.targets.cpu.target import Cpu
from tuner.targets.target import RunnerChildren, TargetStatus

PROBLEM = Matmul(16, 16, 16)
NAME = TargetName("array")
COMPILER = Factory("tuner.targets.cpu.compiler:CpuCompiler")


@final
class Array(CompiledTarget):
    """Hardware of another kind, which takes the code of this processor: the skeleton of a new target."""

    name = "array"

    def status(self) -> TargetStatus:
        return TargetStatus(self.name, True, "an array of multipliers", is_timed=False)

    def machine(self, target: TargetName) -> Machine:
        return Cpu().machine(target)

    def compiler(self, target: TargetName) -> Compiler:
        return Cpu().compiler(target)

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        return RunnerChildren(COMPILER, Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (1,)), Limits())


ARRAY = Array()


def test_four_methods_are_all_that_is_abstract() -> None:
    assert CompiledTarget.__abstractmethods__ == {"status", "machine", "compiler", "children"}


def test_what_is_not_overridden_is_refused_with_the_name_of_the_target() -> None:
    with pytest.raises(TunerError, match=r"^target array: has no library to compare with$"):
        ARRAY.baseline(PROBLEM, 1, 0, LockWait())
    with pytest.raises(TunerError, match=r"^target array: its highest flop/s and bytes/s are not measured$"):
        ARRAY.roofline(PROBLEM, 1, LockWait())
    with pytest.raises(UsageError, match=r"^trial 107: target array has no functions that Python can call$"):
        ARRAY.load(PROBLEM, trial(7, Verdict(0.25, 64)), None)
    with pytest.raises(UsageError, match=r"^--baseline mkl cannot be combined with this target"):
        ARRAY.require_baseline("mkl", PROBLEM)
    assert (ARRAY.is_timed(), ARRAY.tools(), ARRAY.assembly("", None)) == (False, "", "")


def test_a_script_of_the_space_is_bound_and_compiled_by_the_compiler_of_the_children() -> None:
    machine = ARRAY.machine(NAME)
    candidate = load_space_file(default_space_file()).strategy("matmul_cpu_packed").first_on("")[0]
    script = ARRAY.bind((ChosenStrategy("matmul_cpu_packed"),), PROBLEM, 1, machine)(candidate)
    assert "func.func" in ARRAY.source(PROBLEM, script.text)
    assert ARRAY.code(NAME, PROBLEM, script) == Cpu().code(TargetName("cpu"), PROBLEM, script)
