"""What the shop's writes lock, and what of it a digest covers."""

from tools_shop.transaction import Table, Tables

TABLES = Tables(
    customer="select id from shop.customers where address = %s order by id",
    rows={
        "orders": Table(
            lock="""
            select 1 from shop.orders o where o.reference = any(%s)
            and o.customer_id in (select c.id from shop.customers c where c.address = %s)
            order by o.reference for no key update of o
            """,
            state="""
            select o.reference as key, json_build_object(
                'status', o.status,
                'total_minor', o.delivery_minor + coalesce((select sum(i.quantity * i.unit_minor) from shop.items i
                                                            where i.tenant = o.tenant
                                                            and i.order_reference = o.reference), 0),
                'paid_minor', coalesce((select sum(p.amount_minor) from shop.payments p where p.tenant = o.tenant
                                        and p.order_reference = o.reference and p.status = 'captured'), 0),
                'refunded_minor', coalesce((select sum(r.amount_minor) from shop.refunds r where r.tenant = o.tenant
                                            and r.order_reference = o.reference), 0),
                'window_from', extract(epoch from coalesce(
                    (select max(s.delivered_on) from shop.shipments s where s.tenant = o.tenant
                     and s.order_reference = o.reference)::timestamp at time zone t.timezone, o.placed_at))::bigint)
                   as state
            from shop.orders o join shop.customers c on c.tenant = o.tenant and c.id = o.customer_id
            join shop.tenants t on t.tenant = o.tenant
            where o.reference = any(%s) and c.address = %s
            """,
        ),
        "subscriptions": Table(
            lock="""
            select 1 from shop.subscriptions s where s.reference = any(%s)
            and s.customer_id in (select c.id from shop.customers c where c.address = %s)
            order by s.reference for no key update of s
            """,
            state="""
            select s.reference as key, json_build_object('status', s.status, 'ends_on', s.ends_on) as state
            from shop.subscriptions s join shop.customers c on c.tenant = s.tenant and c.id = s.customer_id
            where s.reference = any(%s) and c.address = %s
            """,
        ),
    },
)
