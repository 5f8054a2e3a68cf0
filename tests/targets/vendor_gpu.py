"""GPUs of another vendor, by a stand-in that takes the code of this processor: the skeleton of a target."""

from dataclasses import replace
from typing import final

from tuner.core.candidate import TargetName
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.runs import Compiler
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.targets.compiled_target import CompiledTarget
from tuner.targets.cpu.target import Cpu
from tuner.targets.target import RunnerChildren, TargetStatus

CHIPS = ("gfx90a", "gfx942")
HERE = "gfx942"


@final
class VendorGpu(CompiledTarget):
    """A GPU of the vendor."""

    name = "rocm"
    chips = CHIPS
    default_chip = HERE

    def status(self) -> TargetStatus:
        return TargetStatus(self.name, True, "a stand-in", chip=HERE)

    def machine(self, target: TargetName) -> Machine:
        here = Cpu().machine(target)
        return replace(here, name=f"AMD {target.detail}", isa="none", chip=target.detail)

    def compiler(self, target: TargetName) -> Compiler:
        return Cpu().compiler(target)

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        return RunnerChildren(
            compiler=Factory("tuner.targets.cpu.compiler:CpuCompiler"),
            evaluator=Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (1,)),
            limits=Limits(),
            device="rocm",
        )


THIS_GPU = VendorGpu()
