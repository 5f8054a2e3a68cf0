"""Alembic's entry point: migrates over the connection that ``tuner.db.database`` passes."""

from alembic import context

from tuner.db.models import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
with context.begin_transaction():
    context.run_migrations()
