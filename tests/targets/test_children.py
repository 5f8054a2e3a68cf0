"""Work in child processes: a user's templates are bound, scripts applied, both ports of a target built."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.targets.failures import fails
from tests.texts import text_beside
from tuner.core.candidate import Candidate, ChosenStrategy, TargetName
from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.core.interfaces import AbstractCompiler, AbstractEvaluator
from tuner.core.machine import Machine
from tuner.core.problem import Matmul
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.worker import call_in_child
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.children import MEMORY_BYTES, ChildBinder, binding
from tuner.targets.interface import Bind
from tuner.targets.registry import KINDS, real_backends

PROBLEM = Matmul(8, 16, 4)
VARIABLES = (("m", 8), ("n", 16), ("k", 4))
# For years in many operations, for hours in one, to 6 GiB, or well behaved.
TEMPLATE = """{% if how == "loop" %}{% for a in range(99999) %}{% for b in range(99999) %}
{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}
{% elif how == "power" %}{{ 3 ** (n ** 8) % 10 }}
{% elif how == "grow" %}{% set kept = [] %}
{% for a in range(99999) %}{% set _ = kept.append(n ~ "x" * 2 ** 16) %}{% endfor %}
{% else %}how: {{ how }} {{ m }}{% endif %}"""


def written(folder: Path) -> Path:
    script = folder / "mine.mlir.j2"
    script.write_text(TEMPLATE)
    return script


def bound(folder: Path, timeout_s: float = 60.0) -> Bind:
    return binding((ChosenStrategy("mine", written(folder)),), PROBLEM, VARIABLES, 1, timeout_s)


def here(folder: Path) -> Binder:
    return Binder((load_strategy("mine", written(folder)),), PROBLEM, VARIABLES, 1)


def mine(how: str) -> Candidate:
    return Candidate.of("mine", {"how": how})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["loop", "power"])
def test_a_template_that_never_ends_fails_to_bind(tmp_path: Path, how: str) -> None:
    bind = bound(tmp_path, timeout_s=0.5)
    with fails(Stage.BIND, match=r"^timed out after 0\.5 s$"):
        bind(mine(how))


@pytest.mark.slow
def test_a_template_that_grows_too_large_fails_to_bind_and_the_next_is_bound(tmp_path: Path) -> None:
    bind = bound(tmp_path)
    with fails(Stage.BIND, match=rf"^exceeded {MEMORY_BYTES >> 20} MiB of memory$"):
        bind(mine("grow"))
    assert bind(mine("fast")).text == "how: fast 8\n"


def test_a_child_binds_as_this_process_does(tmp_path: Path) -> None:
    bind = bound(tmp_path)
    binder = here(tmp_path)
    for how in ("a", "b"):
        assert bind(mine(how)) == binder.bind(mine(how))
    for wrong in (Candidate.of("mine", {}), Candidate.of("other", {})):
        with pytest.raises(CandidateError) as expected:
            binder.bind(wrong)
        with fails(expected.value.failure.stage, match=f"^{re.escape(expected.value.failure.reason)}$"):
            bind(wrong)


def test_the_child_ends_with_its_binder(tmp_path: Path) -> None:
    binder = ChildBinder(here(tmp_path), 60.0)
    binder.bind(mine("fast"))
    worker = binder.worker
    assert worker.child is not None
    del binder
    assert worker.child is None


def test_what_is_shipped_is_bound_here() -> None:
    bind = binding((ChosenStrategy("matmul_cpu_packed"),), PROBLEM, VARIABLES, 1)
    assert isinstance(getattr(bind, "__self__", None), Binder)


def fail(stage: Stage) -> None:
    raise CandidateError(stage, "too wide")


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "is_of_user"), [(Stage.BIND, True), (Stage.COMPILE, False)])
def test_what_does_not_parse_is_a_mistake_of_the_user(stage: Stage, is_of_user: bool) -> None:
    with pytest.raises(TunerError, match=r"^apply: too wide$") as caught:
        call_in_child("apply", partial(fail, stage), 60.0)
    assert isinstance(caught.value, UsageError) == is_of_user
    assert not isinstance(caught.value, CandidateError)


SOURCE = "func.func @f() {\n  return\n}\n"
RENAME = text_beside(__file__, "RENAME")
BROKEN = RENAME.replace('transform.annotate %func "seen"', "transform.loop.unroll %func { factor = 4 }")


def test_each_target_has_a_machine_of_its_own_processors_come_first_and_simulations_give_no_times() -> None:
    def machine(target: TargetName) -> Machine:
        return real_backends().outcomes(target).machine(target)

    processor = real_backends().machine()
    assert processor.physical_cores >= 1
    assert processor.memory_bytes > 2**20
    assert machine(TargetName("cpu")) == processor
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
    ("script", "payload"), [("module {", SOURCE), (RENAME, "nonsense"), (SOURCE, SOURCE), (BROKEN, SOURCE)]
)
def test_no_script_or_payload_is_the_users_mistake_a_failure_is_reported(script: str, payload: str) -> None:
    error, place = (TunerError, "") if script == BROKEN else (UsageError, "(script|payload): ")
    with pytest.raises(error, match=f"apply: {place}"):
        real_backends().apply(script, payload)


CHILDREN_OF = (TargetName("cpu"), TargetName("cuda", "sm_90"), TargetName("simulator", "sm_90"))
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
@pytest.mark.parametrize("target", CHILDREN_OF, ids=str)
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
