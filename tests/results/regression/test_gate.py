"""The gate on a fake target, whose times follow from the knob x: 1 ms for 7, 2 ms for 6 and 8."""

import base64
import datetime
import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTarget
from tests.fakes import bind as bind_fake
from tests.trials import measurement
from tests.tuning import fakes
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError
from tuner.core.interfaces import Artifact, Effort, Partition, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement
from tuner.core.runs import ChosenStrategy
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.results.past_runs import past_trials
from tuner.results.regression import gate
from tuner.results.regression.audit import Audited, AuditStatus, audit
from tuner.results.regression.gate import GateEntry, GateStatus, check_entry, gate_file_bytes, read_gate_file
from tuner.runtime.workers.runner import TrialRunner
from tuner.targets.backends import Backends
from tuner.targets.target import TargetStatus

LIMITS = SlowdownLimits.up_to()


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, StoredTrial]:
    database = str(tmp_path_factory.mktemp("gate") / "results.db")
    with Store.open(database) as store:
        tuned = fakes.tune(store, trials=20, sampler="exhaustive")
        assert tuned.best is not None
        return database, tuned.best


@pytest.fixture(scope="module")
def entry(best: tuple[str, StoredTrial]) -> GateEntry:
    with Store.open(best[0]) as store:
        return gate.recorded_entry(fakes.backends(), store, best[1])


def changed(**knobs: Value) -> Backends:
    """Returns backends whose strategy binds other knobs than it did."""

    def bind(candidate: Candidate) -> Script:
        return bind_fake(Candidate.of(candidate.strategy, dict(candidate.choices) | knobs))

    return fakes.backends(bind=lambda *_: bind)


def test_an_entry_has_the_code_and_its_time_and_equal_code_is_not_timed(entry: GateEntry) -> None:
    assert entry.measurement.median_s == fakes.BEST_S
    assert '"x": 7' in entry.artifact.code.text
    assert (entry.strategy, entry.machine, entry.mlir) == (ChosenStrategy("fake"), "fake", "fake 1.0")
    found = check_entry(changed(comment="other"), entry, LIMITS)
    assert (found.status, found.slowdown, found.sessions) == (GateStatus.SAME_CODE, None, 0)
    assert found.reason == "it compiles to the recorded code"
    found = check_entry(fakes.backends(), replace(entry, mlir="fake 0.9"), LIMITS)
    assert found.status is GateStatus.SAME_CODE
    assert found.reason == "the same LLVM dialect; its machine code is made by fake 1.0, then by fake 0.9"


@pytest.mark.slow
def test_a_slowdown_that_is_neither_shown_nor_ruled_out_passes_as_unclear(entry: GateEntry) -> None:
    found = check_entry(changed(x=8), entry, SlowdownLimits(tolerated=2.0, excluded=0.5))
    assert (found.status, found.sessions, found.status.passes) == (GateStatus.UNCLEAR, 30, True)


def test_incomparable_code_stops_it(entry: GateEntry) -> None:
    for backends, reason in (
        (changed(deed="wrong", at="verify"), "fails at stage verify: element (0, 1)"),
        (changed(deed="fail", at="compile"), "fails at stage compile: fails at compile"),
        (changed(deed="fail", at="together"), "the current code ran alone, and fails interleaved"),
        (fakes.untimed_backends(), "not known here"),
    ):
        found = check_entry(backends, entry, LIMITS)
        assert found.status is GateStatus.FAILED
        assert reason in found.reason


def test_code_of_then_that_does_not_run_is_to_be_recorded_anew(entry: GateEntry) -> None:
    broken = replace(entry, artifact=replace(entry.artifact, code=KernelCode.of_host("{"), sha256="other"))
    found = check_entry(fakes.backends(), broken, LIMITS)
    reason = "the recorded code does not run here any more: record it again"
    assert (found.status, found.reason) == (GateStatus.FAILED, reason)


def test_what_fails_or_has_no_time_is_not_recorded(best: tuple[str, StoredTrial], tmp_path: Path) -> None:
    with Store.open(best[0]) as store, pytest.raises(UsageError, match="fails at stage verify"):
        gate.recorded_entry(changed(deed="wrong", at="verify"), store, best[1])
    backends = fakes.untimed_backends()
    with Store.open(str(tmp_path / "untimed.db")) as store:
        fakes.tune(store, backends, trials=1, target=TargetName("simulator", "sm_90"))
        (trial,) = store.trials(TrialQuery())
        with pytest.raises(UsageError, match="is verified, and nothing is timed here"):
            gate.recorded_entry(backends, store, trial)


NOW = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
PTX, CUBIN = ".version 8.0 // \N{GREEK SMALL LETTER MU}", b"\x7fELF\x00\xff"
LAUNCH = Launch("k", (1, 1, 1), (32, 1, 1), 0, ("a", "b", "c"))
PROGRAM = KernelCode("sm_90", PTX, CUBIN, (LAUNCH,), (KernelBuffer("a", 4, "input"),))


