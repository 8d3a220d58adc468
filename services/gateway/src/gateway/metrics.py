"""What the gateway counts for Prometheus, beside what every service counts."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("turngate_http_requests_total", "HTTP requests answered.", ["method", "route", "status"])
SECONDS = Histogram("turngate_http_request_seconds", "Time to the answer's first byte.", ["method", "route"])
STREAMS = Gauge("turngate_http_streams", "Event streams open now.")
POSITION = Gauge("turngate_views_position", "The last sequence of the log that the views hold.")
LIMITED = Counter("turngate_http_limited_total", "Calls turned away by a rate limit.", ["limit"])
