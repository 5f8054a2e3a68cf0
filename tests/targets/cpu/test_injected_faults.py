"""Real kernels that do harm, in real child processes: each is a failure with stage and reason, none wins."""

import re
from dataclasses import replace

import pytest

from tests.targets.cpu import dishonest_kernels as dishonest
from tests.targets.cpu.dishonest_kernels import FAULTING, LEAVING, PASSING, WRONG, dishonest_artifact
from tests.targets.cpu.injected_faults import DEEDS, PROBLEM, code_of
from tests.texts import text_beside
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import Effort, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Record
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.runtime.workers.worker import Worker
from tuner.space.scripts.choice import default_script
from tuner.targets.cpu.compiler import CpuCompiler

pytestmark = pytest.mark.mlir

# No deed meets another's limit: memory that a machine hands out for the first time can take seconds to touch.
LONG_TIMEOUT = Limits(compile_timeout_s=120.0, evaluation_timeout_s=120.0, memory_bytes=1500 << 20)
HURRIED = Limits(compile_timeout_s=120.0, evaluation_timeout_s=3.0)
BROKEN_SCRIPT = "module attributes {transform.with_named_sequence} { transform.named_sequence"
SCRIPTS = {"broken": BROKEN_SCRIPT, "no_loop": text_beside(__file__, "NO_SUCH_LOOP")}
OUTSIDE = r"^killed by SIGSEGV in the kernel, as by an access outside of its operands or a write to an input$"
FAILURES = {  # deed: stage, reason
    "nan": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[3, 15\]: found nan, expected "),
    "infinite": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[0, 0\]: found inf, expected "),
    "one_element": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[2, 5\]: found "),
    "not_written": (Stage.VERIFY, r"64 of 64 elements are wrong; worst at .*: found nan"),
    "after_c": (Stage.RUN, OUTSIDE),
    "before_c": (Stage.VERIFY, r"wrote [1-4] bytes outside of its outputs$"),
    "null": (Stage.RUN, OUTSIDE),
    "abort": (Stage.RUN, r"killed by SIGABRT"),
    "exit": (Stage.RUN, r"exited with status 3 in the kernel$"),
    "late_crash": (Stage.RUN, r"killed by SIGSEGV in the kernel, as by"),
    "late_wrong": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[2, 5\]: found "),
    "changes_a": (Stage.RUN, r"killed by SIGSEGV"),
    "hang": (Stage.RUN, r"timed out after [3-9]\.?\d* s in the kernel$"),
    "hog": (Stage.RUN, r"exceeded 1500 MiB of memory"),
    "unresolved": (Stage.LOAD, r"function 'matmul' calls what the JIT cannot resolve"),
    "no_entry": (Stage.LOAD, r"function 'matmul' is not in the code"),
    "filled_is_done": (Stage.VERIFY, r"elements are wrong|unwritten in"),
    "starts_a_process": (Stage.RUN, r"^started 1 processes that go on after it returned$"),
    "broken": (Stage.BIND, r"^script:\d+:\d+: .*expected"),
    "no_loop": (Stage.COMPILE, r"transform\.loop\.unroll at script:5:"),
}


def bind(candidate: Candidate) -> Script:
    deed = str(dict(candidate.choices)["deed"])
    if deed in dishonest.KERNELS and deed not in DEEDS:
        return Script.of(dishonest.dishonest_code(deed, PROBLEM))
    return Script.of(SCRIPTS[deed] if deed in SCRIPTS else code_of(deed))


def evaluated(deeds: list[str], limits: Limits) -> list[Record]:
    factory = Factory("tests.targets.cpu.injected_faults:DrillTarget", (1,))
    order = RunnerOrder(PROBLEM, TargetName("drill"), bind, lambda script, code: None)
    processes = RunnerProcesses(compile_spec(factory), evaluation_spec(factory), 1, limits)
    runner = TrialRunner.in_children(order, processes, 0)
    try:
        for number, deed in enumerate(deeds):
            runner.start(number, Candidate.of("drill", {"deed": deed}), Effort(budget_s=0.01))
        return [runner.finish().record for _ in deeds]
    finally:
        runner.close()


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    deeds = ["honest", *(deed for deed in FAILURES if deed != "hang"), "honest"]
    found = evaluated(deeds, LONG_TIMEOUT)
    assert found[0].status == "measured"  # before any harm
    (hanged,) = evaluated(["hang"], HURRIED)
    return dict(zip(deeds, found, strict=True)) | {"hang": hanged}  # the last honest one


