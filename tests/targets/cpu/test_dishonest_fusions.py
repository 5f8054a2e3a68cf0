"""Kernels of fusions that cheat: usual numbers do not show it, the special draws of the search do."""

from functools import cache

import pytest

from tests.targets.cpu.dishonest_fusions import KERNELS, USUAL, Dishonest
from tests.targets.evaluation import fails, rng
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Artifact
from tuner.core.packings import packings_comment
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import compile_fusion
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.fusion_arrays import FusionArrays
from tuner.targets.cpu.loaded_kernel import LoadedKernel

pytestmark = pytest.mark.mlir

CPU = CpuEvaluator(1)


@cache
def loaded(kernel: Dishonest, text: str) -> LoadedKernel:
    with transform.new_context(), ir.Location.unknown():
        code = compile_fusion(text, None)
    comment = packings_comment(code.packings)
    return CPU.load(kernel.problem, Artifact(KernelCode.of_host(comment + code.llvm_text), ""))


def is_right_on_usual_numbers(kernel: Dishonest) -> bool:
    arrays = FusionArrays(kernel.problem, rng(), 0)
    calls = loaded(kernel, kernel.altered).calls_on(arrays)
    try:
        arrays.fill(rng())
        ThreadTeam(1).repeat(calls.calls, 1)
        arrays.evaluate()
        arrays.flip_signs()
        ThreadTeam(1).repeat(calls.calls, 1)
        arrays.evaluate()
    except CandidateError:
        return False
    return True


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_of_a_fusion_that_cheats_is_refused(name: str) -> None:
    kernel = KERNELS[name]
    assert is_right_on_usual_numbers(kernel) == (kernel.shown_by != USUAL)
    assert CPU.verify(kernel.problem, loaded(kernel, kernel.text), rng()).max_error <= 1.0
    with fails(Stage.VERIFY, "elements are wrong"):
        CPU.verify(kernel.problem, loaded(kernel, kernel.altered), rng())
