"""Converts values to table rows and back; rows that many others refer to are stored once.

A pair of functions per value: ``problem_row`` stores or finds the row of a problem, ``problem_of`` reads it;
likewise for machines, runs, outcomes and measurements. ``interned`` stores a row once.
"""

import datetime
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, selectinload

from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch, Resources
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.fusion_facts import FusionFacts
from tuner.core.machine import Machine
from tuner.core.plausibility import why_not_seconds
from tuner.core.problem import Problem
from tuner.core.problem_classes import FusedProblem, problem_of_values
from tuner.core.queries import OF_PROBLEM
from tuner.core.records import (
    CompileSeconds,
    Conditions,
    HostConditions,
    Measurement,
    OffsetTime,
    Record,
    Verdict,
)
from tuner.core.reliability import RELIABLE, Reliability, unknown, unreliable
from tuner.core.roofline import Roofline, why_no_roofline
from tuner.core.round_quality import Evidence, reliability_alone, reliability_in_round
from tuner.core.runs import (
    NO_ROUND,
    Baseline,
    CampaignPlace,
    ChosenStrategy,
    Compiler,
    LibraryTime,
    RemoteMeasurement,
    Run,
    RunSettings,
)
from tuner.core.serialization import decode, encode
from tuner.core.trials import NOT_TIMED, REPLAYED, StoredTrial
from tuner.db.columns import candidate_from_json, initial_from_json, initial_to_json, json_value
from tuner.db.models import (
    ArtifactRow,
    EnvironmentRow,
    MachineRow,
    MeasurementRow,
    ProblemRow,
    ResourcesRow,
    RunRow,
    ScriptRow,
    TrialRow,
)
from tuner.db.queries import in_parts
from tuner.db.run_process import present_status

Shared = TypeVar("Shared", ProblemRow, MachineRow, EnvironmentRow, ScriptRow, ArtifactRow)

UNIQUE = {
    ProblemRow: "key",
    MachineRow: "content_sha256",
    EnvironmentRow: "content_sha256",
    ScriptRow: "sha256",
    ArtifactRow: "sha256",
}


def interned(session: Session, row: Shared) -> Shared:
    """Returns the stored row with the same unique key (``UNIQUE``) as ``row``.

    If there is none, adds ``row`` and returns it.
    """
    name = UNIQUE[type(row)]
    same = select(type(row)).filter_by(**{name: getattr(row, name)})
    stored = session.scalars(same).one_or_none()
    if stored is not None:
        return stored
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:  # another process stored it first (PostgreSQL only: SQLite has one writer)
        return session.scalars(same).one()
    return row


Launches = tuple[Launch, ...]
Buffers = tuple[KernelBuffer, ...]


def artifact_row(sha256: str, program: KernelCode) -> ArtifactRow:
    """Returns a new row for a device's code and its hash, with a row of resources per kernel."""
    return ArtifactRow(
        sha256=sha256,
        chip=program.chip,
        text=program.text.encode(),
        binary=program.binary,
        launches=encode(program.launches),
        buffers=encode(program.buffers),
        resources=[
            ResourcesRow(place=index, notes=list(resources.notes), **_copied(resources, OF_RESOURCES))
            for index, resources in enumerate(program.resources)
        ],
    )


def stored_programs(session: Session, hashes: Sequence[str | None]) -> dict[str | None, KernelCode]:
    """Returns hash -> code for those of ``hashes`` whose code is stored."""
    programs: dict[str | None, KernelCode] = {}
    for some in in_parts(hashes):
        chosen = select(ArtifactRow).where(ArtifactRow.sha256.in_(some))
        for row in session.scalars(chosen.options(selectinload(ArtifactRow.resources))):
            programs[row.sha256] = KernelCode(
                chip=row.chip,
                text=row.text.decode(),
                binary=row.binary,
                launches=decode(Launches, row.launches, "database: launches"),
                buffers=decode(Buffers, row.buffers, "database: buffers"),
                resources=tuple(resources_of(kernel) for kernel in row.resources),
            )
    return programs