def gate_file_entry(artifact: Artifact, n: int = 8, **changes: Any) -> GateEntry:
    values = {
        "problem": Matmul(8, n, 8),
        "target": TargetName("cpu"),
        "threads": 2,
        "strategy": ChosenStrategy("mine", Path("/a/mine.mlir")),
        "candidate": Candidate.of("mine", {"tile_m": 4, "order": "mnk"}),
        "script_sha256": "5c",
        "artifact": artifact,
        "measurement": measurement(1e-3, 0.01),
        "machine": "Xeon",
        "mlir": "LLVM 23",
        "compiler": "LLVM 23 pipeline:1",
    }
    return GateEntry(**{**values, **changes})


ON_CPU = gate_file_entry(
    Artifact(KernelCode.of_host("llvm.func @f() {}"), "aa", (Partition("f", 0, 0, 8, 8),))
)
ON_GPU = gate_file_entry(Artifact(PROGRAM, "bb"), target=TargetName("cuda", "sm_90"), threads=1)
FILE = gate.GateFile(NOW, "0.1.0", (ON_CPU, ON_GPU))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "gate.json"
    path.write_bytes(content)
    return path


def test_code_comes_back_whole(tmp_path: Path) -> None:
    assert read_gate_file(written(tmp_path, gate_file_bytes(FILE))) == FILE


def test_an_entry_takes_the_place_of_one_of_its_problem_target_and_threads() -> None:
    faster = gate_file_entry(ON_CPU.artifact, measurement=measurement(5e-4))
    other = gate_file_entry(ON_CPU.artifact, n=16)
    assert FILE.with_entries((faster, other)).entries == (faster, ON_GPU, other)
    keys = [each.key.removeprefix("matmul 8x8x8 f32 nn none ") for each in FILE.entries]
    assert keys == ["cpu 2 threads", "cuda:sm_90"]


def test_an_entry_whose_script_was_altered_is_refused_in_one_line(tmp_path: Path) -> None:
    script = Script.of("// mine")
    entry = replace(ON_CPU, script=script.text, script_sha256=script.sha256)
    file = replace(FILE, entries=(ON_GPU, entry))
    assert read_gate_file(written(tmp_path, gate_file_bytes(file))) == file
    altered = replace(file, entries=(ON_GPU, replace(entry, script="// mine ")))
    with pytest.raises(UsageError, match=r"entries\[1\]: its script was altered: the text does not match"):
        read_gate_file(written(tmp_path, gate_file_bytes(altered)))


