"""What the agent does for each thing that a customer may want: look first, act on what is there, reply honestly."""

from standin.intents import Intent
from standin.playbooks.colleagues import hands_off
from standin.playbooks.help_centre import question
from standin.playbooks.orders import cancel_order, damaged, send_back
from standin.playbooks.parcels import parcel
from standin.playbooks.payments import duplicate
from standin.playbooks.refunds import refund, refund_status
from standin.playbooks.small_talk import thanks, unclear
from standin.playbooks.subscriptions import subscription
from standin.playbooks.turn import Playbook

BY_INTENT: dict[Intent, Playbook] = {
    Intent.FORMAL: hands_off("It is a complaint or a legal matter."),
    Intent.DANGER: hands_off("Somebody may be hurt or in danger."),
    Intent.PERSON: hands_off("The customer asks for a person."),
    Intent.UNKNOWN_CHARGE: hands_off("The customer disputes a payment."),
    Intent.BEYOND: hands_off("No tool can do what the customer asks for."),
    Intent.DUPLICATE: duplicate,
    Intent.SUBSCRIPTION: subscription,
    Intent.REFUND_STATUS: refund_status,
    Intent.QUESTION: question,
    Intent.REFUND: refund,
    Intent.CANCEL_ORDER: cancel_order,
    Intent.RETURN: send_back,
    Intent.PARCEL: parcel,
    Intent.DAMAGED: damaged,
    Intent.THANKS: thanks,
    Intent.UNCLEAR: unclear,
}
