"""The toolset `shop`: seven tools over an ordinary online shop."""

from functools import lru_cache

from tools_shop.toolset import Toolset
from tools_shop.toolsets.shop.cancel_subscription import CANCEL_SUBSCRIPTION
from tools_shop.toolsets.shop.escalate_to_human import ESCALATE_TO_HUMAN
from tools_shop.toolsets.shop.find_customer import FIND_CUSTOMER
from tools_shop.toolsets.shop.get_order import get_order
from tools_shop.toolsets.shop.get_shipment_status import GET_SHIPMENT_STATUS
from tools_shop.toolsets.shop.issue_refund import issue_refund
from tools_shop.toolsets.shop.search_help_centre import Ask, search_help_centre
from tools_shop.toolsets.shop.tables import TABLES
from tools_shop.unit import Unit


def shop(ask: Ask) -> Toolset:
    """The toolset over a help centre that `ask` searches."""

    @lru_cache(maxsize=256)
    def speaking(unit: Unit) -> Toolset:
        tools = (
            FIND_CUSTOMER,
            get_order(unit),
            GET_SHIPMENT_STATUS,
            search_help_centre(ask),
            issue_refund(unit),
            CANCEL_SUBSCRIPTION,
            ESCALATE_TO_HUMAN,
        )
        return Toolset("shop", "1", TABLES, {tool.name: tool for tool in tools}, speaking)

    return speaking(Unit())
