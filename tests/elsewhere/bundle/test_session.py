"""The loop of a measuring session: a child that answers from a table, a clock that the test turns."""

import datetime
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.elsewhere.bundle import values
from tests.elsewhere.bundle.values import PROBLEM, pending, program, timed
from tests.gpu.target.simulated_cuda import FACTS
from tests.tuning import fakes
from tuner.core import remote_results as remote
from tuner.core.errors import CandidateError, Failure, Stage, UsageError
from tuner.core.interfaces import AbstractEvaluator, Artifact, Effort, FinalTimes
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.remote_results import BINARY, TEXT
from tuner.core.runs import Baseline
from tuner.elsewhere.bundle import gpu_child, session
from tuner.elsewhere.bundle.archive import Bundle, pack, read_bundle
from tuner.elsewhere.bundle.command import MeasuringRequest, main, measure
from tuner.elsewhere.bundle.gpu_child import MeasuringService, artifact_of, hang_limit_s
from tuner.elsewhere.bundle.results_file import Line, ResultsFile
from tuner.runtime.timing_lock import LockWait, TimingLock
from tuner.runtime.workers.protocol import Factory, Reply
from tuner.runtime.workers.services import Group

OTHER = Matmul(32, 8, 8)
NOTHING = remote.RemoteResults(values.PROVENANCE, ())
CUT = "cut"
SelectedResult = float | Failure | str  # seconds of a median, a failure, or CUT


@dataclass
class World:
    answers: dict[int, SelectedResult] = field(default_factory=dict)  # by number; others take 1 ms
    now_s: float = 0.0
    takes_s: float = 1.0  # by the clock, of one candidate
    asked: list[tuple[int, float | None, float]] = field(default_factory=list)  # number, stop above, within
    lines: list[Line] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    library: Baseline | None = None  # takes turns with the best

    def child(self, problem: Problem, evaluate: Any) -> "Child":
        return Child(self)

    def measure(self, order: session.MeasuringOrder, gpu: session.Gpu) -> session.MeasuringCounts:
        options = self.lines.append, self.told.append, lambda: self.now_s
        return session.MeasuringSession(order, gpu, *options).run()

    def of(self, kind: type[Any]) -> list[Any]:
        return [line for line in self.lines if isinstance(line, kind)]


@dataclass
class Child:
    world: World

    def evaluate(self, trial: remote.PendingTrial, effort: Effort, seed: int, within_s: float) -> Any:
        world, number = self.world, trial.origin.number
        world.asked.append((number, effort.stop_above_s, within_s))
        world.now_s += world.takes_s
        selected = world.answers.get(number, 1e-3)
        if selected == CUT:
            return None
        if isinstance(selected, Failure):
            return Reply(selected)
        assert isinstance(selected, float)
        is_complete = effort.stop_above_s is None or selected <= effort.stop_above_s
        time = replace(values.timed(selected), is_complete=is_complete)
        evaluated = gpu_child.EvaluatedCode(time, TEXT)
        return Reply(evaluated, verdict=Verdict(0.1, 128), stage_s=(("load", 0.1),))

    def remeasure(self, artifacts: Any, effort: Effort, seed: int, within_s: float) -> Any:
        times = tuple(values.timed(1e-3 * (1 + number)) for number in range(len(artifacts)))
        return FinalTimes(times, self.world.library)

    def close(self) -> None:
        self.world.told.append("closed")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(session, "GpuChild", made.child)
    return made


def order(
    *trials: remote.PendingTrial, seconds: float = 1000.0, known: remote.RemoteResults = NOTHING
) -> session.MeasuringOrder:
    bundle = Bundle("ab", datetime.datetime.now(datetime.UTC), "0.1.0", 0, trials)
    return session.MeasuringOrder(bundle, seconds, known)


def alone(problem: Problem, report: Callable[[str], None]) -> TimingLock:
    # a folder that takes no file locks nothing
    return TimingLock("test", "a test", LockWait(report), Path("/nowhere"))


HERE = session.Gpu(FACTS, alone, lambda chip: None, fakes.no_baseline)  # type: ignore[arg-type, return-value]
WRONG = Failure(Stage.VERIFY, "3 of 128 elements are wrong")


def test_the_most_promising_is_first_and_every_outcome_is_kept(world: World) -> None:
    spilling = values.pending(0, code=values.program(spills=8))
    world.answers = {2: WRONG}
    counts = world.measure(order(spilling, values.pending(1), values.pending(2)), HERE)
    outcomes = [(each.origin.number, each.outcome == WRONG) for each in world.of(remote.MeasuredTrial)]
    assert outcomes == [(1, False), (2, True), (0, False)]
    assert counts == session.MeasuringCounts(measured=2, failed=1, left=0)


