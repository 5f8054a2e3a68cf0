"""The documents in which candidates appear: what commands print of a database, and the files they write."""

import datetime
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.golden_hashes.candidates import BuiltCandidate
from benchmarks.golden_hashes.command_line import CommandLine
from benchmarks.golden_hashes.database import SENSORS, VERSION
from benchmarks.golden_hashes.machines import COMPILER, machine_of
from benchmarks.golden_hashes.tuner_names import (
    MANIFEST,
    TEXT,
    Baseline,
    BaselineTime,
    ChosenStrategy,
    FinalTime,
    GateEntry,
    GateFile,
    MeasuredTrial,
    Measurement,
    MeasuringProvenance,
    NoiseFloor,
    PendingTrial,
    ResultsFile,
    Store,
    TargetName,
    TrialQuery,
    Verdict,
    choose_pending,
    gate_file_bytes,
    import_file,
    pack,
)

MOMENT = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
OF_A_TRIAL = {  # part -> command
    "shown": ("show", "{trial}", "--json"),
    "exported": ("export", "--trial", "{trial}"),
    "source": ("export", "--trial", "{trial}", "--format", "source"),
}
NAIVE = "matmul_gpu_naive(block_m=1, block_n=256)"
TOO_WIDE = "matmul_gpu_naive(block_m=16, block_n=1024)"
OF_ALL = {  # part -> command
    "history": ("history", "--format", "json"),
    "history csv": ("history", "--format", "csv"),
    "history best": ("history", "--best", "--sort", "median", "--format", "json"),
    "history failed": ("history", "--status", "failed", "--format", "json"),
    "runs": ("history", "--runs", "--limit", "100", "--json"),
    "ablation": ("show", "run:1", "--ablation", "--json"),
    "strategies": ("strategies", "--json"),
    "space f16": ("space", "matmul", "512x512x512", "--dtype", "f16", "--target", "simulator", "--json"),
    "feasible": ("explain", "matmul", "64x300x64", NAIVE, "--target", "simulator", "--json"),
    "not feasible": ("explain", "matmul", "64x300x64", TOO_WIDE, "--target", "simulator", "--json"),
}


def documents_of_trial(tuner: CommandLine, trial: int) -> dict[str, str]:
    """Returns what commands print of one trial, by part."""
    return {
        part: tuner.printed(*(text.format(trial=trial) for text in text)) for part, text in OF_A_TRIAL.items()
    }


def documents_of_all(tuner: CommandLine, candidates: tuple[BuiltCandidate, ...]) -> Iterator[tuple[str, str]]:
    """Yields (part, text) of documents about many candidates."""
    for part, text in OF_ALL.items():
        yield part, tuner.printed(*text)
    yield "exported payload", tuner.printed("export", "--trial", "1", "--format", "payload")
    yield from _best_trials(tuner, candidates)
    yield "gate file", _gate_file(candidates)
    with Store.open(str(tuner.database)) as store:
        pending = choose_pending(store, TrialQuery())
        yield "bundle", _manifest(pending)
        results = tuner.database.with_name("results.jsonl")
        yield "results of a bundle", _results(results, pending)
        import_file(store, results)
        runs = store.info().runs
    for run in range(1, runs + 1):
        yield f"run {run:02d}", tuner.printed("show", f"run:{run}", "--json")
    failed = json.loads(tuner.printed("history", "--status", "failed", "--format", "json"))
    for trial in sorted(each["trial"] for each in failed):
        yield f"explained trial {trial}", tuner.printed("explain", str(trial), "--json")


def _best_trials(tuner: CommandLine, candidates: tuple[BuiltCandidate, ...]) -> Iterator[tuple[str, str]]:
    """Yields the best trials of the first problem, and the replacement for stock mlir-opt."""
    first = candidates[0].golden
    text = ("export", "matmul", first.problem.shape, "--machine", first.machine.name, "--json")
    yield "best", tuner.printed(*text)
    yield "best stock", tuner.printed(*text, "--stock")


def _gate_file(candidates: tuple[BuiltCandidate, ...]) -> str:
    """Returns a gate's file with all candidates that were timed, their code by its hash alone."""
    entries = tuple(_gate_entry(built) for built in candidates if built.golden.target.kind != "simulator")
    document = json.loads(gate_file_bytes(GateFile(MOMENT, VERSION, entries)))
    for entry in document["entries"]:
        del entry["code"]  # compressed, by a library of this machine
    return json.dumps(document, indent=1) + "\n"


def _gate_entry(built: BuiltCandidate) -> GateEntry:
    golden = built.golden
    return GateEntry(
        problem=golden.problem,
        target=golden.target,
        threads=golden.threads,
        strategy=ChosenStrategy(golden.candidate.strategy),
        candidate=golden.candidate,
        script_sha256=built.script.sha256,
        artifact=built.artifact,
        measurement=_time(1e-3),
        machine=golden.machine.name,
        mlir=COMPILER.mlir,
        compiler=COMPILER.fingerprint,
    )


def _manifest(pending: tuple[PendingTrial, ...]) -> str:
    """Returns the manifest of a bundle; it refers to texts by hashes."""
    with zipfile.ZipFile(io.BytesIO(pack(pending, 0, VERSION, MOMENT))) as bundle:
        return bundle.read(MANIFEST).decode()


def _results(file: Path, pending: tuple[PendingTrial, ...]) -> str:
    """Writes results as a GPU on another machine might give them, and returns them."""
    machine = machine_of(TargetName("cuda", "sm_90"), "ptx")
    written = ResultsFile(
        file,
        MeasuringProvenance(
            "5d2b1f8a-0000-4000-8000-000000000001", "ab" * 32, VERSION, MOMENT, machine, "13.0"
        ),
    )
    for place, trial in enumerate(pending):
        written.append(_measured(trial, _time(1e-3 * (1 + place / 64))))
    problem = pending[0].problem
    written.append(FinalTime(pending[0].origin, problem, _time(2e-3)))
    written.append(NoiseFloor(problem, 0.01))
    written.append(BaselineTime(problem, Baseline("Golden BLAS 1.0", 0, _time(3e-3), is_interleaved=True)))
    written.close()
    return file.read_text()


def _measured(trial: PendingTrial, time: Measurement) -> MeasuredTrial:
    return MeasuredTrial(
        origin=trial.origin,
        id=trial.id,
        problem=trial.problem,
        candidate=trial.candidate,
        chip=trial.program.chip,
        script_sha256=trial.script_sha256,
        artifact_sha256=trial.artifact_sha256,
        code=TEXT,
        finished=MOMENT,
        outcome=time,
        verdict=Verdict(0.5, 128),
        stage_s=(("load", 0.125), ("verify", 0.25)),
    )


def _time(median_s: float) -> Measurement:
    return Measurement(
        (median_s,) * 6, 3, median_s, (median_s, median_s), cold_median_s=2 * median_s, conditions=SENSORS
    )
