"""Scripts that somebody else wrote: stored trials, next to the best so far; no dishonest one passes."""

import contextlib
import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import children_of
from tests.targets.cpu import dishonest_kernels as dishonest
from tests.targets.cpu.injected_faults import PROBLEM, code_of
from tests.tuning import fakes
from tests.tuning.fakes import present, trials_of
from tuner.analysis.ratios import Comparable
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import TrialQuery
from tuner.core.runs import JUDGED
from tuner.db.store import Store
from tuner.results.exported_trial import exported
from tuner.results.regression import submission
from tuner.results.regression.audit import AuditStatus, audit
from tuner.results.regression.reevaluation import EvaluationCase
from tuner.results.regression.script_facts import ScriptFacts
from tuner.results.regression.submission import Submission, SubmissionResult, SubmissionRun
from tuner.results.regression.submission_document import submission_document
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.targets.registry import TARGETS
from tuner.targets.target import RunnerChildren
from tuner.tuning.events import Interruption
from tuner.tuning.run import resume

FAKE = EvaluationCase(Matmul(8, 8, 8), TargetName("fake"), 1)


class NoFacts:
    """In the place of the child that describes scripts: a fake script is not MLIR."""

    def __init__(self, *_: object) -> None:
        pass

    def facts(self, _problem: Problem, _script: object) -> ScriptFacts:
        return ScriptFacts(stages=(("script", "of a fake"),))

    def close(self) -> None:
        pass


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        yield opened


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[SubmissionRun]:
    monkeypatch.setattr(submission, "ScriptFactsChild", NoFacts)
    opened = SubmissionRun(fakes.backends(), store, FAKE)
    yield opened
    opened.close()


def of_x(x: int, **more: object) -> Submission:
    """Returns a submission whose kernel takes a time that x decides: of 7 the least, of 8 the baseline's."""
    return Submission(json.dumps({"x": x, **more}), f"x_{x}")


def test_a_submission_is_compared_with_the_baseline_and_with_the_best_before_it(run: SubmissionRun) -> None:
    first = run.evaluated(of_x(4))
    assert (first.best, first.is_best, first.trial.record.status) == (None, True, "measured")
    second = run.evaluated(of_x(7))
    assert (present(second.best).id, second.is_best) == (first.trial.id, True)
    assert isinstance(second.to_best, Comparable)
    assert second.to_best.speed == pytest.approx(10)
    third = run.evaluated(of_x(6))
    assert (present(third.best).id, third.is_best) == (second.trial.id, False)
    document = submission_document(third)
    assert document["correct"] is document["verified_extremes"] is True
    assert document["best"]["now_s"] == pytest.approx(fakes.BEST_S)
    assert document["best"]["ratio"] == pytest.approx(0.5)
    assert document["baseline"]["name"] == "FakeBLAS 1.0"
    assert document["roofline_share"] is not None
    json.dumps(document, allow_nan=False)


def test_a_best_trial_of_a_run_before_is_what_a_submission_is_compared_with(
    run: SubmissionRun, store: Store
) -> None:
    tuned = fakes.tune(store, trials=20, sampler="exhaustive")
    result = run.evaluated(of_x(5))
    assert present(result.best).run == tuned.run.id
    assert not result.is_best
    assert isinstance(result.to_best, Comparable)
    before = store.trial(present(result.best).id)
    assert before.final == present(result.best).final  # its own round, not that of the submission


@pytest.mark.drawn(2)
@pytest.mark.parametrize("at", ["verify", "measure", "together"])
def test_one_that_is_wrong_anywhere_is_a_failed_trial_and_the_next_is_evaluated(
    run: SubmissionRun, at: str
) -> None:
    result = run.evaluated(of_x(7, deed="wrong", at=at))
    assert isinstance(result.trial.record.outcome, Failure)
    assert submission_document(result)["correct"] is False
    assert result.trial.best_s is None
    assert not result.is_best
    assert run.evaluated(of_x(3)).is_best


def test_all_are_trials_of_one_run_whose_scripts_can_be_exported_and_audited_and_that_has_no_search(
    run: SubmissionRun, store: Store
) -> None:
    for x in (1, 7, 2):
        run.evaluated(of_x(x))
    run.close()
    (stored,) = store.runs()
    assert (stored.status, stored.settings.sampler) == ("done", JUDGED)
    trials = trials_of(store)
    assert [trial.knobs["name"] for trial in trials] == ["x_1", "x_7", "x_2"]
    assert b'"x": 7' in exported(fakes.backends(), store, trials[1], "script", None)
    (audited,) = audit(fakes.backends(), store, TrialQuery(), SlowdownLimits.up_to())
    assert (audited.trial.id, audited.status) == (trials[1].id, AuditStatus.UNCHANGED)
    with pytest.raises(
        UsageError, match=r"run 1: has no search to continue: its scripts were given to tuner judge"
    ):
        resume(1, fakes.backends(), store, Interruption(), retime=True)