def test_a_candidate_that_was_cut_off_stays_pending_and_code_for_other_chips_is_counted(world: World) -> None:
    world.answers = {1: CUT}
    other = values.pending(3, code=replace(values.program(), chip="sm_80"))
    counts = world.measure(order(*map(values.pending, range(3)), other), HERE)
    assert counts == session.MeasuringCounts(measured=1, failed=0, left=2, other_chips=1)


def test_what_is_far_slower_than_the_best_is_given_up_early(world: World) -> None:
    world.answers = {0: 2e-3, 1: 1e-3, 2: 9e-3}
    world.measure(order(*map(values.pending, range(4))), HERE)
    assert [stop for _, stop, _ in world.asked] == [None, 4e-3, 2e-3, 2e-3]
    is_complete = [trial.outcome.is_complete for trial in world.of(remote.MeasuredTrial)]
    assert is_complete == [True, True, False, True]


def test_nothing_is_begun_when_the_time_is_over(world: World) -> None:
    world.takes_s = 4.0
    counts = world.measure(order(*map(values.pending, range(9)), seconds=20.0), HERE)
    assert len(world.asked) == 5  # 18 s, less what finals are kept
    assert counts == session.MeasuringCounts(measured=5, failed=0, left=4)
    assert all(within_s <= 18.0 for _, _, within_s in world.asked)


def test_problems_share_the_time_and_what_one_leaves_the_others_get(world: World) -> None:
    world.takes_s = 4.0
    first = [values.pending(number) for number in range(9)]
    world.measure(order(*first, values.pending(20, OTHER), seconds=40.0), HERE)
    numbers = [number for number, _, _ in world.asked]
    assert numbers[-1] == 20
    assert len(numbers) == 6  # 20 s of candidates of the first problem
    world.asked.clear()
    world.now_s = 0.0
    world.measure(order(values.pending(20, OTHER), *first, seconds=40.0), HERE)
    assert len(world.asked) == 1 + 8  # of 36 s, less what finals are kept


def test_a_gpu_that_another_tuner_times_on_is_waited_for(world: World, tmp_path: Path) -> None:
    lock = TimingLock("gpu", "process 7, matmul 8x8x8", folder=tmp_path)
    is_free, told_of = threading.Event(), threading.Event()

    def other() -> None:
        with lock.held():
            is_free.set()
            told_of.wait()

    def timing_lock(problem: Problem, report: Callable[[str], None]) -> TimingLock:
        def told(who: str) -> None:
            report(who)
            told_of.set()

        return TimingLock("gpu", "me", LockWait(told), tmp_path)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(other)
        is_free.wait()
        counts = world.measure(
            order(values.pending(0), values.pending(1)), replace(HERE, timing_lock=timing_lock)
        )
    assert counts.measured == 2
    assert world.told.count("  waits for process 7, matmul 8x8x8") == 1


def test_the_best_are_timed_again_and_the_fastest_twice_but_a_lone_one_is_not(world: World) -> None:
    world.measure(order(values.pending(0)), HERE)
    assert world.of(remote.FinalTime) == []
    world.answers = {number: 1e-3 * (number + 1) for number in range(2)}
    world.measure(order(*map(values.pending, range(2))), HERE)
    assert [line.origin.number for line in world.of(remote.FinalTime)] == [0, 1]
    (floor,) = world.of(remote.NoiseFloor)
    assert floor.noise == pytest.approx(2.0)  # 1 ms, then 3 ms


def test_the_library_that_took_turns_is_kept_and_not_measured_alone(world: World) -> None:
    alone, between = (Baseline("cuBLAS", 0, values.timed(each)) for each in (1e-3, 2e-3))
    world.library = between
    world.measure(order(values.pending(0), values.pending(1)), replace(HERE, baseline=lambda *_: alone))
    assert world.of(remote.BaselineTime) == [remote.BaselineTime(values.PROBLEM, between)]
    world.library = None
    world.measure(order(values.pending(0), values.pending(1)), replace(HERE, baseline=lambda *_: alone))
    assert world.of(remote.BaselineTime)[1:] == [remote.BaselineTime(values.PROBLEM, alone)]


def test_what_is_known_is_not_measured_again_and_counts_for_the_rest(world: World) -> None:
    known = replace(NOTHING, trials=(values.measured(0, values.timed(1e-4)), values.measured(1, WRONG)))
    counts = world.measure(order(*map(values.pending, range(3)), known=known), HERE)
    assert [(number, stop) for number, stop, _ in world.asked] == [(2, 2e-4)]
    assert counts == session.MeasuringCounts(measured=1)