@pytest.mark.slow
@pytest.mark.parametrize("deed", FAILURES)
def test_a_harmful_kernel_is_a_failure_with_stage_and_reason(deed: str, records: dict[str, Record]) -> None:
    stage, reason = FAILURES[deed]
    outcome = records[deed].outcome
    assert isinstance(outcome, Failure), outcome
    assert (outcome.stage, bool(re.search(reason, outcome.reason))) == (stage, True), outcome
    assert "\n" not in outcome.reason
    assert records[deed].median_s is None


@pytest.mark.slow
def test_the_run_goes_on_and_the_honest_kernel_wins(records: dict[str, Record]) -> None:
    assert records["honest"].status == "measured"
    assert present(records["honest"].verdict).elements == 64
    assert {deed for deed, record in records.items() if record.median_s is not None} == {"honest"}


# Kernels that read or write where nothing is theirs, or compute less than a product: which are caught.
SMALL = Matmul(4, 16, 8)
DEEP = Matmul(16, 16, 4096)  # rounding of many products hides cut numbers


SERVICE = "tests.targets.cpu.injected_faults:ForkedVerification"  # of the fixture ``child``


def outcome_of(child: Worker, name: str, problem: Problem, *, is_timed: bool = False) -> object:
    artifact = dishonest_artifact(name, problem)
    return child.call("verify", problem, artifact, is_timed, stage=Stage.RUN, timeout_s=60)


@pytest.mark.slow
def test_what_happens_outside_of_the_operands_or_to_the_inputs_faults(child: Worker) -> None:
    found = {name: outcome_of(child, name, SMALL) for name in FAULTING}
    canaries = {
        "writes 1 element before C": "verify: wrote 4 bytes outside of its outputs"
    }  # in the page of C
    assert found == dict.fromkeys(FAULTING, "SIGSEGV") | canaries


@pytest.mark.drawn(2)
@pytest.mark.parametrize("align", ["16", "64", "any"])
def test_an_element_next_to_operands_of_any_alignment_and_odd_size_faults(child: Worker, align: str) -> None:
    """Of an odd size the last bytes of a page may be free: then those before the operands fault."""
    problem = Matmul(3, 5, 7, align=align)
    assert outcome_of(child, "reads 1 element before A", problem) == "SIGSEGV"
    assert outcome_of(child, "reads 4 KiB beyond A", problem) == "SIGSEGV"
    beyond = outcome_of(child, "reads 1 element beyond A", problem)
    assert beyond == ("SIGSEGV" if align == "any" else "right")


def test_a_panel_that_reaches_beyond_c_faults(child: Worker) -> None:
    problem = Matmul(16, 64, 8)
    whole = CpuCompiler().compile(problem, present(default_script(problem, describe_machine())))
    shifted = replace(whole, partitions=(replace(whole.partitions[0], column=3),))
    for artifact, expected in ((whole, "right"), (shifted, "SIGSEGV")):
        assert child.call("verify", problem, artifact, stage=Stage.RUN, timeout_s=60) == expected


@pytest.mark.slow
def test_what_usual_numbers_hide_is_wrong_next_to_nan_infinity_and_unit_vectors(child: Worker) -> None:
    found = {name: outcome_of(child, name, DEEP) for name in WRONG}
    assert [name for name, outcome in found.items() if "elements are wrong" not in str(outcome)] == []


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 16, 8), (4, 16, 8), (5, 3, 2)])
def test_what_reads_special_numbers_as_others_is_wrong_on_small_matrices(
    child: Worker, sizes: tuple[int, int, int]
) -> None:
    for name in WRONG:
        assert "elements are wrong" in str(outcome_of(child, name, Matmul(*sizes))), name


def test_products_with_zeros_count_where_c_has_one_row(child: Worker) -> None:
    assert "elements are wrong" in str(outcome_of(child, "skips products where A is 0", Matmul(1, 16, 8)))


def test_another_mode_of_rounding_is_found_and_does_not_stay(child: Worker) -> None:
    for name in LEAVING:
        assert "changed how its thread rounds" in str(outcome_of(child, name, SMALL)), name
        assert outcome_of(child, "honest dots", SMALL) == "right"


def test_what_still_passes_is_listed(child: Worker) -> None:
    for name in PASSING:
        assert outcome_of(child, name, SMALL, is_timed=True) == "right", name


@pytest.mark.slow
def test_a_fault_is_a_failure_with_its_stage_and_its_reason() -> None:
    worker = Worker(evaluation_spec(Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (1,))), 4 << 30)
    artifact = dishonest_artifact("reads 64 MiB beyond A", SMALL)
    try:
        reply = worker.ask("evaluate", SMALL, artifact, Effort(), 0, stage=Stage.RUN, timeout_s=60)
    finally:
        worker.kill()
    assert isinstance(reply.value, Failure)
    assert (reply.value.stage, reply.value.reason[:17]) == (Stage.RUN, "killed by SIGSEGV")