# Kernels that do harm or that cheat, on this processor, in real child processes.


def children(target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
    factory = Factory("tests.targets.cpu.injected_faults:DrillTarget", (threads,))
    return RunnerChildren(factory, factory, Limits())


CPU = fakes.changed(TARGETS["cpu"], children=children)
DEEP = Matmul(16, 16, 4096)  # rounding of many products hides cut numbers
SMALL_CHEATS = (
    *("not_written", "nan", "infinite", "one_element", "after_c", "before_c", "null", "abort", "exit"),
    *("late_crash", "late_wrong", "changes_a", "hang", "hog"),
    *(name for name in dishonest.KERNELS if name not in ("honest", "small_is_zero")),
    *dishonest.FAULTING,
)


def of_deed(deed: str, problem: Problem) -> Submission:
    if deed in dishonest.KERNELS or problem is DEEP:
        return Submission(dishonest.dishonest_code(deed, problem), deed)
    if deed in dishonest.FAULTING:
        return Submission(dishonest.dishonest_code(deed, problem), deed)
    return Submission(code_of(deed), deed)


@contextlib.contextmanager
def real_run(store: Store, problem: Problem) -> Iterator[SubmissionRun]:
    backends = fakes.changed(fakes.backends(), targets={"cpu": CPU})
    case = EvaluationCase(problem, TargetName("cpu"), 1, timeout_s=5.0, memory_bytes=1500 << 20)
    with contextlib.closing(SubmissionRun(backends, store, case)) as run:
        yield run


def is_right(result: SubmissionResult) -> bool:
    return bool(submission_document(result)["correct"])


@pytest.mark.mlir
@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "cheats"), [(PROBLEM, SMALL_CHEATS), (DEEP, (*dishonest.WRONG, "lazy_after_2"))]
)
def test_no_dishonest_kernel_gets_a_verdict_of_right_and_honest_ones_do_before_and_after(
    store: Store, problem: Problem, cheats: tuple[str, ...]
) -> None:
    """They return without writing, give what other inputs gave, are wrong in an element, crash, hang, ..."""
    with real_run(store, problem) as run:
        assert is_right(run.evaluated(of_deed("honest", problem)))
        results = {deed: run.evaluated(of_deed(deed, problem)) for deed in cheats}
        assert [deed for deed, result in results.items() if is_right(result)] == []
        assert [deed for deed, result in results.items() if result.is_best or result.trial.best_s] == []
        assert is_right(run.evaluated(of_deed("honest", problem)))


@pytest.mark.mlir
@pytest.mark.slow
def test_what_a_kernel_prints_does_not_reach_the_output_of_this_process(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    with real_run(store, PROBLEM) as run:
        result = run.evaluated(of_deed("prints", PROBLEM))
    assert result.trial.record.status in ("measured", "failed")
    assert capfd.readouterr().out == ""


ENDLESS = (  # nine that fail at each stage, and an honest one
    *("honest", "broken", "unresolved", "no_entry", "not_written", "nan", "late_wrong", "abort", "null"),
    "starts_a_process",
)
ROUNDS = 20
WARM_ROUNDS = 5  # after which this process has grown to its size
GROWTH_BYTES = 8 << 20  # of what an allocator keeps; 150 leaked code texts alone would be 15 MiB


def own_state() -> tuple[set[int], int, int]:
    """Returns the processes that this one has started, its open files, and its resident bytes."""
    children = set(children_of(os.getpid()))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return children, len([*Path("/proc/self/fd").iterdir()]), pages * os.sysconf("SC_PAGESIZE")


@pytest.mark.mlir
@pytest.mark.slow
def test_two_hundred_submissions_leave_no_process_no_file_and_no_memory(store: Store) -> None:
    children_before, files_before, _ = own_state()
    states = []
    with real_run(store, PROBLEM) as run:
        for _ in range(ROUNDS):
            for deed in ENDLESS:
                script = Submission("module {", deed) if deed == "broken" else of_deed(deed, PROBLEM)
                assert is_right(run.evaluated(script)) == (deed == "honest"), deed
            gc.collect()
            states.append(own_state())
    assert own_state()[:2] == (children_before, files_before)
    assert len(trials_of(store)) == ROUNDS * len(ENDLESS) == 200
    warm, last = states[WARM_ROUNDS - 1], states[-1]
    assert len(last[0]) <= len(warm[0])
    assert last[1] <= warm[1]
    assert last[2] - warm[2] < GROWTH_BYTES, [state[2] >> 20 for state in states]