def test_the_baseline_is_timed_once_for_a_problem_and_only_where_something_is_right(world: World) -> None:
    timed = Baseline("cuBLAS", 0, values.timed())
    here = replace(HERE, baseline=lambda *_: timed)
    world.measure(order(values.pending(0)), here)
    assert [line.problem for line in world.of(remote.BaselineTime)] == [values.PROBLEM]
    known = replace(NOTHING, baselines=(remote.BaselineTime(values.PROBLEM, timed),))
    world.lines.clear()
    world.measure(order(values.pending(0), known=known), here)
    world.answers = {0: WRONG}
    world.measure(order(values.pending(0)), here)
    assert world.of(remote.BaselineTime) == []


def test_the_process_is_ended_whatever_happens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Child, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.measure(order(values.pending(0)), HERE)
    assert world.told[-1] == "closed"


def test_the_best_is_the_fastest_that_was_not_cut_short_by_remeasurement_where_there_is_any() -> None:
    slow, fast = values.measured(0, values.timed(2e-3)), values.measured(1, values.timed(1e-3))
    alone = replace(values.RESULTS, final_times=())
    assert session.best_of(replace(alone, trials=(slow, fast)))[values.PROBLEM][0] == fast
    cut = values.measured(0, replace(values.timed(), is_complete=False))
    assert session.best_of(replace(alone, trials=(cut,))) == {}
    lucky, steady, slow = (values.measured(number, values.timed(1e-3 * (number + 1))) for number in range(3))
    final_times = tuple(
        remote.FinalTime(trial.origin, values.PROBLEM, values.timed(median_s))
        for trial, median_s in ((steady, 2.1e-3), (slow, 2.9e-3))
    )
    results = replace(alone, trials=(lucky, steady, slow), final_times=final_times, noises=(), baselines=())
    assert session.best_of(results)[values.PROBLEM] == (steady, values.timed(2.1e-3))


def test_a_line_and_the_document_report_time_speed_and_the_baseline() -> None:
    (line,) = session.best_lines(values.RESULTS)
    time = "2 ms (reliable), 0 GFLOP/s, 1.50x (1.50 .. 1.50) cuBLAS 13.1.0"
    assert line.startswith(f"matmul 16x8x8 f32 nn none: {time}; trial 100: ")
    document = session.summary_document("r.jsonl", session.MeasuringCounts(1, 1, 2, 3), values.RESULTS, 4.0)
    assert document["counts"] == {"measured": 1, "failed": 1, "left": 2, "other_chips": 3}
    (best,) = document["best"]
    assert (best["trial"], best["median_s"], best["baseline_s"]) == (100, 2e-3, 3e-3)
    assert document["machine"] == "Stub GPU"


# The command around a session.


def here() -> session.Gpu:
    return replace(HERE, evaluate=lambda chip: pytest.fail("nothing is to be judged"))


def request_in(folder: Path, *trials: remote.PendingTrial) -> MeasuringRequest:
    (folder / "pending.bundle").write_bytes(pack(trials, 0, "0.1.0", values.NOW))
    return MeasuringRequest(folder / "pending.bundle")


def test_results_go_next_to_the_bundle_and_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    assert MeasuringRequest(tmp_path / "x.bundle").results_file == tmp_path / "x.bundle.results.jsonl"
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match=r"^seconds: found .*, allowed more than 0$"):
            MeasuringRequest(Path("x"), seconds)


def test_code_for_another_chip_is_reported_with_both_chips(tmp_path: Path) -> None:
    request = request_in(tmp_path, values.pending(0, code=replace(values.program(), chip="sm_80")))
    message = r"^bundle: has code for sm_80, but this GPU is Simulated GPU, sm_90$"
    with pytest.raises(UsageError, match=message):
        measure(request, here)
    assert not request.results_file.exists()


def test_an_empty_bundle_is_done_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measure(replace(request_in(tmp_path), as_json=True), here) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["measured"] == 0


def test_results_of_another_bundle_or_machine_are_not_added_to(tmp_path: Path) -> None:
    request = request_in(tmp_path, values.pending(0))
    other = replace(values.PROVENANCE, bundle=read_bundle(request.bundle).sha256, machine=values.GPU)
    for provenance, message in (
        (values.PROVENANCE, r"has results of bundle abababababab on Stub GPU"),
        (other, r"on Stub GPU, tuner 0\.1\.0; name another file: --results FILE"),
    ):
        request.results_file.unlink(missing_ok=True)
        ResultsFile(request.results_file, provenance).close()
        with pytest.raises(UsageError, match=message):
            measure(request, here)


def test_the_bundle_is_read_before_a_gpu_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.bundle: cannot be read"):
        measure(MeasuringRequest(tmp_path / "none.bundle"), lambda: pytest.fail("looked for"))


