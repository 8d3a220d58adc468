"""The toolset `shop`: seven tools over an ordinary online shop."""

from tools_shop.toolset import Toolset
from tools_shop.toolsets.shop.cancel_subscription import CANCEL_SUBSCRIPTION
from tools_shop.toolsets.shop.escalate_to_human import ESCALATE_TO_HUMAN
from tools_shop.toolsets.shop.find_customer import FIND_CUSTOMER
from tools_shop.toolsets.shop.get_order import GET_ORDER
from tools_shop.toolsets.shop.get_shipment_status import GET_SHIPMENT_STATUS
from tools_shop.toolsets.shop.issue_refund import ISSUE_REFUND
from tools_shop.toolsets.shop.search_help_centre import Ask, search_help_centre
from tools_shop.toolsets.shop.tables import TABLES


def shop(ask: Ask) -> Toolset:
    """The toolset over a help centre that `ask` searches."""
    tools = (
        FIND_CUSTOMER,
        GET_ORDER,
        GET_SHIPMENT_STATUS,
        search_help_centre(ask),
        ISSUE_REFUND,
        CANCEL_SUBSCRIPTION,
        ESCALATE_TO_HUMAN,
    )
    return Toolset("shop", "1", TABLES, {tool.name: tool for tool in tools})
