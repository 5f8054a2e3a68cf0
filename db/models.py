"""The tables. Objects of these classes stay inside this package; the store takes and returns values.

problem, machine, environment, script   shared by runs and trials, each stored once
run ─< trial ─< measurement             a run also owns the measurements of its baseline
run ─< timing_round                     a measurement refers to its round by the round's number
artifact ─< resources                   a GPU program under its hash, which trials refer to, and its kernels
campaign ─< run                         problems that were tuned under one budget
fleet_...                               exchanged between runs and the nodes of a fleet: tuner.elsewhere.fleet
"""

import datetime
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from tuner.db.columns import Compressed, PlainText, UtcDateTime

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite increments INTEGER keys only
JSON_OR_NULL = sa.JSON(none_as_null=True)

FIRST = "first"  # kinds of measurement: when a trial ran,
FINAL = "final"  # in the final re-measurement, interleaved,
BASELINE = "baseline"  # and of the baseline of a run


class Base(DeclarativeBase):
    """Base class of all tables. Names every constraint: a migration can change a constraint by its name."""

    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar = {
        str: PlainText(),
        int: sa.BigInteger(),
        float: sa.Double(),
        datetime.datetime: UtcDateTime(),
    }


class ProblemRow(Base):
    """A row of the table ``problem``: an operation at one size, with its dtype, layout and epilogue."""

    __tablename__ = "problem"

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)  # Problem.key
    operation: Mapped[str]
    shape: Mapped[str] = mapped_column(index=True)  # 512x512x512
    dtype: Mapped[str]
    layout: Mapped[str]
    epilogue: Mapped[str]
    output: Mapped[str] = mapped_column(server_default=sa.text("''"))  # "": the natural type of C
    align: Mapped[str] = mapped_column(server_default=sa.text("'16'"))  # bytes, or "any"
    cache: Mapped[str] = mapped_column(server_default=sa.text("'warm'"))  # Problem.cache
    weights: Mapped[str] = mapped_column(server_default=sa.text("''"))  # Problem.weights
    fusion: Mapped[str] = mapped_column(server_default=sa.text("''"))  # FusedProblem.text
    facts: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON)  # FusedProblem.facts


class MachineRow(Base):
    """A row of the table ``machine``: the description of a machine; the columns are the fields of Machine."""

    __tablename__ = "machine"

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    content_sha256: Mapped[str] = mapped_column(unique=True)  # of all fields
    name: Mapped[str] = mapped_column(index=True)  # equal names: comparable times
    processor: Mapped[str]
    isa: Mapped[str]
    has_bf16: Mapped[bool]
    physical_cores: Mapped[int]
    logical_cores: Mapped[int]
    l1_bytes: Mapped[int]
    l2_bytes: Mapped[int]
    l3_bytes: Mapped[int]
    memory_bytes: Mapped[int]
    chip: Mapped[str] = mapped_column(server_default=sa.text("''"))  # of a GPU
    has_vnni: Mapped[bool] = mapped_column(server_default=sa.false())
    has_amx_bf16: Mapped[bool] = mapped_column(server_default=sa.false())
    has_amx_int8: Mapped[bool] = mapped_column(server_default=sa.false())
    has_dotprod: Mapped[bool] = mapped_column(server_default=sa.false())
    has_i8mm: Mapped[bool] = mapped_column(server_default=sa.false())
    has_arm_bf16: Mapped[bool] = mapped_column(server_default=sa.false())


class EnvironmentRow(Base):
    """A row of the table ``environment``: the compiler of a run; the columns are the fields of Compiler."""

    __tablename__ = "environment"

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    content_sha256: Mapped[str] = mapped_column(unique=True)  # of all fields
    fingerprint: Mapped[str] = mapped_column(index=True)  # Compiler.fingerprint
    tools: Mapped[str] = mapped_column(index=True, server_default="")  # Compiler.tools
    mlir: Mapped[str]
    packages: Mapped[list[Any]] = mapped_column(sa.JSON)  # [[distribution, version], ...]
    pipeline_sha256: Mapped[str]
    verifier: Mapped[str] = mapped_column(server_default="")


class ScriptRow(Base):
    """A row of the table ``script``: the text of a bound transform script, stored once under its SHA-256."""

    __tablename__ = "script"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str]


