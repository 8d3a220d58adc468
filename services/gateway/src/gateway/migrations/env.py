"""Alembic's entry: set-up hands over the owner's connection and the schema that holds the version table."""

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"], version_table_schema=attributes["schema"], transaction_per_migration=False
)
with context.begin_transaction():
    context.run_migrations()
