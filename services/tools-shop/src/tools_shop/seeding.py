"""Fills the shop and the help centre from `deploy/tenants`; run again, it only adds what is missing."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import psycopg
from contracts.addresses import comparable
from contracts.validation import explain
from psycopg import sql
from pydantic import ValidationError

from tools_shop import demo, help_centre
from tools_shop.demo import DemoShop, OrderEntry
from tools_shop.embedding import MODEL_ID, model
from tools_shop.toolsets.shop.issue_refund import intent_of, reference_of

Connection = psycopg.Connection[Any]


class InvalidShop(ValueError):
    """A demo shop that cannot be written; the message names the file and the field."""


def seed(owner_dsn: str, tenants_dir: Path) -> list[str]:
    """Seeds every tenant that has a `demo.yaml`, each in one transaction; returns their names.

    owner_dsn: of the schemas' owner, whom row-level security binds as well.
    """
    today = datetime.now(UTC).date()
    seeded = []
    with psycopg.connect(owner_dsn) as connection:
        for path in sorted(tenants_dir.glob("*/demo.yaml")):
            try:
                shop = demo.read(path)
            except ValidationError as error:
                raise InvalidShop(f"{path}: {explain(error)}") from None
            connection.execute("select set_config('turngate.tenant', %s, true)", [shop.tenant])
            write_shop(connection, shop, today)
            write_articles(connection, shop.tenant, path.parent / "help")
            connection.commit()
            seeded.append(shop.tenant)
    return seeded


def write_shop(connection: Connection, shop: DemoShop, today: date) -> None:
    with connection.pipeline():
        _write_shop(connection, shop, today)


def _write_shop(connection: Connection, shop: DemoShop, today: date) -> None:
    tenant = shop.tenant

    def add(table: str, *rows: Sequence[object]) -> None:
        for row in rows:
            statement = "insert into shop.{} values ({}) on conflict do nothing"
            values = sql.SQL(", ").join([sql.Placeholder()] * (len(row) + 1))
            connection.execute(sql.SQL(statement).format(sql.Identifier(table), values), [tenant, *row])

    add("tenants", [shop.name, shop.currency, shop.timezone, shop.floor_minor, shop.refund_window_days])
    add("customers", *([one.id, one.name, one.email, comparable(one.email)] for one in shop.customers))
    for order in shop.orders:
        money = order.currency or shop.currency
        add("orders", [order.reference, order.customer, money, order.status, order.delivery_minor,
                       _moment(today, order.placed_days_ago)])  # fmt: skip
        add("items", *([order.reference, line, item.sku, item.title, item.quantity, item.unit_minor]
                       for line, item in enumerate(order.items, 1)))  # fmt: skip
        add("payments", *([paid.id, order.reference, paid.amount_minor, paid.method, paid.status,
                           _moment(today, paid.paid_days_ago)] for paid in order.payments))  # fmt: skip
        add("shipments", *([sent.tracking, order.reference, sent.carrier, sent.status, _day(today, sent.sent_days_ago),
                            _day(today, sent.expected_days_ago), _day(today, sent.delivered_days_ago), sent.last_event]
                           for sent in order.shipments))  # fmt: skip
        _add_refunds(connection, tenant, order, money, today)
    add("subscriptions", *([one.reference, one.customer, one.plan, one.price_minor, shop.currency, one.status,
                            _day(today, one.started_days_ago), _day(today, one.renews_days_ago),
                            _day(today, one.minimum_until_days_ago), _day(today, one.ends_days_ago)]
                           for one in shop.subscriptions))  # fmt: skip


def write_articles(connection: Connection, tenant: str, directory: Path) -> None:
    """Stores the articles that are new or changed, each section with its vector, and removes those that are gone."""
    known = {
        (slug, digest, model_id)
        for slug, digest, model_id in connection.execute("select slug, digest, model from help.articles").fetchall()
    }
    present = []
    for slug, digest, sections in help_centre.articles(directory):
        present.append(slug)
        if (slug, digest, MODEL_ID) in known or not sections:
            continue
        connection.execute("delete from help.articles where slug = %s", [slug])
        connection.execute(
            "insert into help.articles (tenant, slug, title, digest, model) values (%s, %s, %s, %s, %s)",
            [tenant, slug, sections[0].title, digest, MODEL_ID],
        )
        vectors = model().embed([section.sentence for section in sections])
        for position, (section, vector) in enumerate(zip(sections, vectors, strict=True)):
            connection.execute(
                "insert into help.chunks (tenant, article, position, section, body, model, embedding) "
                "values (%s, %s, %s, %s, %s, %s, %s::public.vector)",
                [tenant, slug, position, section.heading, section.body, MODEL_ID, help_centre.literal(vector)],
            )
    connection.execute("delete from help.articles where not slug = any(%s)", [present])


def _add_refunds(connection: Connection, tenant: str, order: OrderEntry, money: str, today: date) -> None:
    counts: dict[int, int] = {}
    for refund in order.refunds:
        n = counts.get(refund.amount_minor, 0)
        counts[refund.amount_minor] = n + 1
        intent = intent_of(tenant, order.reference, refund.amount_minor, money, n)
        connection.execute(
            "insert into shop.refunds (tenant, id, intent, n, order_reference, customer_id, amount_minor, currency, "
            "reason, day, refunded_at) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) "
            "on conflict on constraint refunds_intent do nothing",
            [tenant, reference_of(intent), intent, n, order.reference, order.customer, refund.amount_minor, money,
             refund.reason, _day(today, refund.refunded_days_ago), _moment(today, refund.refunded_days_ago)],
        )  # fmt: skip


def _day(today: date, days_ago: int | None) -> date | None:
    return None if days_ago is None else today - timedelta(days=days_ago)


def _moment(today: date, days_ago: int) -> datetime:
    return datetime.combine(today - timedelta(days=days_ago), time(9, 30), UTC)