class ArtifactRow(Base):
    """A row of the table ``artifact``: the code of a device under its hash. The host's code is not stored."""

    __tablename__ = "artifact"

    sha256: Mapped[str] = mapped_column(primary_key=True)  # of machine code and launches; Artifact.sha256
    chip: Mapped[str]
    text: Mapped[bytes] = mapped_column(Compressed())  # UTF-8
    binary: Mapped[bytes] = mapped_column(Compressed())  # b"": nothing assembled the text
    launches: Mapped[list[Any]] = mapped_column(sa.JSON)  # fields of Launch, in order
    buffers: Mapped[list[Any]] = mapped_column(sa.JSON)  # fields of KernelBuffer

    resources: Mapped[list["ResourcesRow"]] = relationship(lazy="raise", order_by="ResourcesRow.place")


class ResourcesRow(Base):
    """A row of the table ``resources``: the assembler's report on one kernel (fields of Resources)."""

    __tablename__ = "resources"
    __table_args__ = (UniqueConstraint("artifact_sha256", "place"),)

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    artifact_sha256: Mapped[str] = mapped_column(ForeignKey("artifact.sha256"))
    place: Mapped[int]  # among the kernels of the artifact
    kernel: Mapped[str]
    registers: Mapped[int]
    spill_store_bytes: Mapped[int]
    spill_load_bytes: Mapped[int]
    static_shared_bytes: Mapped[int]
    dynamic_shared_bytes: Mapped[int]
    stack_bytes: Mapped[int]
    occupancy: Mapped[float]
    blocks_per_multiprocessor: Mapped[int]
    notes: Mapped[list[Any]] = mapped_column(sa.JSON)  # lines of the assembler


class CampaignRow(Base):
    """A row of the table ``campaign``: many problems under one budget, each a row of ``run``."""

    __tablename__ = "campaign"

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    uuid: Mapped[str] = mapped_column(unique=True)  # the same in every database that it is merged into
    created: Mapped[datetime.datetime] = mapped_column(index=True)
    source: Mapped[str]  # name of the file with the problems
    trials: Mapped[int | None]  # budget of all runs
    budget_s: Mapped[float | None]
    seed: Mapped[int]
    columns: Mapped[list[Any]] = mapped_column(sa.JSON)  # [{"strategy", "knobs"}, ...], unprojected
    floors_s: Mapped[list[Any] | None] = mapped_column(JSON_OR_NULL)  # [seconds, ...], one for each run
    program: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of ProgramSource; NULL: none
    program_result: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of ProgramResult
    status: Mapped[str]  # as stored: tuner.db.run_process
    process: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of RunProcess
    seconds: Mapped[float]  # of all sessions
    search_s: Mapped[float]  # of these what counts for the budget


class RunRow(Base):
    """A row of the table ``run``: one tuning run with its settings, machine, compiler and progress."""

    __tablename__ = "run"

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    uuid: Mapped[str] = mapped_column(unique=True)  # the same in every database that the run is merged into
    created: Mapped[datetime.datetime] = mapped_column(index=True)
    problem_id: Mapped[int] = mapped_column(ForeignKey("problem.id"), index=True)
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id"), index=True)
    environment_id: Mapped[int] = mapped_column(ForeignKey("environment.id"), index=True)
    target: Mapped[str]
    threads: Mapped[int]
    strategies: Mapped[list[Any]] = mapped_column(sa.JSON)  # [ChosenStrategy.text, ...]
    space_yaml: Mapped[str]
    sampler: Mapped[str]
    seed: Mapped[int]
    trials: Mapped[int | None]  # budget
    budget_s: Mapped[float | None]
    workers: Mapped[int]
    fresh: Mapped[bool]
    warm_start: Mapped[bool] = mapped_column(server_default=sa.false())
    warm_files: Mapped[list[Any] | None] = mapped_column(JSON_OR_NULL)  # [path, ...]
    first: Mapped[list[Any] | None] = mapped_column(JSON_OR_NULL)  # fields of InitialConfiguration
    prior: Mapped[str] = mapped_column(server_default=sa.text("''"), default="")  # as RunSettings.prior
    recording: Mapped[str] = mapped_column(server_default=sa.text("''"), default="")
    baseline_library: Mapped[str] = mapped_column(server_default=sa.text("''"), default="")  # as chosen
    elsewhere: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of RemoteMeasurement
    tuner_version: Mapped[str]
    load_average: Mapped[float | None]
    status: Mapped[str]  # as stored: tuner.db.run_process
    process: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of RunProcess
    seconds: Mapped[float | None]
    noise: Mapped[float | None]
    search_s: Mapped[float | None]
    idle_s: Mapped[float | None]
    baseline_name: Mapped[str | None]
    baseline_threads: Mapped[int | None]
    roofline: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of Roofline
    round: Mapped[int] = mapped_column(server_default=sa.text("0"), default=0)  # the round whose times count
    unreliable: Mapped[str] = mapped_column(server_default=sa.text("''"), default="")  # of that round
    campaign_id: Mapped[int | None] = mapped_column(index=True)  # no foreign key: migration 0029
    member_number: Mapped[int | None]  # of CampaignPlace, as the next two
    member_name: Mapped[str | None]
    member_count: Mapped[int | None]

    problem: Mapped[ProblemRow] = relationship(lazy="raise")
    machine: Mapped[MachineRow] = relationship(lazy="raise")
    environment: Mapped[EnvironmentRow] = relationship(lazy="raise")
    baselines: Mapped[list["MeasurementRow"]] = relationship(lazy="raise")  # one per round
    rounds: Mapped[list["TimingRoundRow"]] = relationship(lazy="raise", order_by="TimingRoundRow.number")


