"""Alembic's way in, the same for every service's scripts: they run over the connection that `migrate` hands over."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table_schema=given["schema"])
with context.begin_transaction():
    context.run_migrations()
