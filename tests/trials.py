"""Trials and runs as values, for tests of output."""

import datetime
from dataclasses import replace

from tests.tuning.fakes import MACHINE, settings
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.reliability import RELIABLE, unreliable
from tuner.core.runs import Baseline, Compiler, Run
from tuner.core.trials import NOT_TIMED, Proposal, StoredTrial

CREATED = datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.UTC)


def measurement(median_s: float, width: float = 0.0) -> Measurement:
    """Returns a measurement whose interval is ``width`` wide, relative to its median."""
    half = median_s * width / 2
    return Measurement((median_s,) * 6, 2, median_s, (median_s - half, median_s + half))


def trial(
    number: int,
    outcome: Measurement | Verdict | Failure,
    final: Measurement | None = None,
    script: str = "module {}\n",
    knobs: int = 1,
    code: str = "",
) -> StoredTrial:
    """Returns trial ``number + 100`` of run 3."""
    values = {f"knob_{index}": number for index in range(knobs)}
    record = Record(
        problem=settings().problem,
        candidate=Candidate.of("fake", {**values}),
        target=TargetName("fake"),
        outcome=outcome,
        script_sha256=f"script {number}",
        artifact_sha256=code or f"code {number}",
        stage_s=(("bind", 0.001), ("measure", 0.2)),
        verdict=Verdict(0.25, 64),
    )
    return StoredTrial(
        id=number + 100,
        run=3,
        number=number,
        row=number,
        record=record,
        final=final,
        stored_script=script,
        created=CREATED,
        machine=MACHINE,
        threads=1,
        reliability=NOT_TIMED if final is None else RELIABLE,
    )


def proposal(number: int, done: StoredTrial | None = None) -> Proposal:
    """Returns the proposal of trial ``number + 100``."""
    return Proposal(number + 100, number, number, Candidate.of("fake", {"knob_0": number}), done)


def top_trial(number: int, final: Measurement, **changes: str) -> StoredTrial:
    """Returns trial ``number + 100`` of run 3, re-timed with its first time."""
    return trial(number, final, final, **changes)  # type: ignore[arg-type]


def disturbed(of: StoredTrial, reason: str = "load") -> StoredTrial:
    """Returns a trial whose time was disturbed."""
    return replace(of, reliability=unreliable(reason))


def run(baseline_s: float | None = 2e-3, **changes: object) -> Run:
    """Returns run 3."""
    plain = Run(
        id=3,
        settings=settings(),
        machine=MACHINE,
        compiler=Compiler("fake 1.0", (), "0" * 64),
        tuner_version="0.1.0",
        status="done",
        created=CREATED,
        seconds=12.5,
        noise=0.01,
        reliability=RELIABLE,
        load_average=0.5,
        baseline=None
        if baseline_s is None
        else Baseline("FakeBLAS 1.0", 1, measurement(baseline_s), is_interleaved=True),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]
