"""Words of shops that are taken for people's names where they begin with a capital or stand alone."""

_WORDS = """
account address agent american amex amount apple approve approved approver backorder bank basket billed billing box
broken cancel cancellation cancelled card cards carrier chargeback charged check checked checkout cheers closed
collected collection colour complaint coupon courier credit currency customer customers damaged dear decline
declined delivered deliveries delivery depot dhl discount dispatch dispatched dispute dollars door double dpd dress
driver duplicate email escalate escalated euros evri exchange exchanged express faulty fedex feedback fraud full
gift goods goodwill google guarantee hello help hermes hey hi invoice invoiced item items jacket kettle klarna label
lamp late lead locker look lost maestro mail manager mastercard missing neighbour no note number open operator order
orders package packages paid parcel parcels partial pass pay payment payments paypal pence pending pickup please
policy porch postage pounds preorder processing product products reason receipt refund refunded refunds regards
renewal replace replacement restock return returned returns royal send sent shipment shipments shipped shipping
shirt shoes shop sign signature signed size sorry status stock store stripe subscription support team tent thank
thanks ticket tickets total tracking transfer trial ups urgent vat visa voucher warehouse warranty wishlist wrong
yes
"""
NO_NAMES = frozenset(_WORDS.split())


def is_no_name(words: str) -> bool:
    """Whether all of these words are such words: `Order Number` is nobody, `Gift Okafor` is somebody."""
    return all(word.strip(".,:;!?'\"()").casefold() in NO_NAMES for word in words.split())
