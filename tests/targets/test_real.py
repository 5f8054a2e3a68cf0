"""The real parts, each as little as shows that it is wired."""

import subprocess
import sys

import pytest

from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import AbstractCompiler, AbstractEvaluator
from tuner.core.machine import Machine
from tuner.core.problem import Matmul
from tuner.runtime.workers.protocol import Factory
from tuner.targets.registry import KINDS, real_backends

SOURCE = "func.func @f() {\n  return\n}\n"
RENAME = text_beside(__file__, "RENAME")
BROKEN = RENAME.replace('transform.annotate %func "seen"', "transform.loop.unroll %func { factor = 4 }")


def test_each_target_has_a_machine_of_its_own_processors_come_first_and_simulations_give_no_times() -> None:
    def machine(target: TargetName) -> Machine:
        return real_backends().outcomes(target).machine(target)

    here = real_backends().machine()
    assert here.physical_cores >= 1
    assert here.memory_bytes > 2**20
    assert machine(TargetName("cpu")) == here
    assert machine(TargetName("simulator", "sm_80")).name == "simulator sm_80"
    assert machine(TargetName("cuda", "sm_90a")).chip == "sm_90a"
    statuses = real_backends().targets()
    assert [status.name for status in statuses] == ["cpu", "cuda", "simulator", "replay"]
    assert [status.is_timed for status in statuses if status.name in ("cpu", "simulator")] == [True, False]
    with pytest.raises(UsageError, match=r"^target 'tpu:v5': not known here$"):
        real_backends().kind(TargetName("tpu", "v5"))


@pytest.mark.mlir
def test_a_script_is_applied_in_a_child() -> None:
    assert "func.func @f() attributes {seen}" in real_backends().apply(RENAME, SOURCE)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize(
    ("script", "payload", "error", "message"),
    [
        ("module {", SOURCE, UsageError, r"apply: (script|payload): "),
        (RENAME, "nonsense", UsageError, r"apply: (script|payload): "),
        (SOURCE, SOURCE, UsageError, r"apply: (script|payload): "),
        (BROKEN, SOURCE, TunerError, "apply: "),
    ],
)
def test_text_that_is_no_script_or_payload_is_the_users_mistake_and_a_failure_is_reported(
    script: str, payload: str, error: type[TunerError], message: str
) -> None:
    with pytest.raises(error, match=message):
        real_backends().apply(script, payload)


TARGETS = (TargetName("cpu"), TargetName("cuda", "sm_90"), TargetName("simulator", "sm_90"))
IMPORTED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*(name for name in sys.modules if name.startswith("tuner.")))
"""


def modules_imported_by(factory: Factory) -> set[str]:
    """Returns the modules and packages that a new process imports to build what a factory describes."""
    module, _, _ = factory.path.partition(":")
    options = (sys.executable, "-c", IMPORTED, module)
    return set(subprocess.run(options, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_child_builds_one_of_both_ports(target: TargetName) -> None:
    children_of = KINDS[target.kind].outcomes.children
    assert children_of is not None
    children = children_of(target, Matmul(8, 8, 8), 1)
    compiler, evaluator = children.compiler.build(), children.evaluator.build()
    assert isinstance(compiler, AbstractCompiler)
    assert not isinstance(compiler, AbstractEvaluator)
    assert isinstance(evaluator, AbstractEvaluator)
    assert not isinstance(evaluator, AbstractCompiler)
    runs_kernels = {"tuner.runtime.cuda", "tuner.runtime.cpu.thread_team", "tuner.simulator"}
    assert not modules_imported_by(children.compiler) & runs_kernels
    if target.kind != "cpu":  # whose evaluator makes machine code of the LLVM dialect
        assert not modules_imported_by(children.evaluator) & {"tuner.mlir.bindings"}
