"""What a customer wants: a table of rules, the first that fits. Where it is not clear, nothing is guessed."""

import re
from enum import StrEnum


class Intent(StrEnum):
    FORMAL = "a formal or legal matter"
    DANGER = "somebody may be hurt"
    PERSON = "a person"
    DUPLICATE = "a payment that was taken twice"
    UNKNOWN_CHARGE = "a payment that they do not know"
    SUBSCRIPTION = "the end of a subscription"
    REFUND_STATUS = "news of a refund"
    QUESTION = "how something works"
    REFUND = "money back"
    CANCEL_ORDER = "the end of an order"
    RETURN = "to return or exchange something"
    BEYOND = "something that only a person can change"
    PARCEL = "where a parcel is"
    DAMAGED = "something arrived damaged or wrong"
    THANKS = "nothing more"
    UNCLEAR = "not clear"


_PERSON = (
    r"\b(?:human|person|people|agent|someone|somebody|representative|advis[oe]r|manager|supervisor|operator|executive"
    r"|assistant|staff|assistance|support)\b"
)
_CHARGE = r"\b(?:payments?|charges?|transactions?|debits?|bills?|statement)\b"
_NOT = r"(?:not|n't|never)"

FAULT = (
    r"damaged|chipped|broken?\b|faulty|cracked|torn\b|defective|scratched|\bleak|\bsplit\b|smashed|tampered|\bfake\b",
    r"in (?:two|three|several|\w+)? ?pieces|wrong (?:colou?r|size|items?|one|product|order)|(?:poor|bad) quality",
    rf"(?:{_NOT}|stopped) work|would not hold|wo ?n't (?:hold|charge|turn on|start)",
    r"received (?:one|it|them) in|instead of|completely different|(?:is|are|was|were) missing",
)
RULES: dict[Intent, tuple[str, ...]] = {
    Intent.FORMAL: (
        r"ombudsman|charge ?backs?\b|small claims|trading standards|solicitor|lawyer|attorney|legal (?:action|advice)",
        r"\bcourt\b|regulator\b|formal complaint|\bsue (?:you|your)|journalist|newspaper",
        r"\b(?:fil|lodg|mak|rais|submit)\w*\b.{0,30}\b(?:complaint|claim|reclamation)",
    ),
    Intent.DANGER: (
        r"\binjur|\b(?:hurt|cut|burn(?:t|ed)) (?:me|my|him|her|his|our)\b|bleeding|hospital|caught fire|electric shock",
        r"kill (?:myself|you|him|her)|suicid",
    ),
    Intent.PERSON: (
        rf"\b(?:talk|speak|chat|contact|connect|reach|call|through)\b.{{0,40}}{_PERSON}",
        r"real (?:person|human)|give me (?:a )?human",
        r"any ?(?:body|one) available|customer (?:service|assistance|care)|call cent(?:er|re)|sharing .{0,30} machine",
    ),
    Intent.DUPLICATE: (
        r"\b(?:charged?|billed|paid|pay|took|taken|debited)\b.{0,40}\b(?:twice|two times|double|more than once)",
        rf"\b(?:duplicate|double|multiple|two|same)\b.{{0,20}}{_CHARGE}|{_CHARGE}.{{0,30}}more than once",
    ),
    Intent.UNKNOWN_CHARGE: (
        rf"{_CHARGE}.{{0,80}}(?:not mine|without my|error|wrong|strange)",
        rf"{_CHARGE}.{{0,80}}{_NOT} (?:\w+ )?(?:make|made|perform|remember|recogni[sz]e)",
        rf"\b(?:strange|unknown|unwanted|error|stolen)\b.{{0,60}}{_CHARGE}",
        r"\bdispute\b|\bstole|using my card|card has been used",
    ),
    Intent.SUBSCRIPTION: (
        r"unsubscribe",
        r"\b(?:cancel\w*|end|stop|terminate)\b.{0,60}\b(?:subscrip\w*|membership|newsletter|plan|box|service|connection)\b",
    ),
    Intent.REFUND_STATUS: (
        r"\b(?:status|progress|track\w*|updates?|news|where|when|how long|check\w*)\b.{0,40}\brefund",
        r"\brefunds?\b.{0,40}\b(?:status|yet|arrived?|taking|takes?|progress|showing|appear|last week)\b|not refunded",
        r"\b(?:asked for|requested|promised|waiting for|see|seen|got) (?:a|my|the) refund\b.{0,80}(?:\bago|not|n't)\b",
        r"(?:have|had)(?:n't| not) .{0,20}\brefund\b",
    ),
    Intent.QUESTION: (
        r"\bpolic(?:y|ies)\b|\bhow (?:do|can|could|would|should|to|many|much|long|late)\b",
        r"\bwhat (?:do|does|is|are|happens|should|time)\b|\b(?:is|are) (?:it|there)\b|\bif (?:i|we)\b|\bprocess of\b",
        r"\bdo you (?:have|take|accept|deliver|ship|sell|offer)\b|\bcan (?:i|we) .{0,30}\b(?:after|if|when|without)\b",
        r"\bwhere (?:can|do|to)\b|\bfees?\b|penalt|opening hours|information about|not know (?:how|what)",
    ),
    Intent.REFUND: (
        r"\brefund|money back|\breimburs|compensat|\bpay me back|\bmy money\b|credit me|\bowe me\b",
        r"\bback\b.{0,12}\bmoney\b",
    ),
    Intent.CANCEL_ORDER: (
        r"\b(?:cancel\w*|cacel|stop)\b.{0,60}\b(?:orders?|oder|purchases?|items?|products?|it|transaction|flights?)\b",
        r"cancell?ations?\b|cancell?ing|not want (?:the|my|to pay for my) (?:last )?order",
    ),
    Intent.RETURN: (r"\b(?:return|exchang|replac|swap)", r"\bsend .{1,20}\bback\b"),
    Intent.BEYOND: (
        r"\b(?:account|address|invoices?|bills?|password|pin|log ?in|details|promo|voucher|bonus|balance|wallet)\b",
        r"\b(?:payments?|debited|deducted)\b|insur|\bgdpr\b|\bmy data\b",
        r"\b(?:change|add|remove|decrease\w*|update|edit|modify)\b.{0,40}\b(?:order|item)",
    ),
    Intent.PARCEL: (
        r"\b(?:where|track\w*|status|when|late|delay\w*|progress|eta|early)\b|\b(?:parcel|package|shipment|shipped)\b",
        rf"\b(?:deliver|dispatch|arriv)|{_NOT} (?:received?|arrived?|turned up|come)\b",
    ),
    Intent.DAMAGED: FAULT,
    Intent.THANKS: (r"^\W*(?:(?:ok|okay|great|perfect|brilliant|many)\W+){0,3}(?:thanks?|thank you|cheers)\b.{0,60}$",),
}
_COMPILED = {intent: re.compile("|".join(rules), re.IGNORECASE) for intent, rules in RULES.items()}
_ASKS = frozenset({Intent.QUESTION, Intent.REFUND_STATUS})
_ASKS_HOW = re.compile(
    r"\bhow (?:do|can|could|long|to)\b|\bpolicy\b|\bstatus\b"
    r"|\b(?:when|where) (?:is|are|will|do|does|can)\b.{0,25}\brefund",
    re.IGNORECASE,
)


def of(text: str, *, names_an_order: bool = False) -> Intent:
    """The intent of a message. One that names an order is a request rather than a question, unless it asks how."""
    text = _plain(text)
    for intent, rule in _COMPILED.items():
        if intent in _ASKS and names_an_order and not _ASKS_HOW.search(text):
            continue
        if rule.search(text):
            return intent
    return Intent.UNCLEAR


def speaks_of_fault(text: str) -> bool:
    return bool(_COMPILED[Intent.DAMAGED].search(_plain(text)))


def _plain(text: str) -> str:
    """One spelling of apostrophes and of `not`: people write don't, dont and don’t."""
    text = text.replace("’", "'")
    return re.sub(r"\b(do|does|did|have|has|had|is|was|could|would)nt\b", r"\1n't", text, flags=re.IGNORECASE)
