"""All tables of 0.1.0."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up INTEGER keys only
INTEGER = sa.BigInteger()
BOOLEAN = sa.Boolean()
REAL: sa.Double[float] = sa.Double()
TEXT = sa.Text()
JSON = sa.JSON()
BYTES = sa.LargeBinary()
MOMENT = sa.DateTime(timezone=True)
EMPTY = sa.text("''")
ZERO = sa.text("0")

TABLES = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def upgrade() -> None:
    """Creates all tables of version 0.1.0."""
    TABLES.create_all(op.get_bind())


def downgrade() -> None:
    """Drops all tables of version 0.1.0, with their content."""
    TABLES.drop_all(op.get_bind())


def required(name: str, kind: Any, *references: Any, **words: Any) -> sa.Column[Any]:
    """Returns a column that cannot be NULL; ``words`` are keyword arguments of ``sqlalchemy.Column``."""
    return sa.Column(name, kind, *references, nullable=False, **words)


def key(name: str = "id", kind: Any = ID) -> sa.Column[Any]:
    """Returns a primary key column, by default the integer ``id``."""
    return required(name, kind, primary_key=True)


sa.Table(
    "problem",
    TABLES,
    key(),
    required("key", TEXT, unique=True),
    required("operation", TEXT),
    required("shape", TEXT, index=True),
    required("dtype", TEXT),
    required("layout", TEXT),
    required("epilogue", TEXT),
    required("output", TEXT, server_default=EMPTY),
    required("align", TEXT, server_default="16"),
    required("cache", TEXT, server_default="warm"),
    required("fusion", TEXT, server_default=EMPTY),
    required("weights", TEXT, server_default=EMPTY),
    sa.Column("facts", JSON),
)
sa.Table(
    "machine",
    TABLES,
    key(),
    required("content_sha256", TEXT, unique=True),
    required("name", TEXT, index=True),
    required("processor", TEXT),
    required("isa", TEXT),
    required("has_bf16", BOOLEAN),
    required("physical_cores", INTEGER),
    required("logical_cores", INTEGER),
    required("l1_bytes", INTEGER),
    required("l2_bytes", INTEGER),
    required("l3_bytes", INTEGER),
    required("memory_bytes", INTEGER),
    required("chip", TEXT, server_default=EMPTY),
    required("has_vnni", BOOLEAN, server_default=sa.false()),
    required("has_amx_bf16", BOOLEAN, server_default=sa.false()),
    required("has_amx_int8", BOOLEAN, server_default=sa.false()),
)
sa.Table(
    "environment",
    TABLES,
    key(),
    required("content_sha256", TEXT, unique=True),
    required("fingerprint", TEXT, index=True),
    required("tools", TEXT, index=True, server_default=EMPTY),
    required("mlir", TEXT),
    required("packages", JSON),
    required("pipeline_sha256", TEXT),
    required("verifier", TEXT, server_default=EMPTY),
)
sa.Table("script", TABLES, key("sha256", TEXT), required("text", TEXT))
sa.Table(
    "artifact",
    TABLES,
    key("sha256", TEXT),
    required("chip", TEXT),
    required("text", BYTES),
    required("binary", BYTES),
    required("launches", JSON),
    required("buffers", JSON),
)
sa.Table(
    "resources",
    TABLES,
    key(),
    required("artifact_sha256", TEXT, sa.ForeignKey("artifact.sha256")),
    required("place", INTEGER),
    required("kernel", TEXT),
    required("registers", INTEGER),
    required("spill_store_bytes", INTEGER),
    required("spill_load_bytes", INTEGER),
    required("static_shared_bytes", INTEGER),
    required("dynamic_shared_bytes", INTEGER),
    required("stack_bytes", INTEGER),
    required("occupancy", REAL),
    required("blocks_per_multiprocessor", INTEGER),
    required("notes", JSON),
    sa.UniqueConstraint("artifact_sha256", "place"),
)
sa.Table(
    "run",
    TABLES,
    key(),
    required("uuid", TEXT, unique=True),
    required("created", MOMENT, index=True),
    required("problem_id", ID, sa.ForeignKey("problem.id"), index=True),
    required("machine_id", ID, sa.ForeignKey("machine.id"), index=True),
    required("environment_id", ID, sa.ForeignKey("environment.id"), index=True),
    required("target", TEXT),
    required("threads", INTEGER),
    required("strategies", JSON),
    required("space_yaml", TEXT),
    required("recording", TEXT, server_default=EMPTY),
    required("prior", TEXT, server_default=EMPTY),
    required("sampler", TEXT),
    required("seed", INTEGER),
    sa.Column("trials", INTEGER),
    sa.Column("budget_s", REAL),
    required("workers", INTEGER),
    required("fresh", BOOLEAN),
    required("warm_start", BOOLEAN, server_default=sa.false()),
    sa.Column("warm_files", JSON),
    sa.Column("first", JSON),
    sa.Column("elsewhere", JSON),
    required("tuner_version", TEXT),
    sa.Column("load_average", REAL),
    required("status", TEXT),
    sa.Column("seconds", REAL),
    sa.Column("noise", REAL),
    sa.Column("search_s", REAL),
    sa.Column("idle_s", REAL),
    sa.Column("baseline_name", TEXT),
    sa.Column("baseline_threads", INTEGER),
    sa.Column("roofline", JSON),
    required("round", INTEGER, server_default=ZERO),
    required("unreliable", TEXT, server_default=EMPTY),
    required("baseline_library", TEXT, server_default=EMPTY),
    # no foreign key: SQLite could neither add nor drop it without a copy of the table
    sa.Column("campaign_id", INTEGER, index=True),
    sa.Column("member_number", INTEGER),
    sa.Column("member_name", TEXT),
    sa.Column("member_count", INTEGER),
    sa.Column("process", JSON),
)
sa.Table(
    "campaign",
    TABLES,
    key(),
    required("uuid", TEXT, unique=True),
    required("created", MOMENT, index=True),
    required("source", TEXT),
    sa.Column("trials", INTEGER),
    sa.Column("budget_s", REAL),
    required("seed", INTEGER),
    required("columns", JSON),
    required("status", TEXT),
    required("seconds", REAL),
    required("search_s", REAL),
    sa.Column("floors_s", JSON),
    sa.Column("program", JSON),
    sa.Column("program_result", JSON),
    sa.Column("process", JSON),
)
sa.Table(
    "trial",
    TABLES,
    key(),
    required("run_id", ID, sa.ForeignKey("run.id")),
    required("number", INTEGER),
    required("row", INTEGER),
    required("strategy", TEXT, index=True),
    required("knobs", JSON),
    required("proposed", MOMENT, index=True),
    sa.Column("finished", MOMENT),
    sa.Column("status", TEXT),
    sa.Column("stage", TEXT),
    sa.Column("reason", TEXT),
    sa.Column("max_error", REAL),
    sa.Column("elements", INTEGER),
    sa.Column("notes", JSON),
    required("stage_s", JSON),
    sa.Column("script_sha256", TEXT, sa.ForeignKey("script.sha256"), index=True),
    sa.Column("artifact_sha256", TEXT, index=True),
    sa.Column("reused_from_id", ID, sa.ForeignKey("trial.id"), index=True),
    sa.Column("ranked_s", REAL),
    sa.Column("stale", TEXT),
    sa.Column("compile_s", JSON),
    sa.Column("campaign_number", INTEGER),
    sa.Column("unprojected", JSON),
    sa.UniqueConstraint("run_id", "number"),
    sa.Index(None, "run_id", "ranked_s"),
)
sa.Table(
    "timing_round",
    TABLES,
    key(),
    required("run_id", ID, sa.ForeignKey("run.id")),
    required("number", INTEGER),
    required("started", MOMENT),
    required("of_trials", INTEGER, server_default=ZERO),
    sa.Column("noise", REAL),
    required("disturbance", REAL),
    required("unreliable", TEXT),
    required("is_lost", BOOLEAN, server_default=sa.false()),
    sa.Column("host", JSON),
    sa.Column("baseline_name", TEXT),
    sa.Column("baseline_threads", INTEGER),
    sa.UniqueConstraint("run_id", "number"),
)
sa.Table(
    "measurement",
    TABLES,
    key(),
    sa.Column("trial_id", ID, sa.ForeignKey("trial.id")),
    sa.Column("run_id", ID, sa.ForeignKey("run.id")),
    required("kind", TEXT),
    required("samples_s", JSON),
    required("inner_calls", INTEGER),
    required("median_s", REAL),
    required("low_s", REAL),
    required("high_s", REAL),
    required("is_complete", BOOLEAN),
    sa.Column("cold_median_s", REAL),
    sa.Column("conditions", JSON),
    required("round", INTEGER, server_default=ZERO),
    required("is_interleaved", BOOLEAN, server_default=sa.false()),
    sa.Column("host", JSON),
    sa.Column("offsets", JSON),
    sa.Column("libraries", JSON),
    sa.UniqueConstraint("trial_id", "kind", "round"),
    sa.UniqueConstraint("run_id", "round"),
    sa.CheckConstraint("(trial_id IS NULL) <> (run_id IS NULL)", name="one_owner"),
)
sa.Table("fleet_setting", TABLES, key("name", TEXT), required("value", TEXT))
sa.Table(
    "fleet_node",
    TABLES,
    key("name", TEXT),
    required("host", TEXT),
    required("process", INTEGER),
    required("target", TEXT),
    required("seats", INTEGER),
    required("device", TEXT),
    required("machine", JSON),
    required("fingerprint", TEXT),
    required("tuner_version", TEXT),
    required("started", MOMENT),
    required("seen", MOMENT),
    required("drains", BOOLEAN),
    sa.Column("cpu_share", REAL),
    sa.Column("wakeups_per_s", REAL),
)
sa.Table(
    "fleet_outcome",
    TABLES,
    key("run", TEXT),
    key("number", INTEGER),
    key("stage", TEXT),
    required("body", JSON),
    required("node", TEXT),
    required("told", MOMENT),
)
sa.Table(
    "fleet_blob", TABLES, key("sha256", TEXT), required("body", BYTES), required("stored", MOMENT, index=True)
)
sa.Table(
    "fleet_work",
    TABLES,
    key(),
    required("run", TEXT, index=True),
    required("number", INTEGER),
    required("stage", TEXT),
    required("node", TEXT),
    required("device", TEXT),
    required("began", MOMENT, index=True),
    required("ended", MOMENT),
    sa.Column("timed_from", MOMENT),
    sa.Column("timed_until", MOMENT),
)
