"""Kernels that read or write where nothing is theirs, or compute less than a product: which are caught."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.targets.cpu.dishonest_kernels import FAULTING, LEAVING, PASSING, WRONG, dishonest_code
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import Artifact, Effort
from tuner.core.problem import Matmul, Problem
from tuner.payload.cpu import partition
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.services import evaluation_spec
from tuner.runtime.workers.worker import Worker
from tuner.space.scripts.choice import default_script
from tuner.targets.cpu.compiler import CpuCompiler

pytestmark = pytest.mark.mlir

SMALL = Matmul(4, 16, 8)
DEEP = Matmul(16, 16, 4096)  # rounding of many products hides cut numbers
PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "what-is-verified.md"


@pytest.fixture(scope="module")
def child() -> Iterator[Worker]:
    spec = ServiceSpec("forks", Factory("tests.targets.cpu.forked_verification:ForkedVerification"))
    worker = Worker(spec, memory_bytes=4 << 30)
    yield worker
    worker.kill()


def artifact_of(name: str, problem: Problem) -> Artifact:
    return Artifact(dishonest_code(name, problem), name, partition(problem, 1, "none", 1))


def outcome_of(child: Worker, method: str, name: str, problem: Problem) -> object:
    """How verification ends, for numbers drawn from a fixed seed."""
    return child.call(method, problem, artifact_of(name, problem), stage=Stage.RUN, timeout_s=60)


@pytest.mark.slow
def test_what_happens_outside_of_the_operands_or_to_the_inputs_faults(child: Worker) -> None:
    found = {name: outcome_of(child, "verify", name, SMALL) for name in FAULTING}
    canaries = {"writes 1 element before C": "verify: wrote 4 bytes outside of C"}  # in the page of C
    assert found == dict.fromkeys(FAULTING, "SIGSEGV") | canaries


@pytest.mark.drawn(2)
@pytest.mark.parametrize("align", ["16", "64", "any"])
def test_an_element_next_to_operands_of_any_alignment_and_odd_size_faults(child: Worker, align: str) -> None:
    """Of an odd size the last bytes of a page may be free: then those before the operands fault."""
    problem = Matmul(3, 5, 7, align=align)
    assert outcome_of(child, "verify", "reads 1 element before A", problem) == "SIGSEGV"
    assert outcome_of(child, "verify", "reads 4 KiB beyond A", problem) == "SIGSEGV"
    beyond = outcome_of(child, "verify", "reads 1 element beyond A", problem)
    assert beyond == ("SIGSEGV" if align == "any" else "right")


def test_a_panel_that_reaches_beyond_c_faults(child: Worker) -> None:
    problem = Matmul(16, 64, 8)
    script = default_script(problem, describe_machine())
    assert script is not None
    whole = CpuCompiler().compile(problem, script)
    assert child.call("verify", problem, whole, stage=Stage.RUN, timeout_s=60) == "right"
    (panel,) = whole.partitions
    shifted = replace(whole, partitions=(replace(panel, column=3),))
    assert child.call("verify", problem, shifted, stage=Stage.RUN, timeout_s=60) == "SIGSEGV"


@pytest.mark.slow
def test_what_usual_numbers_hide_is_wrong_next_to_nan_infinity_and_unit_vectors(child: Worker) -> None:
    found = {name: outcome_of(child, "verify", name, DEEP) for name in WRONG}
    assert [name for name, outcome in found.items() if "elements are wrong" not in str(outcome)] == []


def test_products_with_zeros_count_where_c_has_one_row(child: Worker) -> None:
    outcome = outcome_of(child, "verify", "skips products where A is 0", Matmul(1, 16, 8))
    assert "elements are wrong" in str(outcome)


def test_another_mode_of_rounding_is_found_and_does_not_stay(child: Worker) -> None:
    for name in LEAVING:
        assert "changed how its thread rounds" in str(outcome_of(child, "verify", name, SMALL)), name
        assert outcome_of(child, "verify", "honest dots", SMALL) == "right"


def test_what_still_passes_is_listed(child: Worker) -> None:
    for name in PASSING:
        assert outcome_of(child, "verify_and_time", name, SMALL) == "right", name


@pytest.mark.slow
def test_a_fault_is_a_failure_with_its_stage_and_its_reason() -> None:
    worker = Worker(evaluation_spec(Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (1,))), 4 << 30)
    artifact = artifact_of("reads 64 MiB beyond A", SMALL)
    try:
        reply = worker.ask("evaluate", SMALL, artifact, Effort(), 0, stage=Stage.RUN, timeout_s=60)
    finally:
        worker.kill()
    assert isinstance(reply.value, Failure)
    assert reply.value.stage == Stage.RUN
    assert reply.value.reason.startswith("killed by SIGSEGV")


@pytest.mark.slow
def test_the_page_names_each_kernel() -> None:
    page = PAGE.read_text()
    assert [name for name in (*FAULTING, *WRONG, *LEAVING, *PASSING) if f"| {name} |" not in page] == [
        "honest dots"
    ]
