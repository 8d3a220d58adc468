"""Which model works where nobody says another."""

DEFAULT_MODEL = "claude-sonnet-5-5"
