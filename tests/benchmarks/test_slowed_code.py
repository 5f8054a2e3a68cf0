"""Additional work that the gate's experiment injects: it is executed, and the results stay right."""

import numpy as np
import pytest

from benchmarks.slowed_code import slowed
from tuner.core.compiled_code import KernelCode
from tuner.core.interfaces import Artifact, Effort, Partition, Script
from tuner.core.matmul import Matmul
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

PROBLEM = Matmul(64, 64, 64)
ITERATIONS = 100_000_000  # some 30 ms
LEAST_S = ITERATIONS * 1e-10  # at ten times the clock of any processor
EFFORT = Effort(budget_s=0.02, min_samples=5, max_samples=10)
SCRIPT = """!op = !transform.any_op
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !op) {
    %function = transform.structured.match ops{["func.func"]} in %root : (!op) -> !op
    %buffers = transform.bufferization.one_shot_bufferize %function : (!op) -> !op
    transform.yield
  }
}
"""


@pytest.mark.slow
@pytest.mark.mlir
def test_additional_work_is_executed_and_changes_no_result() -> None:
    evaluator, rng = CpuEvaluator(1), np.random.default_rng(0)
    plain = CpuCompiler().compile(PROBLEM, Script.of(SCRIPT))
    longer = slowed(plain, ITERATIONS)
    assert longer.sha256 != plain.sha256
    loaded = evaluator.load(PROBLEM, plain), evaluator.load(PROBLEM, longer)
    assert evaluator.verify(PROBLEM, loaded[1], rng).max_error <= 1
    _, slow = evaluator.measure_together(PROBLEM, loaded, EFFORT, rng)
    assert min(slow.samples_s) > LEAST_S  # whatever else runs only adds


def test_no_work_is_another_text_of_the_same_code_and_code_without_panel_functions_is_refused() -> None:
    plain = Artifact(KernelCode.of_host("module {\n}\n"), "aa", (Partition("f", 0, 0, 1, 1),))
    found = slowed(plain, 0)
    assert found.code.text == plain.code.text + "// 0 iterations\n"
    assert found.sha256 != plain.sha256
    with pytest.raises(ValueError, match="found 0 functions, allowed one for each panel"):
        slowed(plain, 5)
