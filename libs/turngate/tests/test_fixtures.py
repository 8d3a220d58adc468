"""The servers that every other test is given."""

import nats
import psycopg
from turngate.testing import Database, NatsAccess


def test_the_embedded_postgres_knows_the_vector_type(postgres: Database) -> None:
    with psycopg.connect(postgres.owner) as connection:
        assert connection.execute("select '[1,2]'::vector <-> '[1,3]'::vector").fetchone() == (1.0,)


def test_each_service_enters_as_its_own_role(postgres: Database) -> None:
    for service, role in {
        "agent-runner": "turngate_runner",
        "tools-shop": "turngate_tools",
        "gateway": "turngate_gateway",
    }.items():
        with psycopg.connect(postgres.of(service)) as connection:
            assert connection.execute("select current_user").fetchone() == (role,)


def test_a_fresh_database_is_empty_again(fresh_database: Database) -> None:
    with psycopg.connect(fresh_database.owner) as connection:
        connection.execute("create table desk.left_over (n int)")


async def test_each_service_has_its_own_user(nats_server: NatsAccess) -> None:
    user, password = nats_server.user("policy")
    client = await nats.connect(nats_server.url, user=user, password=password)
    assert client.is_connected
    await client.close()
