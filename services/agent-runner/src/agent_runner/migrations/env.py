"""Alembic's way in: whoever runs the migrations hands over the connection and the schema."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table_schema=given["schema"])
with context.begin_transaction():
    context.run_migrations()
