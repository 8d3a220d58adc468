"""Tells people what waits for them: webhooks, Slack, e-mail."""
