"""What every service counts, for Prometheus."""

from prometheus_client import Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

APPENDED = Counter("turngate_facts_appended_total", "Facts added to the log.", ["kind"])
CONFLICTS = Counter("turngate_append_conflicts_total", "Appends that lost to another writer.", ["kind"])
HANDLED = Counter("turngate_messages_handled_total", "Messages dealt with, by how it ended.", ["kind", "outcome"])
HANDLING = Histogram("turngate_handling_seconds", "Time from receipt to acknowledgement.", ["kind"], buckets=_BUCKETS)
LOST_LINES = Counter("turngate_log_lines_lost_total", "Log lines that could not be written.")
IN_FLIGHT = Gauge("turngate_messages_in_flight", "Messages being handled now.")