def resources_of(row: ResourcesRow) -> Resources:
    """Returns the assembler's report on one kernel (registers, spills, shared memory, ...) from its row."""
    return Resources(**_copied(row, OF_RESOURCES), notes=tuple(row.notes))


def _same_named(type_: type, *others: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(type_) if field.name not in others)


# Fields that have a column of the same name
OF_RESOURCES = _same_named(Resources, "notes")
OPTIONS_OF_PROBLEM = ("dtype", "layout", "epilogue", "output", "align", "cache")
OF_MACHINE = _same_named(Machine)
OF_COMPILER = _same_named(Compiler, "packages")
OF_VERDICT = _same_named(Verdict, "notes")
OF_SETTINGS = _same_named(
    RunSettings, "problem", "target", "strategies", "warm_files", "first", "seeds", "space_name"
)
OF_RUN = _same_named(
    Run,
    *(
        "settings",
        "machine",
        "compiler",
        "status",
        "baseline",
        "elsewhere",
        "roofline",
        "reliability",
        "campaign",
    ),
)
OF_MEASUREMENT = _same_named(Measurement, "samples_s", "interval_s", "conditions", "host", "offsets")


def _copied(source: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def problem_row(problem: Problem) -> ProblemRow:
    """Returns a new row of the table ``problem`` for a problem (operation, shape, dtype, layout, ...)."""
    row = ProblemRow(**_copied(problem, OF_PROBLEM))
    if isinstance(problem, FusedProblem):
        row.fusion = problem.text
        row.facts = encode(problem.facts)
    return row


def problem_of(row: ProblemRow) -> Problem:
    """Returns the problem (operation, sizes, dtype, ...) that a row of the table ``problem`` holds.

    Raises UsageError for values that this version does not have, such as an epilogue of another version.
    """
    extents = tuple(int(size) for size in row.shape.split("x"))
    facts = None if row.facts is None else decode(FusionFacts, row.facts, "database: facts of a fusion")
    options = _copied(row, OPTIONS_OF_PROBLEM)
    try:
        return problem_of_values(row.operation, extents, options, row.weights, row.fusion, facts)
    except UsageError as error:
        raise UsageError(f"{row.key}: this version does not know that problem: {error.message}") from error


def machine_row(machine: Machine) -> MachineRow:
    """Returns a new row of the table ``machine``; its unique key is a hash of the machine's fields."""
    return MachineRow(content_sha256=_content_sha256(machine), **asdict(machine))


def machine_of(row: MachineRow) -> Machine:
    """Returns the machine that is stored in a row of the table ``machine``."""
    return Machine(**_copied(row, OF_MACHINE))


def environment_row(compiler: Compiler) -> EnvironmentRow:
    """Returns a new row of the table ``environment`` for a compiler; a hash of its fields is the key."""
    return EnvironmentRow(
        content_sha256=_content_sha256(compiler),
        fingerprint=compiler.fingerprint,
        tools=compiler.tools,
        **asdict(compiler),
    )


def compiler_of(row: EnvironmentRow) -> Compiler:
    """Returns the compiler that is stored in a row of the table ``environment``."""
    packages = tuple((name, version) for name, version in row.packages)
    return Compiler(packages=packages, **_copied(row, OF_COMPILER))


def settings_columns(settings: RunSettings) -> dict[str, Any]:
    """Returns column -> value of the table ``run`` for a run's settings, without the problem."""
    return _copied(settings, OF_SETTINGS) | {
        "target": settings.target.text,
        "strategies": [strategy.text for strategy in settings.strategies],
        "warm_files": list(settings.warm_files) or None,
        "first": None if settings.first is None else [initial_to_json(point) for point in settings.first],
    }


def settings_of(row: RunRow) -> RunSettings:
    """Returns the settings of a run from its row, whose ``problem`` has to be loaded."""
    return RunSettings(
        problem=problem_of(row.problem),
        target=TargetName.parse(row.target),
        strategies=tuple(map(ChosenStrategy.parse, row.strategies)),
        warm_files=tuple(row.warm_files or ()),
        first=None if row.first is None else tuple(initial_from_json(stored) for stored in row.first),
        **_copied(row, OF_SETTINGS),
    )


def run_of(row: RunRow) -> Run:
    """Returns a run, with machine, compiler and baseline, from a row that ``run_select`` has loaded."""
    campaign = None
    if row.campaign_id is not None:
        position = (row.member_number or 0, row.member_name or "", row.member_count or 1)
        campaign = CampaignPlace(row.campaign_id, *position)
    return Run(
        settings=settings_of(row),
        machine=machine_of(row.machine),
        compiler=compiler_of(row.environment),
        status=present_status(row.status, row.process),
        baseline=_baseline_of(row),
        elsewhere=json_value(RemoteMeasurement, row.elsewhere),
        roofline=roofline_of(row.roofline),
        reliability=_run_reliability(row),
        campaign=campaign,
        **_copied(row, OF_RUN),
    )


def _run_reliability(row: RunRow) -> Reliability:
    if row.unreliable:
        return unreliable(row.unreliable)
    if not TargetName.parse(row.target).has_machine:
        return REPLAYED
    if row.noise is None:
        return NO_ROUND
    return RELIABLE


def measurement_columns(measurement: Measurement) -> dict[str, Any]:
    """Returns column -> value of the table ``measurement``, without owner, kind, round and baseline columns.

    Raises ValueError for times that are not finite.
    """
    low_s, high_s = measurement.interval_s
    cold_s = () if measurement.cold_median_s is None else (measurement.cold_median_s,)
    if not all(map(math.isfinite, (*measurement.samples_s, measurement.median_s, low_s, high_s, *cold_s))):
        raise ValueError(f"measurement: found {measurement}, allowed finite seconds")
    return _copied(measurement, OF_MEASUREMENT) | {
        "samples_s": list(measurement.samples_s),
        "low_s": low_s,
        "high_s": high_s,
        "conditions": encode(measurement.conditions),
        "host": encode(measurement.host),
        "offsets": encode(measurement.offsets) or None,
    }


def measurement_of(row: MeasurementRow) -> Measurement:
    """Returns the measurement that is stored in a row; impossible times are not checked."""
    return Measurement(
        samples_s=tuple(row.samples_s),
        interval_s=(row.low_s, row.high_s),
        conditions=json_value(Conditions, row.conditions),
        host=json_value(HostConditions, row.host),
        offsets=json_value(tuple[OffsetTime, ...], row.offsets) or (),
        **_copied(row, OF_MEASUREMENT),
    )


def time_of(row: MeasurementRow) -> Measurement | Failure:
    """Returns the measurement that is stored in a row.

    A Failure at stage MEASURE if its times are impossible.
    """
    measurement = measurement_of(row)
    refusal = why_not_seconds(measurement)
    if refusal is not None:
        return Failure(Stage.MEASURE, refusal.text)
    return measurement


def outcome_columns(record: Record, finished: datetime.datetime) -> dict[str, Any]:
    """Returns column -> value of the table ``trial`` for an outcome; ``finished``: when it was complete."""
    verdict = record.correct_verdict
    failure = record.outcome if isinstance(record.outcome, Failure) else None
    return {
        "finished": finished,
        "status": record.status,
        "stage": None if failure is None else failure.stage.value,
        "reason": None if failure is None else failure.reason,
        **(dict.fromkeys(OF_VERDICT) if verdict is None else _copied(verdict, OF_VERDICT)),
        "notes": None if verdict is None or not verdict.notes else list(verdict.notes),
        "stage_s": [list(pair) for pair in record.stage_s],
        "script_sha256": record.script_sha256 or None,
        "artifact_sha256": record.artifact_sha256 or None,
        "reused_from_id": record.reused_from,
    }


def trial_of(
    row: TrialRow,
    first: MeasurementRow | None,
    final: MeasurementRow | None,
    quietest_reference_s: float | None = None,
) -> StoredTrial:
    """Returns a trial with an outcome from its row and its first and final measurement (None: no such time).

    ``quietest_reference_s``: least seconds of the run's reference kernel, which shows how quiet the machine
    was; None: unknown.
    """
    final_time = None if final is None else time_of(final)
    counted = final_time if isinstance(final_time, Measurement) else None
    record = _record_of(row, first)
    text = "" if row.script is None else row.script.text
    return StoredTrial(
        id=row.id,
        run=row.run_id,
        number=row.number,
        row=row.row,
        record=record,
        final=counted,
        stored_script=text,
        created=row.proposed,
        machine=machine_of(row.run.machine),
        threads=row.run.threads,
        stale=row.stale or "",
        reliability=_reliability(row, record, counted, quietest_reference_s),
        compile_seconds=json_value(CompileSeconds, row.compile_s),
        is_altered=record.script_sha256 != ("" if row.script is None else script_sha256(text)),
    )


def script_sha256(text: str) -> str:
    """Returns the SHA-256 (hex) of a script's text, under which it is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _reliability(
    row: TrialRow, record: Record, final: Measurement | None, quietest_reference_s: float | None
) -> Reliability:
    run = row.run
    first = record.outcome
    if not record.target.has_machine:
        return REPLAYED
    if final is not None:
        return reliability_in_round((final,), Evidence(True, run.noise, _run_reliability(run)))
    if not isinstance(first, Measurement):
        return NOT_TIMED
    if run.round == 0 and run.noise is None and run.unreliable:  # all its rounds were lost
        return unreliable(run.unreliable)
    if not first.is_complete:
        return unknown("stopped early, the time is a lower bound")
    spare_cores = run.machine.physical_cores - run.threads
    return reliability_alone(first.host, quietest_reference_s=quietest_reference_s, spare_cores=spare_cores)


def candidate_of(row: TrialRow) -> Candidate:
    """Returns the candidate of a trial from its row. Raises UsageError for damaged knobs."""
    return candidate_from_json(row.strategy, row.knobs)


def _record_of(row: TrialRow, first: MeasurementRow | None) -> Record:
    verdict = None
    if row.elements is not None:
        max_error = math.nan if row.max_error is None else row.max_error  # SQLite stores NaN as NULL
        verdict = Verdict(max_error, row.elements, tuple(row.notes or ()))
    outcome: Measurement | Verdict | Failure
    if first is not None:
        outcome = time_of(first)
    elif row.status == "verified" and verdict is not None:
        outcome = verdict
    else:
        outcome = Failure(Stage(row.stage), row.reason or "")
    return Record(
        problem=problem_of(row.run.problem),
        candidate=candidate_of(row),
        target=TargetName.parse(row.run.target),
        outcome=outcome,
        script_sha256=row.script_sha256 or "",
        artifact_sha256=row.artifact_sha256 or "",
        stage_s=tuple((stage, seconds) for stage, seconds in row.stage_s),
        reused_from=row.reused_from_id,
        verdict=None if isinstance(outcome, Verdict) else verdict,
        resources=tuple(resources_of(kernel) for kernel in row.resources),
    )


def _baseline_of(row: RunRow) -> Baseline | None:
    time = next((baseline for baseline in row.baselines if baseline.round == row.round), None)
    if time is None or row.baseline_name is None or row.baseline_threads is None:
        return None
    measurement = time_of(time)
    if isinstance(measurement, Failure):
        return None
    libraries = json_value(tuple[LibraryTime, ...], time.libraries) or ()
    return Baseline(row.baseline_name, row.baseline_threads, measurement, time.is_interleaved, libraries)


def roofline_of(stored: object) -> Roofline | None:
    """Returns the roofline of a JSON column; None for NULL, and if its numbers are impossible."""
    roofline = json_value(Roofline, stored)
    return None if roofline is None or why_no_roofline(roofline, math.inf) else roofline


def _content_sha256(value: Machine | Compiler) -> str:
    # Fields added later have a default, and count only with another value: hashes of older rows stay valid
    defaults = {attribute.name: repr(attribute.default) for attribute in fields(value)}
    content = {name: field for name, field in asdict(value).items() if repr(field) != defaults[name]}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
