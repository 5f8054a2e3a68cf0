"""A results database of the fixed candidates: outcomes, dates and names are those written here.

Every run holds the candidates of one problem on one machine. Its trials have times, or verdicts on the
simulator; then come one that was stopped early where there is a clock, and one that failed.
"""

import itertools
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from benchmarks.golden_hashes.candidates import BuiltCandidate
from benchmarks.golden_hashes.machines import COMPILER
from benchmarks.golden_hashes.tuner_names import (
    RELIABLE,
    Baseline,
    ChosenStrategy,
    Conditions,
    Failure,
    GpuState,
    HostConditions,
    InitialConfiguration,
    Measurement,
    Record,
    Resources,
    Roofline,
    RoundQuality,
    RunSettings,
    Span,
    Stage,
    Store,
    TimedRound,
    Verdict,
)

VERSION = "0.1.0"
ELEMENTS = 4096  # that a verdict compared
HOST = HostConditions(0.5, 0.25, 0.01, 0.0, 0.0, 1.5e-4, 0.02, 3e-5)
COLD, WARM = GpuState(1.2e9, 1.6e9, 40.0, 80.0), GpuState(1.1e9, 1.6e9, 55.0, 250.0, ("power cap",))
SENSORS = Conditions(COLD, WARM, Span.of((COLD, WARM)))
STAGES = (("bind", 0.001), ("transform", 0.02), ("lower", 0.05), ("verify", 0.25))
FAILURES = (
    Failure(Stage.COMPILE, "tile_k=48 does not divide k=512"),
    Failure(Stage.RESOURCES, "kernel: 300 registers, allowed 255"),
    Failure(Stage.VERIFY, "3 of 4096 elements are wrong"),
    Failure(Stage.RUN, "the process ended by signal 11"),
)
# What the database writes of its own accord: names of runs, and moments. A later run is younger.
FIXED_MOMENTS = """
    UPDATE run SET uuid = printf('00000000-0000-4000-8000-%012d', id),
        created = strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-31', '+' || id || ' hours');
    UPDATE trial SET proposed = strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-31', '+' || run_id || ' hours',
        '+' || (2 * number + 1) || ' seconds');
    UPDATE trial SET finished = strftime('%Y-%m-%d %H:%M:%S.000000', proposed, '+1 seconds')
        WHERE finished IS NOT NULL;
    UPDATE timing_round SET started = strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-31',
        '+' || run_id || ' hours', '+30 minutes');
"""


def write_database(file: Path, candidates: Iterable[BuiltCandidate]) -> dict[int, int]:
    """Fills a new database; returns the ids of the trials by the numbers of their candidates."""
    trials: dict[int, int] = {}
    with Store.open(str(file)) as store:
        for _, group in itertools.groupby(candidates, key=_run_key):
            trials |= _write_run(store, tuple(group))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(FIXED_MOMENTS)
    connection.close()
    return trials


def _run_key(built: BuiltCandidate) -> tuple[object, ...]:
    golden = built.golden
    return golden.problem, golden.target, golden.isa, golden.threads


def _write_run(store: Store, group: tuple[BuiltCandidate, ...]) -> dict[int, int]:
    golden = group[0].golden
    run = store.begin_run(_settings(group), golden.machine, COMPILER, VERSION, 0.25)
    trials = {
        built.golden.number: _write_trial(store, run, number, built, _outcome(built))
        for number, built in enumerate(group)
    }
    number = len(group)
    if _has_clock(golden.target.kind):
        stopped = replace(_measurement(group[-1]), is_complete=False)
        _write_trial(store, run, number, group[-1], stopped)
        times = tuple((trials[built.golden.number], _measurement(built, share=0.97)) for built in group)
        quality = RoundQuality(0.01, 0.02, RELIABLE, HOST if golden.target.kind == "cpu" else None)
        store.add_round(run, TimedRound(quality, times, _baseline(golden.threads, times[0][1])))
        store.set_roofline(run, Roofline(2e11, 2e10))
    _write_trial(store, run, number + 1, group[0], FAILURES[run % len(FAILURES)])
    store.add_search(run, 10.0, 2.5)
    store.finish_run(run, "interrupted" if run % 5 == 0 else "done", 12.5)
    return trials


def _settings(group: tuple[BuiltCandidate, ...]) -> RunSettings:
    golden = group[0].golden
    names = dict.fromkeys(built.golden.candidate.strategy for built in group)
    return RunSettings(
        problem=golden.problem,
        target=golden.target,
        threads=golden.threads,
        strategies=tuple(map(ChosenStrategy, names)),
        space_yaml="strategies: {}\n",
        sampler="tpe",
        seed=golden.number,
        trials=100,
        budget_s=60.0,
        workers=2,
        first=(
            InitialConfiguration(golden.candidate, "warm start", "512x512x512 (run 1)"),
            InitialConfiguration(group[-1].golden.candidate, "space file"),
        ),
    )


def _write_trial(
    store: Store, run: int, number: int, built: BuiltCandidate, outcome: Measurement | Verdict | Failure
) -> int:
    golden = built.golden
    trial = store.propose(run, number, 10 * number, golden.candidate)
    code = None
    if built.artifact.code.is_for_device:
        resources = tuple(_resources(launch.kernel) for launch in built.artifact.code.launches)
        code = replace(built.artifact.code, resources=resources)
    record = Record(
        problem=golden.problem,
        candidate=golden.candidate,
        target=golden.target,
        outcome=outcome,
        script_sha256=built.script.sha256,
        artifact_sha256=built.artifact.sha256,
        stage_s=STAGES,
        verdict=Verdict(0.25, ELEMENTS) if isinstance(outcome, Measurement) else None,
        kernel_code=code,
    )
    store.record(trial, record, built.script.text)
    return trial


def _has_clock(kind: str) -> bool:
    return kind != "simulator"


def _outcome(built: BuiltCandidate) -> Measurement | Verdict:
    if _has_clock(built.golden.target.kind):
        return _measurement(built)
    return Verdict(0.5, ELEMENTS, ("4 of 9 blocks", "bank conflicts: 2 ways"))


def _measurement(built: BuiltCandidate, share: float = 1.0) -> Measurement:
    """Returns times that differ from candidate to candidate."""
    golden = built.golden
    median_s = share * 1e-4 * (10 + 7 * golden.number % 11) / 16
    samples_s = tuple(median_s * (1 + place / 256) for place in (0, -1, 4, 1, -2, 0, 0, 2, -1, 1, 0))
    interval_s = (samples_s[1], samples_s[3])
    if golden.target.kind == "cpu":
        return Measurement(samples_s, 4, median_s, interval_s, host=HOST)
    return Measurement(samples_s, 4, median_s, interval_s, cold_median_s=2 * median_s, conditions=SENSORS)


def _baseline(threads: int, time: Measurement) -> Baseline:
    return Baseline(
        "Golden BLAS 1.0", threads, replace(time, median_s=1.25 * time.median_s), is_interleaved=True
    )


def _resources(kernel: str) -> Resources:
    return Resources(kernel, 96, 8, 16, 1024, 0, 32, 0.5, 4, ("a note of ptxas",))
