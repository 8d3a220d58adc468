"""Runs the shop's and the help centre's migrations over the connection that set-up hands in."""

from alembic import context

config = context.config
context.configure(
    connection=config.attributes["connection"],
    version_table_schema=config.attributes.get("schema", "shop"),
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