class TrialRow(Base):
    """A row of the table ``trial``: a proposed candidate, and its outcome; until then ``status`` is NULL."""

    __tablename__ = "trial"
    __table_args__ = (UniqueConstraint("run_id", "number"), sa.Index(None, "run_id", "ranked_s"))

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"))
    number: Mapped[int]  # in the order of proposals
    row: Mapped[int]  # index of the candidate in the run's feasible set
    strategy: Mapped[str] = mapped_column(index=True)
    knobs: Mapped[dict[str, Any]] = mapped_column(sa.JSON)
    proposed: Mapped[datetime.datetime] = mapped_column(index=True)
    finished: Mapped[datetime.datetime | None]
    status: Mapped[str | None]  # measured, verified, failed
    stage: Mapped[str | None]  # of a failure
    reason: Mapped[str | None]
    max_error: Mapped[float | None]  # of the verdict, when there is one
    elements: Mapped[int | None]
    notes: Mapped[list[Any] | None] = mapped_column(JSON_OR_NULL)  # of the verdict
    stage_s: Mapped[list[Any]] = mapped_column(sa.JSON, default=list)  # [[stage, seconds], ...]
    script_sha256: Mapped[str | None] = mapped_column(ForeignKey("script.sha256"), index=True)
    artifact_sha256: Mapped[str | None] = mapped_column(index=True)
    reused_from_id: Mapped[int | None] = mapped_column(ForeignKey("trial.id"), index=True)
    ranked_s: Mapped[float | None]  # tuner.db.queries; NULL: not timed, early-stopped, or stale
    stale: Mapped[str | None]  # why its time no longer holds
    compile_s: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of CompileSeconds
    campaign_number: Mapped[int | None]  # in the order of proposals of the run's campaign
    unprojected: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # knobs before the projection

    run: Mapped[RunRow] = relationship(lazy="raise")
    script: Mapped[ScriptRow | None] = relationship(lazy="raise")
    measurements: Mapped[list["MeasurementRow"]] = relationship(lazy="raise")
    resources: Mapped[list[ResourcesRow]] = relationship(
        lazy="raise",
        primaryjoin=lambda: TrialRow.artifact_sha256 == sa.orm.foreign(ResourcesRow.artifact_sha256),
        order_by=ResourcesRow.place,
        viewonly=True,  # trials of CPUs have a hash as well, but no stored artifact
    )


class TimingRoundRow(Base):
    """A row of the table ``timing_round``: one final re-measurement of a run's top trials."""

    __tablename__ = "timing_round"
    __table_args__ = (UniqueConstraint("run_id", "number"),)

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"))
    number: Mapped[int]  # 0: of an older version of the tuner
    started: Mapped[datetime.datetime]
    of_trials: Mapped[int] = mapped_column(server_default=sa.text("0"), default=0)  # that the run had then
    noise: Mapped[float | None]
    disturbance: Mapped[float]
    unreliable: Mapped[str]  # why; "" for a reliable round
    is_lost: Mapped[bool] = mapped_column(server_default=sa.false(), default=False)  # the round gave no times
    host: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of HostConditions
    baseline_name: Mapped[str | None]
    baseline_threads: Mapped[int | None]


