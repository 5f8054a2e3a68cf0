"""A synthetic results database of any number of trials, written by SQL statements."""

import datetime
import hashlib
import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import insert

from tuner.core.candidate import TargetName
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.runs import ChosenStrategy, Compiler, RunSettings
from tuner.db.database import Database
from tuner.db.models import FINAL, FIRST, MeasurementRow, RunRow, ScriptRow, TrialRow
from tuner.db.rows import environment_row, interned, machine_row, problem_row, settings_columns

SHAPES = tuple(f"{m}x{n}x{k}" for m in (256, 512, 1024) for n in (512, 1024, 1536) for k in (512, 768))
TRIALS_PER_RUN = 100
TOP_TRIALS = 8
FAILED_SHARE = 0.2  # of trials
STATEMENT_RUNS = 200  # whose trials go to the database at once
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SCRIPT = "module attributes {transform.with_named_sequence} {}\n"
SCRIPT_SHA256 = hashlib.sha256(SCRIPT.encode()).hexdigest()
MACHINE = Machine(
    name="EPYC (avx512)",
    processor="EPYC",
    isa="avx512",
    has_bf16=True,
    physical_cores=2,
    logical_cores=2,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=32 << 20,
    memory_bytes=8 << 30,
)
MACHINES = tuple(replace(MACHINE, name=f"{MACHINE.name} {number}") for number in range(3))
SETTINGS = RunSettings(
    problem=Matmul(1, 1, 1),
    target=TargetName("cpu"),
    threads=1,
    strategies=(ChosenStrategy("matmul_cpu_packed"),),
    space_yaml="strategies: {}\n",
    sampler="tpe",
    seed=0,
    trials=TRIALS_PER_RUN,
    budget_s=None,
    workers=2,
)


def write_history(database: Database, trials: int, seed: int = 0) -> None:
    """Fills an empty database: runs of all shapes and machines round-robin, with failures and final times."""
    rng = random.Random(seed)
    runs = trials // TRIALS_PER_RUN
    with database.writing() as session:
        session.add(ScriptRow(sha256=SCRIPT_SHA256, text=SCRIPT))
        for number in range(runs):
            session.add(_run(session, number, rng))
        session.flush()
    for start in range(0, runs, STATEMENT_RUNS):
        _write(database, range(start + 1, min(start + STATEMENT_RUNS, runs) + 1), rng)


def _write(database: Database, runs: range, rng: random.Random) -> None:
    """Stores the trials of some runs, and their times."""
    trials: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    for run in runs:
        for number in range(TRIALS_PER_RUN):
            trial_id = (run - 1) * TRIALS_PER_RUN + number + 1
            median_s = None if rng.random() < FAILED_SHARE else 1e-3 * rng.lognormvariate(0, 0.3)
            trials.append(_trial(trial_id, run, number, median_s, rng))
            if median_s is not None:
                times += _times(trial_id, number, median_s)
    with database.transaction() as connection:
        connection.execute(insert(TrialRow), trials)
        connection.execute(insert(MeasurementRow), times)


def _run(session: Any, number: int, rng: random.Random) -> RunRow:
    m, n, k = map(int, SHAPES[number % len(SHAPES)].split("x"))
    settings = replace(SETTINGS, problem=Matmul(m, n, k), seed=number)
    run = RunRow(
        uuid=str(uuid.UUID(int=rng.getrandbits(128))),
        created=_moment(number),
        status="done",
        tuner_version="0.1.0",
        seconds=60.0,
        noise=0.01,
        **settings_columns(settings),
    )
    run.problem = interned(session, problem_row(settings.problem))
    run.machine = interned(session, machine_row(MACHINES[number // len(SHAPES) % len(MACHINES)]))
    run.environment = interned(session, environment_row(Compiler("LLVM 23", (), "ab" * 32)))
    return run


def _trial(
    trial_id: int, run: int, number: int, median_s: float | None, rng: random.Random
) -> dict[str, Any]:
    moment = _moment(run) + datetime.timedelta(seconds=number)
    is_failed = median_s is None
    return {
        "id": trial_id,
        "run_id": run,
        "number": number,
        "row": rng.randrange(10_000),
        "strategy": "matmul_cpu_packed",
        "knobs": {"tile_m": rng.choice((4, 6, 8)), "tile_n": 32, "order": "mnk"},
        "proposed": moment,
        "finished": moment,
        "status": "failed" if is_failed else "measured",
        "stage": "compile" if is_failed else None,
        "reason": "tile_k=48 does not divide k=512" if is_failed else None,
        "max_error": None if is_failed else 0.1,
        "elements": None if is_failed else 262_144,
        "stage_s": [["bind", 0.001], ["compile", 0.08]],
        "script_sha256": SCRIPT_SHA256,
        "artifact_sha256": f"{trial_id:064x}",
        "reused_from_id": None,
        "ranked_s": median_s,
    }


def _times(trial_id: int, number: int, median_s: float) -> Iterator[dict[str, Any]]:
    for kind in (FIRST, FINAL) if number < TOP_TRIALS else (FIRST,):
        yield {
            "trial_id": trial_id,
            "kind": kind,
            "samples_s": [median_s] * 20,
            "inner_calls": 1,
            "median_s": median_s,
            "low_s": 0.99 * median_s,
            "high_s": 1.01 * median_s,
            "is_complete": True,
        }


def _moment(number: int) -> datetime.datetime:
    return BEGIN + datetime.timedelta(minutes=number)
