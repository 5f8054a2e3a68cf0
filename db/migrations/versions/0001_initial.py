"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up INTEGER keys only


def upgrade() -> None:
    _create_environment()
    _create_machine()
    _create_problem()
    _create_script()
    _create_run()
    _create_trial()
    _create_measurement()


def downgrade() -> None:
    for table in ("measurement", "trial", "run", "script", "problem", "machine", "environment"):
        op.drop_table(table)


def _create_environment() -> None:
    op.create_table(
        "environment",
        sa.Column("id", ID, nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("mlir", sa.Text(), nullable=False),
        sa.Column("packages", sa.JSON(), nullable=False),
        sa.Column("pipeline_sha256", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environment"),
        sa.UniqueConstraint("content_sha256", name="uq_environment_content_sha256"),
    )
    op.create_index("ix_environment_fingerprint", "environment", ["fingerprint"])


def _create_machine() -> None:
    op.create_table(
        "machine",
        sa.Column("id", ID, nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("processor", sa.Text(), nullable=False),
        sa.Column("isa", sa.Text(), nullable=False),
        sa.Column("has_bf16", sa.Boolean(), nullable=False),
        sa.Column("physical_cores", sa.BigInteger(), nullable=False),
        sa.Column("logical_cores", sa.BigInteger(), nullable=False),
        sa.Column("l1_bytes", sa.BigInteger(), nullable=False),
        sa.Column("l2_bytes", sa.BigInteger(), nullable=False),
        sa.Column("l3_bytes", sa.BigInteger(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_machine"),
        sa.UniqueConstraint("content_sha256", name="uq_machine_content_sha256"),
    )
    op.create_index("ix_machine_name", "machine", ["name"])


def _create_problem() -> None:
    op.create_table(
        "problem",
        sa.Column("id", ID, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("shape", sa.Text(), nullable=False),
        sa.Column("dtype", sa.Text(), nullable=False),
        sa.Column("layout", sa.Text(), nullable=False),
        sa.Column("epilogue", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_problem"),
        sa.UniqueConstraint("key", name="uq_problem_key"),
    )
    op.create_index("ix_problem_shape", "problem", ["shape"])


def _create_script() -> None:
    op.create_table(
        "script",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_script"),
    )


def _create_run() -> None:
    op.create_table(
        "run",
        sa.Column("id", ID, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("problem_id", ID, nullable=False),
        sa.Column("machine_id", ID, nullable=False),
        sa.Column("environment_id", ID, nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("threads", sa.BigInteger(), nullable=False),
        sa.Column("strategies", sa.JSON(), nullable=False),
        sa.Column("space_yaml", sa.Text(), nullable=False),
        sa.Column("sampler", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("trials", sa.BigInteger(), nullable=True),
        sa.Column("budget_s", sa.Double(), nullable=True),
        sa.Column("workers", sa.BigInteger(), nullable=False),
        sa.Column("fresh", sa.Boolean(), nullable=False),
        sa.Column("tuner_version", sa.Text(), nullable=False),
        sa.Column("load_average", sa.Double(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("noise", sa.Double(), nullable=True),
        sa.Column("vendor_name", sa.Text(), nullable=True),
        sa.Column("vendor_threads", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"], name="fk_run_environment_id"),
        sa.ForeignKeyConstraint(["machine_id"], ["machine.id"], name="fk_run_machine_id"),
        sa.ForeignKeyConstraint(["problem_id"], ["problem.id"], name="fk_run_problem_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.UniqueConstraint("uuid", name="uq_run_uuid"),
    )
    op.create_index("ix_run_created", "run", ["created"])
    op.create_index("ix_run_environment_id", "run", ["environment_id"])
    op.create_index("ix_run_machine_id", "run", ["machine_id"])
    op.create_index("ix_run_problem_id", "run", ["problem_id"])


def _create_trial() -> None:
    op.create_table(
        "trial",
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("row", sa.BigInteger(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("knobs", sa.JSON(), nullable=False),
        sa.Column("proposed", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("max_error", sa.Double(), nullable=True),
        sa.Column("elements", sa.BigInteger(), nullable=True),
        sa.Column("stage_s", sa.JSON(), nullable=False),
        sa.Column("script_sha256", sa.Text(), nullable=True),
        sa.Column("artifact_sha256", sa.Text(), nullable=True),
        sa.Column("reused_from_id", ID, nullable=True),
        sa.ForeignKeyConstraint(["reused_from_id"], ["trial.id"], name="fk_trial_reused_from_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_trial_run_id"),
        sa.ForeignKeyConstraint(["script_sha256"], ["script.sha256"], name="fk_trial_script_sha256"),
        sa.PrimaryKeyConstraint("id", name="pk_trial"),
        sa.UniqueConstraint("run_id", "number", name="uq_trial_run_id_number"),
    )
    op.create_index("ix_trial_artifact_sha256", "trial", ["artifact_sha256"])
    op.create_index("ix_trial_proposed", "trial", ["proposed"])
    op.create_index("ix_trial_reused_from_id", "trial", ["reused_from_id"])
    op.create_index("ix_trial_script_sha256", "trial", ["script_sha256"])
    op.create_index("ix_trial_strategy", "trial", ["strategy"])


def _create_measurement() -> None:
    op.create_table(
        "measurement",
        sa.Column("id", ID, nullable=False),
        sa.Column("trial_id", ID, nullable=True),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("samples_s", sa.JSON(), nullable=False),
        sa.Column("inner_calls", sa.BigInteger(), nullable=False),
        sa.Column("median_s", sa.Double(), nullable=False),
        sa.Column("low_s", sa.Double(), nullable=False),
        sa.Column("high_s", sa.Double(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.CheckConstraint("(trial_id IS NULL) <> (run_id IS NULL)", name=op.f("ck_measurement_one_owner")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_measurement_run_id"),
        sa.ForeignKeyConstraint(["trial_id"], ["trial.id"], name="fk_measurement_trial_id"),
        sa.PrimaryKeyConstraint("id", name="pk_measurement"),
        sa.UniqueConstraint("run_id", name="uq_measurement_run_id"),
        sa.UniqueConstraint("trial_id", "kind", name="uq_measurement_trial_id_kind"),
    )