def edited(folder: Path, place: tuple[Any, ...], value: Any) -> Path:
    document = json.loads(gate_file_bytes(FILE))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return written(folder, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "zip", "found format 'zip', allowed 'tuner-gate'"),
        (("version",), 9, "found version 9 of tuner-gate, allowed 3"),
        (("entries",), [], "entries: is empty"),
        (("entries", 0, "threads"), "two", r"entries\[0\].threads: found 'two', allowed a whole number"),
        (("entries", 0, "text"), "!", r"entries\[0\]: text: found damaged code"),
        (("entries", 0, "text"), base64.b64encode(b"zlib").decode(), "found damaged code"),
        (("entries", 0, "text"), base64.b64encode(zlib.compress(b"x")[:-4]).decode(), "found code cut off"),
        (("entries", 0, "text"), base64.b64encode(zlib.compress(b"\xff")).decode(), "text: is not text"),
        (("entries", 1, "code", "binary"), "!", r"entries\[1\]: code.binary: found damaged code"),
        (("entries", 0, "problem", "shape"), [0, 1, 1], "size m: found 0, allowed"),
        (("created",), "2026-01-31", "allowed a moment with its zone"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(
    tmp_path: Path, place: Any, value: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read_gate_file(edited(tmp_path, place, value))


def test_endless_code_and_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"{", b"[" * 100_000, b"[]"):
        with pytest.raises(UsageError, match=r"is not JSON|found format None, allowed 'tuner-gate'"):
            read_gate_file(written(tmp_path, content))
    monkeypatch.setattr(gate, "CODE_LIMIT_BYTES", 10)
    with pytest.raises(UsageError, match="cut off or above 10 bytes"):
        read_gate_file(written(tmp_path, gate_file_bytes(FILE)))


# An audit of fake results.

PROBLEM = fakes.settings().problem


@pytest.fixture
def store(best: tuple[str, StoredTrial], tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(shutil.copy(best[0], tmp_path))) as opened:
        yield opened


def with_fake(backends: Backends, **changes: Any) -> Backends:
    return fakes.changed(backends, targets={"fake": fakes.changed(backends.targets["fake"], **changes)})


def upgraded(backends: Backends) -> Backends:
    return with_fake(backends, compiler=lambda _target: fakes.OTHER_COMPILER)


def audited(backends: Backends, store: Store) -> list[Audited]:
    return list(audit(backends, store, TrialQuery(), SlowdownLimits.up_to()))


def test_the_same_script_or_the_same_code_by_another_compiler_keeps_its_time(store: Store) -> None:
    (found,) = audited(fakes.backends(), store)
    assert (found.status, found.status.holds) == (AuditStatus.UNCHANGED, True)
    (found,) = audited(upgraded(fakes.backends()), store)
    assert (found.status, found.now_s, found.run) == (AuditStatus.SAME_CODE, None, None)
    assert found.reason == "although changed: fake 1.0 -> fake 2.0, tuner's passes"
    (found,) = audited(changed(comment="other"), store)
    assert (found.status, found.reason) == (AuditStatus.SAME_CODE, "although changed: the script")
    assert len(store.runs()) == 1


@pytest.mark.parametrize("compiler", ["the same", "another"])
def test_unchanged_code_that_is_wrong_all_the_same_is_flagged_and_fails(store: Store, compiler: str) -> None:
    """As that of a run whose final re-measurement an older version lost."""
    (best,) = audited(fakes.backends(), store)

    class Strict(FakeTarget):
        def measure(self, problem: Problem, loaded: object, effort: Effort, *rest: Any) -> Measurement:
            assert effort.has_extremes
            raise CandidateError(Stage.VERIFY, "3 of 64 elements looked at are wrong")

    strict = fakes.backends(runner=lambda order, how: TrialRunner.local(order, Strict(), Strict(), how.seed))
    found, *_ = audited(strict if compiler == "the same" else upgraded(strict), store)
    assert (found.trial.id, found.status) == (best.trial.id, AuditStatus.FAILED)
    assert found.reason == "fails at stage verify: 3 of 64 elements looked at are wrong"
    refuted = store.trial(best.trial.id)
    why = Failure(Stage.VERIFY, "in a later check: 3 of 64 elements looked at are wrong")
    assert (refuted.record.outcome, refuted.best_s, refuted.stale) == (why, None, "")


def test_other_code_is_timed_and_takes_the_place_of_the_old_time(store: Store) -> None:
    found = audited(upgraded(changed(another=1)), store)
    assert {each.status for each in found} == {AuditStatus.TIMED_AGAIN}
    assert found[0].now_s == fakes.BEST_S
    run = store.run(best_result(store, PROBLEM, "fake").best.run)
    assert run.id in {each.run for each in found}
    assert (run.compiler, run.status) == (fakes.OTHER_COMPILER, "done")
    assert "timed again in an audit" in store.trial(found[0].trial.id).stale
    assert {each.status for each in audited(upgraded(changed(another=1)), store)} == {AuditStatus.UNCHANGED}


def test_wrong_code_is_flagged_and_its_time_forgotten(store: Store) -> None:
    found = audited(changed(deed="wrong", at="verify"), store)
    assert {each.status for each in found} == {AuditStatus.FAILED}
    assert found[0].reason == "fails at stage verify: element (0, 1): found 2, expected 1"
    assert found[0].run is not None
    (stored,) = store.trials(TrialQuery(run=found[0].run))
    assert isinstance(stored.record.outcome, Failure)
    assert found[0].trial.id not in {each.id for each in past_trials(store, TrialQuery(best=True))}


def test_a_strategy_that_no_longer_binds_is_flagged(store: Store) -> None:
    def bind(_candidate: Candidate) -> Script:
        raise CandidateError(Stage.BIND, "no strategy 'fake' in this run")

    found = audited(fakes.backends(bind=lambda *_: bind), store)[0]
    assert found.status is AuditStatus.FAILED
    assert found.reason == "at stage bind: no strategy 'fake' in this run"


def test_a_worker_that_cannot_start_says_nothing_of_the_trial(store: Store) -> None:
    def bind(_candidate: Candidate) -> Script:
        raise TunerError("the worker cannot start: out of memory")

    found = audited(fakes.backends(bind=lambda *_: bind), store)[0]
    assert found.status is AuditStatus.NOT_EVALUATED
    assert found.reason == "the worker cannot start: out of memory"
    assert not store.trial(found.trial.id).stale


def test_code_that_no_longer_compiles_fails_where_it_cannot_run_too(store: Store) -> None:
    gone = TargetStatus("fake", False, "no GPU", is_timed=False, can_compile=True)
    found = audited(with_fake(changed(deed="raise", at="compile"), status=lambda: gone), store)[0]
    assert found.status is AuditStatus.FAILED
    assert found.reason.startswith("fails at stage compile: ")


def test_other_code_that_cannot_run_here_is_not_judged(store: Store) -> None:
    gone = TargetStatus("fake", False, "no GPU", is_timed=False, can_compile=True)
    (found,) = audited(with_fake(changed(another=1), status=lambda: gone), store)
    assert (found.status, found.reason) == (AuditStatus.NOT_EVALUATED, "other code; no GPU")
    assert len(store.runs()) == 1
    assert not store.trial(found.trial.id).stale


def test_results_of_another_machine_are_left_alone_and_the_audit_has_an_end(store: Store) -> None:
    assert audited(with_fake(fakes.backends(), machine=lambda _target: fakes.OTHER_MACHINE), store) == []
    assert len(audited(changed(x=1), store)) <= 8
