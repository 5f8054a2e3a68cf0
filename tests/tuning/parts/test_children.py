"""What the children of each kind build: a compiler where code is made, an evaluator where it is timed."""

import subprocess
import sys

import pytest

from tuner.core.problem import Matmul
from tuner.core.target import AbstractCompiler, AbstractEvaluator
from tuner.core.target_name import TargetName
from tuner.tuning.parts.kinds import KINDS
from tuner.workers.protocol import Factory

pytestmark = pytest.mark.mlir

TARGETS = (TargetName("cpu"), TargetName("cuda", "sm_90"), TargetName("simulator", "sm_90"))
IMPORTED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*{name.split(".")[1] for name in sys.modules if name.startswith("tuner.")})
"""


def rooms_imported_by(factory: Factory) -> set[str]:
    """Returns the rooms that a new process imports to build what a factory describes."""
    module, _, _ = factory.path.partition(":")
    words = (sys.executable, "-c", IMPORTED, module)
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


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
    assert not rooms_imported_by(children.compiler) & {"runtime", "simulator"}
    if target.kind != "cpu":  # whose evaluator makes machine code of the LLVM dialect
        assert not rooms_imported_by(children.evaluator) & {"mlir"}