def test_a_defect_is_one_line_with_its_trace_for_debug_and_ctrl_c_is_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = iter([RuntimeError("odd"), RuntimeError("odd"), KeyboardInterrupt()])

    def broken(path: Path) -> None:
        raise next(errors)

    monkeypatch.setattr("tuner.elsewhere.bundle.command.read_bundle", broken)
    assert main(["--bundle", "x"]) == 1
    assert capsys.readouterr().err == "error: defect: RuntimeError: odd\nhint: --debug shows where\n"
    assert main(["--bundle", "x", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert main(["--bundle", "x"]) == 130


# The process that owns the GPU: what it runs, and how long it is waited for.

CUBIN_CODE = b"\x7fELF"


class PickyEvaluator(AbstractEvaluator):
    def __init__(self, refused: dict[str, Stage]) -> None:
        self._refused = refused

    def load(self, problem: Problem, artifact: Artifact) -> object:
        code = BINARY if artifact.code.binary else TEXT
        if code in self._refused:
            raise CandidateError(self._refused[code], f"no {code} here")
        return code

    def verify(self, *_: Any, **__: Any) -> Verdict:
        return Verdict(0.0, 1)

    def measure(self, *_: Any, **__: Any) -> Measurement:
        return timed()

    def measure_together(self, _: Problem, loaded: tuple[object, ...], *__: Any) -> tuple[Measurement, ...]:
        return tuple(timed() for _ in loaded)


def service(announced: list[str], **refused: Stage) -> MeasuringService:
    picky = Factory("tests.elsewhere.bundle.test_session:PickyEvaluator", (refused,))
    return MeasuringService(announced.append, picky)


def artifact(cubin: bytes = CUBIN_CODE) -> Artifact:
    return Artifact(program(binary=cubin), "")


def test_cublas_in_the_child_chooses_for_itself() -> None:
    assert ("NVIDIA_TF32_OVERRIDE", None) in gpu_child.measuring_spec(Factory("of:anything")).environment


def test_machine_code_runs_where_it_can_else_ptx() -> None:
    announced: list[str] = []
    for measuring, cubin, found in (
        (service(announced), CUBIN_CODE, BINARY),
        (service(announced), b"", TEXT),
        (service(announced, binary=Stage.LOAD), CUBIN_CODE, TEXT),
    ):
        announced.clear()
        assert measuring.evaluate(PROBLEM, artifact(cubin), Effort(), 0).value.code == found
        assert announced == ["timing"]
    for refused, why in (
        # where neither is taken the reason is that of the machine code, or of PTX that loses the context
        ({BINARY: Stage.LOAD, TEXT: Stage.LOAD}, "no binary here"),
        ({BINARY: Stage.LOAD, TEXT: Stage.RUN}, "no text here"),
        # what failed later is not tried again
        *(({BINARY: each}, "no binary here") for each in (Stage.RUN, Stage.VERIFY, Stage.MEASURE)),
    ):
        with pytest.raises(CandidateError, match=why):
            service([], **refused).evaluate(PROBLEM, artifact(), Effort(), 0)


def test_remeasurement_leave_out_what_does_not_load() -> None:
    refusing = service([], binary=Stage.LOAD)
    bare = replace(artifact(), code=program())
    refused = Failure(Stage.LOAD, "no binary here")
    found = refusing.remeasure(PROBLEM, Group((artifact(), bare)), Effort(), 0)
    assert found == FinalTimes((refused, timed()))


LARGE = Matmul(4096, 4096, 4096)


def test_a_hang_is_found_out_soon_and_more_time_is_given_to_more_work() -> None:
    known, huge = Effort(stop_above_s=1e-3), Matmul(65536, 65536, 65536)
    assert hang_limit_s(LARGE, known, 1, is_warm=True) < 20
    assert hang_limit_s(LARGE, Effort(), 1, is_warm=False) < 150
    for is_warm in (False, True):
        small, large = (hang_limit_s(problem, Effort(), 1, is_warm) for problem in (PROBLEM, LARGE))
        assert small < large < hang_limit_s(LARGE, Effort(), 8, is_warm)
    starting, warm = (hang_limit_s(PROBLEM, Effort(), 1, is_warm) for is_warm in (False, True))
    assert starting > warm + 20  # a process that starts anew
    assert hang_limit_s(huge, Effort(stop_above_s=1.0), 1, is_warm=False) < 400  # the reference, not whole


def test_an_artifact_has_its_machine_code_or_only_its_ptx() -> None:
    trial = pending(0, code=program("ptx", binary=b"cubin"))
    assert artifact_of(trial, BINARY).code == trial.program
    assert artifact_of(trial, TEXT).code == replace(trial.program, binary=b"")