class MeasurementRow(Base):
    """A row of the table ``measurement``: the times of one trial, or of the baseline of one run."""

    __tablename__ = "measurement"
    __table_args__ = (
        UniqueConstraint("trial_id", "kind", "round"),
        UniqueConstraint("run_id", "round"),
        sa.CheckConstraint("(trial_id IS NULL) <> (run_id IS NULL)", name="one_owner"),
    )

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    trial_id: Mapped[int | None] = mapped_column(ForeignKey("trial.id"))
    run_id: Mapped[int | None] = mapped_column(ForeignKey("run.id"))
    kind: Mapped[str]
    samples_s: Mapped[list[Any]] = mapped_column(sa.JSON)  # [seconds, ...]: JSON keeps every bit of a double
    inner_calls: Mapped[int]
    median_s: Mapped[float]
    low_s: Mapped[float]  # 95 % interval of the median
    high_s: Mapped[float]
    is_complete: Mapped[bool]
    cold_median_s: Mapped[float | None]  # of single calls after a flush of the GPU's cache
    conditions: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of Conditions
    round: Mapped[int] = mapped_column(server_default=sa.text("0"), default=0)  # 0: none, or an older tuner's
    is_interleaved: Mapped[bool] = mapped_column(server_default=sa.false(), default=False)  # for baselines
    host: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # of HostConditions
    offsets: Mapped[list[Any] | None] = mapped_column(JSON_OR_NULL)  # of OffsetTime
    libraries: Mapped[list[Any] | None] = mapped_column(JSON_OR_NULL)  # of LibraryTime: for chosen baselines


class FleetSettingRow(Base):
    """A row of the table ``fleet_setting``: a setting that all drivers and nodes of a fleet share."""

    __tablename__ = "fleet_setting"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class FleetNodeRow(Base):
    """A row of the table ``fleet_node``: a process that compiles or measures for other processes' runs."""

    __tablename__ = "fleet_node"

    name: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    process: Mapped[int]  # id on its host
    target: Mapped[str]  # for which the node works
    slots: Mapped[int] = mapped_column("seats")  # candidates compiled at once; 0: it compiles nothing
    device: Mapped[str]  # that it measures on; "": it measures nothing
    machine: Mapped[dict[str, Any]] = mapped_column(sa.JSON)  # fields of Machine
    fingerprint: Mapped[str]  # Compiler.fingerprint
    tuner_version: Mapped[str]
    started: Mapped[datetime.datetime]
    seen: Mapped[datetime.datetime]  # its last heartbeat
    drains: Mapped[bool]  # it was asked to end after its current work
    cpu_share: Mapped[float | None]  # of one processor, used by its own process since the previous heartbeat
    wakeups_per_s: Mapped[float | None]  # of its own process


class FleetOutcomeRow(Base):
    """A row of the table ``fleet_outcome``: the outcome of work (compile, measure) that a fleet node did."""

    __tablename__ = "fleet_outcome"

    run: Mapped[str] = mapped_column(primary_key=True)  # uuid
    number: Mapped[int] = mapped_column(primary_key=True)  # of the trial; negative: work outside of trials
    stage: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]] = mapped_column(sa.JSON)
    node: Mapped[str]
    reported: Mapped[datetime.datetime] = mapped_column("told")


class FleetBlobRow(Base):
    """A row of the table ``fleet_blob``: the bytes of a script or compiled artifact, under their SHA-256."""

    __tablename__ = "fleet_blob"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[bytes] = mapped_column(Compressed())
    stored: Mapped[datetime.datetime] = mapped_column(index=True)


class FleetWorkRow(Base):
    """A row of the table ``fleet_work``: when and on which node one attempt at a piece of work ran."""

    __tablename__ = "fleet_work"

    id: Mapped[int] = mapped_column(ID, primary_key=True)
    run: Mapped[str] = mapped_column(index=True)
    number: Mapped[int]
    stage: Mapped[str]
    node: Mapped[str]
    device: Mapped[str]  # "" for work that needs no device
    began: Mapped[datetime.datetime] = mapped_column(index=True)
    ended: Mapped[datetime.datetime]
    timed_from: Mapped[datetime.datetime | None]  # while nothing else ran on the device
    timed_until: Mapped[datetime.datetime | None]
