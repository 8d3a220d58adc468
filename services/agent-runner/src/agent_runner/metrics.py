"""What the runner counts of the model, for Prometheus."""

from prometheus_client import Counter, Histogram

CALLS = Counter(
    "turngate_model_calls_total", "Model calls that were answered, by why the answer stopped.", ["model", "stop"]
)
COST = Counter("turngate_model_cost_micro_usd_total", "What model calls cost, in micro-dollars.", ["model"])
SECONDS = Histogram(
    "turngate_model_call_seconds",
    "Time of a model call.",
    ["model"],
    buckets=(0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 80, 160),
)
REUSED = Counter("turngate_model_answers_reused_total", "Recorded answers that were used instead of asking again.")
