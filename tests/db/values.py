"""Values that the tests of the results database store."""

import hashlib
from dataclasses import replace

from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.queries import ReuseKey
from tuner.core.records import CompileSeconds, Measurement, PassSeconds, Record, Verdict
from tuner.core.reliability import reliable_unless
from tuner.core.round_quality import RoundQuality, TimedRound
from tuner.core.runs import Baseline, ChosenStrategy, Compiler, RunSettings
from tuner.db.store import Store

PROBLEM = Matmul(512, 512, 512)
MACHINE = Machine(
    name="Xeon Platinum 8481C avx512",
    processor="Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
    isa="avx512",
    has_bf16=True,
    physical_cores=1,
    logical_cores=2,
    l1_bytes=48 * 1024,
    l2_bytes=2 * 1024**2,
    l3_bytes=105 * 1024**2,
    memory_bytes=48 * 1024**3,
)
COMPILER = Compiler(
    "LLVM 23.0.0git", (("numba-cuda-mlir", "0.6.1"), ("torch-mlir", "20261001")), "ab" * 32, "1"
)
SETTINGS = RunSettings(
    problem=PROBLEM,
    target=TargetName("cpu"),
    threads=1,
    strategies=(ChosenStrategy("matmul_cpu_packed"), ChosenStrategy("matmul_cpu_direct")),
    space_yaml="strategies: {}\n",
    sampler="tpe",
    seed=7,
    trials=100,
    budget_s=60.0,
    workers=2,
)
COMPILE_SECONDS = CompileSeconds(
    COMPILER.fingerprint, MACHINE.name, (PassSeconds("Canonicalizer", 0.004, 3), PassSeconds("CSE", 0.001, 2))
)
KEY = ReuseKey(PROBLEM, TargetName("cpu"), 1, MACHINE.name, COMPILER)
CANDIDATE = Candidate.of("matmul_cpu_packed", {"tile_m": 8, "order": "mnk"})
SCRIPT = "module attributes {transform.with_named_sequence} {}\n"
TOO_WIDE = Failure(Stage.COMPILE, "tile_k=48 does not divide k=512")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def timed(median_s: float, is_complete: bool = True) -> Measurement:
    samples_s = (median_s * 0.9, median_s, median_s * 1.1)
    return Measurement(samples_s, 4, median_s, (median_s * 0.9, median_s * 1.1), is_complete)


def outcome(result: Measurement | Verdict | Failure, script: str = SCRIPT, artifact: str = "") -> Record:
    stage_s = (("bind", 0.001), ("compile", 0.08))
    return Record(PROBLEM, CANDIDATE, TargetName("cpu"), result, sha256(script), artifact, stage_s)


def time_again(
    store: Store,
    run: int,
    *times: tuple[int, Measurement],
    noise: float | None = None,
    unreliable: str = "",
    baseline: Baseline | None = None,
) -> None:
    """Stores a timing round whose disturbance equals its noise."""
    store.add_round(
        run, TimedRound(RoundQuality(noise, noise or 0.0, reliable_unless(unreliable)), times, baseline)
    )


def begin(store: Store, settings: RunSettings = SETTINGS, machine: Machine = MACHINE) -> int:
    return store.begin_run(settings, machine, COMPILER, "0.1.0", 0.25)


def add(store: Store, run: int, number: int, record: Record | None, script: str = SCRIPT) -> int:
    """Stores a trial with its outcome, or none, and returns its id."""
    trial = store.propose(run, number, 10 * number, CANDIDATE if record is None else record.candidate)
    if record is not None:
        store.record(trial, replace(record, problem=store.run(run).settings.problem), script)
    return trial
