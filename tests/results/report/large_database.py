"""A database of one run with thousands of trials, written in one transaction."""

import datetime
import math
import random
from dataclasses import replace
from pathlib import Path

from tests.db.values import COMPILER, MACHINE, SETTINGS, sha256, time_again
from tests.db.values import outcome as stored_outcome
from tuner.core.candidate import Candidate, ChosenStrategy
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Roofline
from tuner.core.records import Measurement
from tuner.core.runs import SEED, SPACE_FILE, Baseline, InitialConfiguration
from tuner.db.database import Database
from tuner.db.store import Store
from tuner.db.writes import add_outcome, add_proposal, add_script

STRATEGIES = ("matmul_cpu_packed", "matmul_cpu_direct")
KNOBS = {
    "tile_m": (2, 4, 6, 8, 10, 12, 14),
    "tile_n": (16, 32, 48, 64),
    "block_m": (0, 96, 192, 384),
    "block_n": (0, 64, 128, 256),
    "block_k": (0, 128, 256, 384),
    "unroll_k": (1, 2, 4, 8),
    "loop_order": ("ij", "ji"),
}
FAILURES = (
    Failure(Stage.COMPILE, "tile_n=48 does not divide n=512"),
    Failure(Stage.RESOURCES, "found 37 registers, allowed 32"),
    Failure(Stage.RUN, "did not end within 10 s"),
    Failure(Stage.VERIFY, "element (3, 17): found 0.25, allowed 0.5 within 1e-6"),
)
TOP_TRIALS = 8
SCRIPT = "module attributes {transform.with_named_sequence} {}\n"


def write_large_database(file: Path, trials: int) -> None:
    chance = random.Random(0)
    candidates = [_candidate(chance) for _ in range(trials)]
    origins = [SPACE_FILE] * 6 + [SEED] * 8
    first = tuple(InitialConfiguration(*pair) for pair in zip(candidates, origins, strict=False))
    with Store.open(str(file)) as store:
        settings = replace(
            SETTINGS, strategies=tuple(map(ChosenStrategy, STRATEGIES)), first=first, trials=trials
        )
        run = store.begin_run(settings, MACHINE, COMPILER, "0.1.0", 0.25)
        times = _write_trials(file, run, candidates, chance)
        fastest = sorted(times.items(), key=lambda pair: pair[1])[:TOP_TRIALS]
        final_times = ((trial, _timed(median_s)) for trial, median_s in fastest)
        baseline = Baseline("OpenBLAS 0.3.30 SkylakeX", 1, _timed(2.4e-3))
        time_again(store, run, *final_times, noise=0.012, baseline=baseline)
        store.set_roofline(run, Roofline(1.9e11, 1.1e10))
        store.finish_run(run, "done", 3600.0)


def _write_trials(
    file: Path, run: int, candidates: list[Candidate], chance: random.Random
) -> dict[int, float]:
    database = Database.open(str(file))
    times = {}
    with database.transaction() as connection:
        add_script(connection, sha256(SCRIPT), SCRIPT)
        for number, candidate in enumerate(candidates):
            now = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC) + datetime.timedelta(seconds=number)
            trial = add_proposal(connection, run, number, number, candidate, now)
            outcome = _outcome(candidate, chance)
            record = replace(stored_outcome(outcome, SCRIPT), candidate=candidate)
            add_outcome(connection, trial, record, now)
            if isinstance(outcome, Measurement):
                times[trial] = outcome.median_s
    database.close()
    return times


def _candidate(chance: random.Random) -> Candidate:
    strategy = chance.choice(STRATEGIES)
    knobs = {name: chance.choice(values) for name, values in KNOBS.items()}
    if strategy == STRATEGIES[1]:
        del knobs["block_k"]
    return Candidate.of(strategy, knobs)


def _outcome(candidate: Candidate, chance: random.Random) -> Measurement | Failure:
    knobs = dict(candidate.choices)
    if knobs["tile_n"] == 48 or chance.random() < 0.05:
        return FAILURES[0 if knobs["tile_n"] == 48 else chance.randrange(1, len(FAILURES))]
    slower = abs(math.log2(int(knobs["tile_m"]) / 8)) + abs(math.log2(int(knobs["tile_n"]) / 32)) / 2
    slower += 0.3 * (knobs["unroll_k"] != 4) + 0.1 * (knobs["loop_order"] == "ij")
    return _timed(1.9e-3 * (1 + slower) * chance.uniform(1.0, 1.3))


def _timed(median_s: float) -> Measurement:
    samples_s = tuple(median_s * factor for factor in (0.99, 1.0, 1.01))
    return Measurement(samples_s, 4, median_s, (samples_s[0], samples_s[-1]))
