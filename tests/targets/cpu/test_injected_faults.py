"""Real kernels that do harm, in real child processes: each is a failure with stage and reason, none wins."""

import re

import pytest

from tests.targets.cpu.dishonest_kernels import KERNELS, dishonest_code
from tests.targets.cpu.injected_faults import DEEDS, PROBLEM, code_of
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import Effort, Script
from tuner.core.records import Record
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, WorkerRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec

pytestmark = pytest.mark.mlir

# No deed meets another's limit: memory that a machine hands out for the first time can take seconds to touch.
LONG_TIMEOUT = Limits(compile_timeout_s=120.0, evaluation_timeout_s=120.0, memory_bytes=1500 << 20)
HURRIED = Limits(compile_timeout_s=120.0, evaluation_timeout_s=3.0)
BROKEN_SCRIPT = "module attributes {transform.with_named_sequence} { transform.named_sequence"
NO_SUCH_LOOP = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %loops = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll %loops {factor = 2} : !transform.any_op
    transform.yield
  }
}"""
NOTHING_DONE = NO_SUCH_LOOP.replace("    transform.loop.unroll %loops {factor = 2} : !transform.any_op\n", "")
SCRIPTS = {"broken": BROKEN_SCRIPT, "no_loop": NO_SUCH_LOOP, "nothing_done": NOTHING_DONE}

FAILURES = {  # deed: stage, reason
    "nan": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[3, 15\]: found nan, expected "),
    "infinite": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[0, 0\]: found inf, expected "),
    "one_element": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[2, 5\]: found "),
    "not_written": (Stage.VERIFY, r"64 of 64 elements are wrong; worst at .*: found nan"),
    "after_c": (
        Stage.RUN,
        r"^killed by SIGSEGV, as by an access outside of its operands or a write to an input$",
    ),
    "before_c": (Stage.VERIFY, r"wrote [1-4] bytes outside of C$"),
    "null": (Stage.RUN, r"killed by SIGSEGV"),
    "abort": (Stage.RUN, r"killed by SIGABRT"),
    "exit": (Stage.RUN, r"exited with status 3$"),
    "late_crash": (Stage.RUN, r"killed by SIGSEGV"),
    "late_wrong": (Stage.VERIFY, r"1 of 64 elements are wrong; worst at \[2, 5\]: found "),
    "changes_a": (Stage.RUN, r"killed by SIGSEGV"),
    "hang": (Stage.RUN, r"timed out after [3-9]\.?\d* s"),
    "hog": (Stage.RUN, r"exceeded 1500 MiB of memory"),
    "unresolved": (Stage.LOAD, r"function 'matmul' calls what the JIT cannot resolve"),
    "no_entry": (Stage.LOAD, r"function 'matmul' is not in the code"),
    "filled_is_done": (Stage.VERIFY, r"elements are wrong|unwritten in"),
    "starts_a_process": (Stage.RUN, r"^started 1 processes that go on after it returned$"),
    "broken": (Stage.BIND, r"^script: .*expected"),
    "no_loop": (Stage.COMPILE, r"transform\.loop\.unroll at script:5:"),
    "nothing_done": (Stage.COMPILE, r"."),
}


def bind(candidate: Candidate) -> Script:
    deed = str(dict(candidate.choices)["deed"])
    if deed in KERNELS and deed not in DEEDS:
        return Script.of(dishonest_code(deed, PROBLEM))
    return Script.of(SCRIPTS[deed] if deed in SCRIPTS else code_of(deed))


def evaluated(deeds: list[str], limits: Limits) -> list[Record]:
    """One run over the deeds."""
    factory = Factory("tests.targets.cpu.injected_faults:DrillTarget", (1,))
    order = RunnerOrder(PROBLEM, TargetName("drill"), bind, lambda script, code: None)
    runner = WorkerRunner(
        order, RunnerProcesses(compile_spec(factory), evaluation_spec(factory), 1, limits), 0
    )
    try:
        for number, deed in enumerate(deeds):
            runner.start(number, Candidate.of("drill", {"deed": deed}), Effort(budget_s=0.01))
        return [runner.finish().record for _ in deeds]
    finally:
        runner.close()


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    """Everything, honest kernels at both ends."""
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
    last = records["honest"]
    assert last.status == "measured"
    assert last.verdict is not None
    assert last.verdict.elements == 64
    assert {deed for deed, record in records.items() if record.median_s is not None} == {"honest"}
